"""An MCP server whose texts would steer a terminal, and which says more than it should.

usage: python odd_server.py [FOLDER]
"""

import json
import sys

ODD = "a\x1b[31mb\u202ec\x00d\r\ne"
SCHEMA = {"type": "object", "properties": {}}


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def progress(token: object, done: float, message: str) -> None:
    params = {"progressToken": token, "progress": done, "message": message}
    send(method="notifications/progress", params=params)


def listed(method: str) -> dict[str, object]:
    """Return what it lists."""
    item = {"title": ODD, "description": ODD}
    if method == "tools/list":
        names = ("say", "fail", "refuse", "many", "huge", "ask")
        return {"tools": [{"name": name, "inputSchema": SCHEMA, **item} for name in names]}
    if method == "prompts/list":
        argument = {"name": "word", **item}
        return {"prompts": [{"name": "greet", "arguments": [argument], **item}]}
    if method == "resources/list":
        return {"resources": [{"name": ODD, "uri": "odd://one", "description": ODD}]}
    return {"resourceTemplates": []}


def call(number: object, name: str, token: object) -> None:
    """Answer a call of a tool."""
    content = [{"type": "text", "text": ODD}]
    if name == "refuse":
        send(id=number, error={"code": -32000, "message": ODD})
        return
    if name == "many":
        for done in range(10_000):
            progress(token, done, f"at {done}")
        progress(token, 10_000, ODD)
    if name == "huge":
        progress(token, 10**400, "too many")
        send(id=12345, result={"content": []})
    if name == "ask":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        send(
            id=f"q{number}",
            method="elicitation/create",
            params={"message": ODD, "requestedSchema": schema},
        )
        return
    for _ in range(2):
        send(id=number, result={"content": content, "isError": name == "fail"})


def answer(message: dict[str, object]) -> None:
    method, number = message.get("method"), message.get("id")
    params = message.get("params") or {}
    if method is None:
        send(id=int(str(number)[1:]), result={"content": [{"type": "text", "text": "asked"}]})
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
