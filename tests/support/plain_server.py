"""An MCP server of the handshake generation, in plain Python so that it starts in no time.

usage: python plain_server.py [FOLDER]

It reads the tools that it lists from FOLDER/tools.json, if that is there, and leaves files in
FOLDER that tell what it went through: one named after its process id, ``sleeps``, ``cancelled``,
and ``able.json`` with what it was told that clients can.
"""
# ruff: noqa: C901, PLR0911  a table of what it can be asked to do

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
ANY = {"type": "object", "properties": {"value": {}}}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "demo://one", "name": "one"}
EMBEDDED = {"type": "resource", "resource": {"uri": "demo://one", "text": "one"}}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "inputSchema": ANY}
    | {"annotations": {"readOnlyHint": True, "title": "Echo"}},
    *(
        {"name": name, "inputSchema": ANY}
        for name in (
            *("ask", "blocks", "crash", "env", "fail", "noise", "progress"),
            *("refuse", "sleep", "spawn", "wrong"),
        )
    ),
]


ASKING: dict[object, object] = {}
"""The calls that wait for the reply to a question, by the ids of the questions."""


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> list[object]:
    file = FOLDER / "tools.json"
    return json.loads(file.read_text()) if file.exists() else TOOLS


def page(cursor: str | None) -> dict[str, object]:
    """Return the tools two at a time."""
    start = int(cursor or 0)
    found = tools()
    more = {"nextCursor": str(start + 2)} if start + 2 < len(found) else {}
    return {"tools": found[start : start + 2], **more}


def text(value: object) -> dict[str, object]:
    written = value if isinstance(value, str) else json.dumps(value)
    return {"content": [{"type": "text", "text": written}]}


def call(name: str, given: dict[str, object]) -> dict[str, object] | None:
    """Return the result of a tool; None for an answer that never comes."""
    value = given.get("value")
    if name == "blocks":
        data = {"count": 2, "none": None}
        blocks = [text("two")["content"][0], IMAGE, LINK, EMBEDDED]
        return {"content": blocks, "structuredContent": data, "_meta": {"acme/cost": 1}}
    if name == "crash":
        sys.stderr.write("giving up: it is too late\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "env":
        return text(os.environ.get(str(value), "unset"))
    if name == "fail":
        return {**text(f"no {value}"), "isError": True}
    if name == "noise":
        sys.stdout.write("not of the protocol\n")
        sys.stderr.write("line one\nline \x1b[31mtwo\n" + "x" * 10_000 + "\n")
        sys.stderr.write("again\n" * int(str(value)))
        sys.stderr.flush()
        return text("done")
    if name == "sleep":
        (FOLDER / "sleeps").touch()
        return None
    if name == "spawn":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        return text(child.pid)
    if name == "all":
        return text(json.dumps(given))
    if name == "wrong":
        return {"content": "not a list"}
    return text(value)


def ask(number: object, question: str, url: object) -> None:
    """Ask the user, and answer the call with the reply, once it comes."""
    ASKING[f"q{number}"] = number
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": question, "requestedSchema": schema}
    if url:
        params = {"message": question, "mode": "url", "url": url, "elicitationId": "one"}
    send(id=f"q{number}", method="elicitation/create", params=params)


def answer(message: dict[str, object]) -> None:
    if "method" not in message:
        reply = message.get("result") or message["error"]["message"]
        send(id=ASKING.pop(message["id"]), result=text(reply))
        return
    method, number = message["method"], message.get("id")
    params = message.get("params") or {}
    if method == "initialize":
        (FOLDER / "able.json").write_text(json.dumps(params["capabilities"]))
        info = {"name": "plain", "version": "1"}
        able = {"tools": {"listChanged": True}}
        result = {"protocolVersion": "2025-06-18", "capabilities": able, "serverInfo": info}
        send(id=number, result=result)
    elif method == "tools/list":
        send(id=number, result=page(params.get("cursor")))
    elif method == "tools/call" and params["name"] == "ask":
        ask(number, "Your name?", params["arguments"].get("value"))
    elif method == "tools/call" and params["name"] == "progress":
        token = params["_meta"]["progressToken"]
        for done in (1, 2):
            send(
                method="notifications/progress",
                params={"progressToken": token, "progress": done, "message": f"at {done}"},
            )
        send(id=number, result=text("counted"))
    elif method == "tools/call" and params["name"] == "refuse":
        code = (params["arguments"] or {}).get("value") or -32602
        send(id=number, error={"code": code, "message": "Unknown tool: refuse"})
    elif method == "tools/call" and params["name"] == "change":
        (FOLDER / "tools.json").write_text(json.dumps(params["arguments"]["value"]))
        send(method="notifications/tools/list_changed")
        send(id=number, result=text("changed"))
    elif method == "tools/call":
        result = call(params["name"], params["arguments"])
        if result is not None:
            send(id=number, result=result)
    elif method == "notifications/cancelled":
        (FOLDER / "cancelled").touch()
    elif number is not None:
        code = -32000 if (FOLDER / "vague").exists() else -32601
        send(id=number, error={"code": code, "message": "Method not found"})


def main() -> None:
    (FOLDER / f"{os.getpid()}.pid").touch()
    if (FOLDER / "hang").exists():
        time.sleep(600)
    if (FOLDER / "die").exists():
        sys.exit("cannot start: the key s3cret-value is not valid")
    for line in sys.stdin:
        answer(json.loads(line))
    (FOLDER / "ended").touch()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
