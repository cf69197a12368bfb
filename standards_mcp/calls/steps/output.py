"""Counts what a model reads in tokens, and cuts answers that are longer than a client takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.contributions.results import error_result
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.plugin import ToolResult

BYTES_PER_TOKEN: Final = 4
"""A rule of thumb for English text and JSON; every model counts in its own way."""


def tokens(text: str) -> int:
    """Return about how many tokens a model reads *text* as."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def definition_tokens(item: RegisteredTool) -> int:
    """Return about how many tokens of a model's context the definition of a tool takes."""
    return tokens(_text(item.definition))


async def cap_output(call: Call, call_next: CallNext) -> ToolResult:
    """Answer the call with no more tokens than its limit."""
    return capped(await call_next(call), call.limits.max_output_tokens)


def capped(result: ToolResult, limit: int) -> ToolResult:
    """Return *result* in at most about *limit* tokens, with a note of what was cut.

    Structured content keeps its shape: the longest list of its top level loses its last items.
    """
    if result.content:
        return _capped_content(result, limit)
    size = tokens(result.text)
    if size <= limit:
        return result
    if result.structured is None:
        kept = result.text.encode()[: limit * BYTES_PER_TOKEN].decode(errors="ignore")
        note = f"Cut to about {limit:,} of {size:,} tokens. Ask for less."
        return replace(result, text=kept, notes=(*result.notes, note))
    return _shortened(result, result.structured, limit) or error_result(
        "too_large",
        f"The answer has about {size:,} tokens, more than the {limit:,} allowed here. Ask for "
        "less, or raise its max_output_tokens in the configuration.",
    )


def _capped_content(result: ToolResult, limit: int) -> ToolResult:
    """Return *result* with its texts cut, in place; images and the like cost no tokens here.

    A structure that is too long is shortened, and then stands for the blocks.
    """
    if result.structured and tokens(_text(result.structured)) > limit:
        plain = replace(result, text=_text(result.structured), content=())
        return capped(plain, limit)
    size = tokens("\n".join(map(_text_of, result.content)))
    if size <= limit:
        return result
    room = limit * BYTES_PER_TOKEN
    blocks: list[Mapping[str, Any]] = []
    for block in result.content:
        kept = _text_of(block).encode()[:room]
        room -= len(kept)
        blocks.append(_with_text(block, kept.decode(errors="ignore")))
    note = f"Cut to about {limit:,} of {size:,} tokens. Ask for less."
    return replace(result, content=tuple(blocks), notes=(*result.notes, note))


def _text_of(block: Mapping[str, Any]) -> str:
    """Return the text of a content block; a resource has it in an object of its own."""
    inner = block.get("resource")
    holder = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else block
    text = holder.get("text")
    return text if isinstance(text, str) else ""


def _with_text(block: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    if "resource" in block and _text_of(block):
        return {**block, "resource": {**block["resource"], "text": text}}
    return {**block, "text": text} if "text" in block else block


def _shortened(result: ToolResult, structured: dict[str, Any], limit: int) -> ToolResult | None:
    """Return *result* with as many items of its longest list as fit, or None if one is too many."""
    lists = [key for key, value in structured.items() if isinstance(value, list)]
    if not lists:
        return None
    key = max(lists, key=lambda name: len(structured[name]))
    items = cast("list[Any]", structured[key])
    room = limit - tokens(_text({**structured, key: []}))
    count = 0
    for item in items:
        room -= tokens(_text(item))
        if room < 0:
            break
        count += 1
    if not count:
        return None
    note = (
        f"{key}: the first {count} of {len(items)}; the rest was cut to stay within about "
        f"{limit:,} tokens. Ask for less to see them all."
    )
    shorter = {**structured, key: items[:count]}
    return replace(result, text=_text(shorter), structured=shorter, notes=(*result.notes, note))


def _text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)
