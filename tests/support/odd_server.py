"""An MCP server whose texts would steer a terminal, and which says more than it should.

usage: python odd_server.py [FOLDER]
"""

import json
import sys
import time

ODD = "a\x1b[31mb\u202ec\x00d\r\ne"
PINGS = 1000
SCHEMA = {"type": "object", "properties": {}}


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def progress(token: object, done: float, message: str) -> None:
    params = {"progressToken": token, "progress": done, "message": message}
    send(method="notifications/progress", params=params)


def ask(number: str) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": ODD, "requestedSchema": schema}
    send(id=number, method="elicitation/create", params=params)


def listed(method: str) -> dict[str, object]:
    """Return what it lists."""
    item = {"title": ODD, "description": ODD}
    if method == "tools/list":
        names = ("say", "fail", "refuse", "many", "huge", "ask", "ping", "drop")
        return {"tools": [{"name": name, "inputSchema": SCHEMA, **item} for name in names]}
    if method == "prompts/list":
        argument = {"name": "word", **item}
        return {"prompts": [{"name": "greet", "arguments": [argument], **item}]}
    if method == "resources/list":
        return {"resources": [{"name": ODD, "uri": "odd://one", "description": ODD}]}
    return {"resourceTemplates": []}


def call(number: object, name: str, token: object) -> None:
    """Answer a call of a tool."""
    if name == "refuse":
        send(id=number, error={"code": -32000, "message": ODD})
    elif name == "ask":
        ask(f"q{number}")
    else:
        content = [{"type": "text", "text": say_more(number, name, token)}]
        for _ in range(2):
            send(id=number, result={"content": content, "isError": name == "fail"})


def say_more(number: object, name: str, token: object) -> str:
    """Send what a tool says before it answers, and return its answer."""
    if name == "many":
        for done in range(10_000):
            progress(token, done, f"at {done}")
        progress(token, 10_000, ODD)
    if name == "huge":
        progress(token, 10**400, "too many")
        send(id=12345, result={"content": []})
    if name == "drop":
        ask(f"d{number}")
        time.sleep(0.05)
    if name == "ping":
        for _ in range(PINGS):
            send(id=f"p{number}", method="ping")
        return str(sum(json.loads(sys.stdin.readline())["result"] == {} for _ in range(PINGS)))
    return ODD


def take_reply(number: str) -> None:
    """Answer the call that asked, unless it was answered before."""
    if number.startswith("q"):
        send(id=int(number[1:]), result={"content": [{"type": "text", "text": "asked"}]})


def answer(message: dict[str, object]) -> None:
    method, number = message.get("method"), message.get("id")
    params = message.get("params") or {}
    if method is None:
        take_reply(str(number))
    elif method == "initialize":
        able = {"tools": {}, "prompts": {}, "resources": {}}
        info = {"name": "odd", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": able, "serverInfo": info}
        send(id=number, result=result)
    elif method == "tools/call":
        call(number, params["name"], params.get("_meta", {}).get("progressToken"))
    elif method == "prompts/get":
        content = {"type": "text", "text": ODD}
        messages = [{"role": "user", "content": content}]
        send(id=number, result={"description": ODD, "messages": messages})
    elif method == "resources/read":
        send(id=number, error={"code": -32002, "message": ODD})
    elif str(method).endswith("/list"):
        send(id=number, result=listed(str(method)))
    elif number is not None:
        send(id=number, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    for line in sys.stdin:
        answer(json.loads(line))
