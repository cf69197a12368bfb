"""An MCP server of the handshake generation with prompts and resources, in plain Python.

usage: python content_server.py FOLDER

What it lists is read from FOLDER/lists.json, if that is there; for a list that is null it never
answers. With a list of skills it has their extension, and "files" has the parts of each file by its
URI. It leaves FOLDER/subscribed.json
with the URIs that are subscribed to, and FOLDER/asked.txt with the methods that it was asked.
"""
# ruff: noqa: C901, PLR0911  a table of what it can be asked to do

import contextlib
import json
import os
import pathlib
import sys

FOLDER = pathlib.Path(sys.argv[1])
ICON = {"src": "https://example.org/icon.png", "mimeType": "image/png"}
ANY = {"type": "object", "properties": {"value": {}}}
LISTS = {
    "tools": [{"name": name, "inputSchema": ANY} for name in ("change", "end", "link", "touch")],
    "prompts": [
        {
            "name": "greet me",
            "title": "Greet",
            "description": " Say hello. ",
            "icons": [ICON],
            "arguments": [
                {"name": "who", "title": "Who", "description": "A person", "required": True},
                {"name": "in-words"},
            ],
            "_meta": {"acme/kind": "short"},
        },
        {"name": "refuse"},
    ],
    "resources": [
        {
            "uri": "demo://one",
            "name": "read me.md",
            "description": "One.",
            "mimeType": "text/markdown",
            "size": 7,
            "annotations": {"audience": ["user"], "priority": 0.5},
            "icons": [ICON],
            "_meta": {"acme/kind": "page"},
        },
        {"uri": "demo://two", "name": "read me.md"},
        {"uri": "demo://refused", "name": "refused"},
    ],
    "resourceTemplates": [
        {"uriTemplate": "demo://pages/{id}", "name": "page", "mimeType": "text/plain"}
    ],
}
METHODS = {f"{key}/list": key for key in ("tools", "prompts", "resources", "skills")}
METHODS["resources/templates/list"] = "resourceTemplates"
MESSAGES = [
    {"role": "user", "content": {"type": "text", "text": "Hello"}},
    {"role": "assistant", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
    {
        "role": "user",
        "content": {"type": "resource", "resource": {"uri": "demo://one", "text": "one"}},
    },
]
SUBSCRIBED: list[str] = []


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def lists() -> dict[str, list[object]]:
    file = FOLDER / "lists.json"
    return json.loads(file.read_text()) if file.exists() else LISTS


def capabilities() -> dict[str, object]:
    able: dict[str, object] = {
        key: {"listChanged": True} for key in lists() if key in METHODS.values()
    }
    able.pop("resourceTemplates", None)
    if able.pop("skills", None):
        able["extensions"] = {"io.modelcontextprotocol/skills": {}}
    if "resources" in able:
        able["resources"] = {"subscribe": True, "listChanged": True}
    return able | {"completions": {}}


def call(name: str, value: object) -> None:
    if name == "end":
        os._exit(0)
    if name == "touch":
        send(method="notifications/resources/updated", params={"uri": value})
    if name == "change":
        kind, items = value["kind"], value["items"]
        (FOLDER / "lists.json").write_text(json.dumps({**lists(), kind: items}))
        told = kind if kind in ("tools", "prompts") else "resources"
        send(method=f"notifications/{told}/list_changed")


def result(method: str, params: dict[str, object]) -> dict[str, object] | None:
    if method == "initialize":
        info = {"name": "content", "version": "1"}
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities(),
            "serverInfo": info,
        }
    if method in METHODS:
        if METHODS[method] not in lists():
            raise LookupError(-32601, "Method not found", None)
        items = lists()[METHODS[method]]
        return None if items is None else {METHODS[method]: items}
    if method == "tools/call":
        call(params["name"], params["arguments"].get("value"))
        linked = {"type": "resource_link", "uri": params["arguments"].get("value"), "name": "more"}
        done = {"type": "text", "text": "done"}
        return {"content": [linked if params["name"] == "link" else done]}
    if method == "prompts/get":
        if params["name"] == "refuse":
            raise LookupError(-32042, "not today", {"day": "Monday"})
        said = {
            "role": "user",
            "content": {"type": "text", "text": json.dumps(params["arguments"])},
        }
        return {
            "description": "A greeting",
            "messages": [*MESSAGES, said],
            "_meta": {"acme/cost": 1},
        }
    if method == "resources/read":
        uri = params["uri"]
        if parts := lists().get("files", {}).get(uri):
            return {"contents": parts}
        if uri in ("demo://refused", "demo://pages/none"):
            raise LookupError(-32002, "Resource not found", {"uri": uri})
        parts = [
            {"uri": uri, "mimeType": "text/markdown", "text": "# One", "_meta": {"acme/part": 1}},
            {"uri": f"{uri}/image", "mimeType": "image/png", "blob": "aGk="},
        ]
        return {"contents": parts}
    if method == "completion/complete":
        typed, known = params["argument"]["value"], params.get("context", {}).get("arguments", {})
        many = 300 if typed == "many" else 2
        values = [f"{typed}-{number}" for number in range(many)] + sorted(known.values())
        return {"completion": {"values": values, "total": 500, "hasMore": many == 2}}
    if method in ("resources/subscribe", "resources/unsubscribe"):
        if params["uri"] == "demo://refused":
            raise LookupError(-32002, "Resource not found", {"uri": "demo://refused"})
        change = SUBSCRIBED.append if method == "resources/subscribe" else SUBSCRIBED.remove
        change(params["uri"])
        file = FOLDER / "subscribed.new"
        file.write_text(json.dumps(SUBSCRIBED))
        file.replace(FOLDER / "subscribed.json")
        return {}
    raise LookupError(-32601, "Method not found", None)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        with (FOLDER / "asked.txt").open("a") as asked:
            asked.write(f"{message.get('method')}\n")
        if "id" not in message:
            continue
        try:
            answer = {"result": result(message["method"], message.get("params") or {})}
        except LookupError as exc:
            code, text, data = exc.args
            answer = {"error": {"code": code, "message": text, **({"data": data} if data else {})}}
        if answer.get("result", answer) is not None:
            send(id=message["id"], **answer)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
