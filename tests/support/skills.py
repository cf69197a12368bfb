"""Skills as a client uses them: it reads their texts, and calls the tools that these name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mcp import Client
from mcp_types import TextResourceContents

from standards_mcp.calls.context import LOCAL, Principal
from standards_mcp.host import Host

from .conversations import conversation, request

PREFIX = "io.modelcontextprotocol"
MODERN_META = {
    f"{PREFIX}/protocolVersion": "2026-07-28",
    f"{PREFIX}/clientInfo": {"name": "test", "version": "1"},
    f"{PREFIX}/clientCapabilities": {},
}
"""The `_meta` of a request of the newest generation."""


async def asked(
    host: Host,
    meta: Mapping[str, Any],
    *requests: tuple[str, dict[str, Any]],
    caller: Principal = LOCAL,
) -> list[dict[str, Any]]:
    """Return the results, or errors, of requests; without *meta*, of an earlier generation."""
    envelope = {"_meta": meta} if meta else {}
    lines = [
        request(number, method, **params, **envelope)
        for number, (method, params) in enumerate(requests, 1)
    ]
    answers = await conversation(host, *lines, opens=not meta, principal=caller, until=len(lines))
    found = [answers[number] for number in range(len(lines) + 1) if number in answers]
    return [answer["result"] if "result" in answer else answer["error"] for answer in found]


async def skill_text(client: Client, name: str, file: str = "SKILL.md") -> str:
    """Read the text of a skill, or of another of its files."""
    (content,) = (await client.read_resource(f"skill://{name}/{file}")).contents
    assert isinstance(content, TextResourceContents)
    return content.text


def steps(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls in the text of a skill: the last tool named before each block of JSON."""
    *blocks, rest = re.split(r"```json\n(.*?)```", text, flags=re.DOTALL)
    assert "```json" not in rest
    calls, tool = [], ""
    for before, arguments in zip(blocks[::2], blocks[1::2], strict=True):
        named = re.findall(r"[Cc]all\s+`(\w+)`", before)
        tool = named[-1] if named else tool
        calls.append((tool, json.loads(arguments)))
    return calls


async def answer(client: Client, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a tool, and return its structured result."""
    result = await client.call_tool(tool, dict(arguments))
    assert not result.is_error, result.content
    assert result.structured_content
    return result.structured_content
