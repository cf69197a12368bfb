"""Skills as a client uses them: it reads their texts, and calls the tools that these name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mcp import Client
from mcp_types import TextResourceContents


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
