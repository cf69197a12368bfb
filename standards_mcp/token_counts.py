"""Counts what a model reads in tokens, and cuts answers that are longer than a client takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from .declarations import RegisteredTool
from .plugin import ToolResult
from .signatures import error_result

BYTES_PER_TOKEN: Final = 4
"""A rule of thumb for English text and JSON; every model counts in its own way."""


def tokens(text: str) -> int:
    """Return about how many tokens a model reads *text* as."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def definition_tokens(item: RegisteredTool) -> int:
    """Return about how many tokens of a model's context the definition of a tool takes."""
    return tokens(_text(item.definition))


def capped(result: ToolResult, limit: int) -> ToolResult:
    """Return *result* in at most about *limit* tokens, with a note of what was cut.

    Structured content keeps its shape: the longest list of its top level loses its last items.
    """
    size = tokens(result.text)
    if result.content and result.structured:
        size = max(size, tokens(_text(result.structured)))
    if size <= limit:
        return result
    if result.structured is None:
        kept = result.text.encode()[: limit * BYTES_PER_TOKEN].decode(errors="ignore")
        note = f"Cut to about {limit:,} of {size:,} tokens. Ask for less."
        blocks = _shortened_content(result, limit)
        return replace(result, text=kept, content=blocks, notes=(*result.notes, note))
    return _shortened(result, result.structured, limit) or error_result(
        "too_large",
        f"The answer has about {size:,} tokens, more than the {limit:,} allowed here. Ask for "
        "less, or raise [tools] max_output_tokens.",
    )


def _shortened_content(result: ToolResult, limit: int) -> tuple[Mapping[str, Any], ...]:
    """Return the blocks of *result* with their texts cut; what is no text costs no tokens here."""
    room = limit * BYTES_PER_TOKEN

    def cut(block: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal room
        if isinstance(inner := block.get("resource"), Mapping):
            return {**block, "resource": cut(cast("Mapping[str, Any]", inner))}
        if not isinstance(text := block.get("text"), str):
            return block
        kept = text.encode()[:room]
        room -= len(kept)
        return {**block, "text": kept.decode(errors="ignore")}

    return tuple(map(cut, result.content))


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
    notes = (*result.notes, note)
    return replace(result, text=_text(shorter), structured=shorter, notes=notes, content=())


def _text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)
