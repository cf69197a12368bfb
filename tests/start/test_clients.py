"""The first messages of the clients that people use get the same answers with a front."""

from __future__ import annotations

from typing import Any

import pytest
from support.fronts import Client, line, messages, new_host, snapshot_of, stored, unordered

from standards_mcp.start.front import Front

READING = ("tools/list", "prompts/list", "resources/list")
CLIENTS: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    # by name: the protocol version, what the client says of itself and of its abilities, and its
    # requests after the handshake
    "Claude Desktop": (
        "2025-06-18",
        {"name": "claude-ai", "version": "0.1.0"},
        {},
        READING,
    ),
    "Claude Code": (
        "2025-11-25",
        {
            "name": "claude-code",
            "title": "Claude Code",
            "version": "2.1.0",
            "websiteUrl": "https://claude.com/claude-code",
        },
        {"roots": {}, "elicitation": {"form": {}, "url": {}}},
        READING,
    ),
    "Cursor": (
        "2025-06-18",
        {"name": "cursor-vscode", "version": "1.0.0"},
        {
            "tools": True,
            "prompts": True,
            "resources": True,
            "logging": False,
            "elicitation": {},
            "roots": {"listChanged": False},
        },
        READING,
    ),
    "VS Code": (
        "2025-11-25",
        {"name": "Visual Studio Code", "version": "1.117.0"},
        {
            "roots": {"listChanged": True},
            "sampling": {},
            "elicitation": {"form": {}, "url": {}},
            "tasks": {
                "list": {},
                "cancel": {},
                "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
            },
            "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}},
        },
        ("logging/setLevel", "tools/list", "prompts/list"),
    ),
    "Windsurf": (
        "2025-03-26",
        {"name": "windsurf-client", "version": "1.0.0"},
        {},
        ("tools/list", "resources/list"),
    ),
    "Zed": (
        "2025-03-26",
        {"name": "Zed", "version": "0.210.0"},
        {},
        ("tools/list", "prompts/list"),
    ),
    "Codex": (
        "2025-06-18",
        {"name": "codex-mcp-client", "title": "Codex", "version": "0.98.0"},
        {"elicitation": {}},
        ("tools/list", "resources/list", "resources/templates/list"),
    ),
    "Gemini CLI": (
        "2025-06-18",
        {"name": "gemini-cli-mcp-client", "version": "0.0.1"},
        {"roots": {"listChanged": True}},
        ("ping", "prompts/list", "tools/list", "resources/list"),
    ),
    "Cline": (
        "2025-06-18",
        {"name": "Cline", "version": "3.60.0"},
        {},
        ("tools/list", "resources/list", "resources/templates/list", "prompts/list"),
    ),
    "Goose": (
        "2025-03-26",
        {"name": "goose", "version": "1.20.0"},
        {"sampling": {}, "elicitation": {}},
        ("tools/list", "prompts/list", "resources/list", "ping"),
    ),
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("counts_from", ["0", "text"])
@pytest.mark.parametrize("name", CLIENTS)
async def test_the_first_messages_of_a_client_get_the_same_answers(name: str, counts_from: str):
    version, client, abilities, methods = CLIENTS[name]

    def number(position: int) -> int | str:
        return position if counts_from == "0" else f"{name}:{position}"

    params = {"protocolVersion": version, "capabilities": abilities, "clientInfo": client}
    lines = [line("initialize", number(0), **params), line("notifications/initialized")]
    for position, method in enumerate(methods, 1):
        level = {"level": "info"} if method == "logging/setLevel" else {}
        lines.append(line(method, number(position), **level))
    results = await stored(new_host())
    alone = await messages(new_host(), lines, None)
    assert len(alone) == 1 + len(methods)
    for early in range(len(lines) + 1):
        assert unordered(await messages(new_host(), lines, results, early)) == unordered(alone)

    source = Client()
    front = Front(snapshot_of(results), source, source.writer)
    source.send(lines)
    asked = ["initialize", *(method for method in methods if method.endswith("/list"))]
    assert [method for method, _ in front.answered.values()] == asked
    front.start(lambda _: True)
    source.close()
