"""Turn failures into messages for clients, and keep answers within their limit of tokens.

A `ToolError` is a message for the client, and so are a `ServiceError` and a plain `ValueError` of
the plugin's own code. Any other exception is a crash: it is logged under an id for the client.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

import pydantic_core

from standards_mcp._utils.exceptions import internal_error, is_from_outside, is_raised, new_incident
from standards_mcp._utils.secrets import mask, masked_data
from standards_mcp._utils.text import BYTES_PER_TOKEN, printable, text_of, tokens
from standards_mcp.contributions.base import plain_function
from standards_mcp.contributions.prompts import PromptAnswer
from standards_mcp.contributions.resources import Contents
from standards_mcp.contributions.results import error_result, is_json_of
from standards_mcp.errors import (
    ApiError,
    CrashedError,
    FilterError,
    FilterFailedError,
    InvalidInputError,
    ServiceError,
    TooLargeError,
    ToolError,
)
from standards_mcp.plugin import ToolResult

from .call import Call, CallNext, Step
from .context import InputRequiredError

log = logging.getLogger(__name__)

_NOTE_TOKENS: Final = 40
_ERROR_TOKENS: Final = 500
_SENTENCE_ENDS: Final = (".", "!", "?", ":", ";")


def masking(secrets: Callable[[], frozenset[str]]) -> Step:
    """Return the step that masks secrets in errors, but not in answers, which plugins choose.

    Errors may quote text from elsewhere, so control characters are made visible.

    Args:
        secrets: Returns the secrets of the configuration and of the loaded plugins.
    """

    async def mask_errors(call: Call, call_next: CallNext) -> Any:
        try:
            result = await call_next(call)
        except ToolError as exc:
            exc.args = (printable(mask(str(exc), secrets())),)
            exc.details = exc.details and masked_data(exc.details, secrets())
            raise
        if isinstance(result, ToolResult) and result.is_error:
            parts = (result.text, result.structured, result.notes, result.content, result.meta)
            text, structured, notes, content, meta = masked_data(parts, secrets())
            return ToolResult(
                text=text,
                structured=structured,
                is_error=True,
                notes=tuple(notes),
                content=tuple(content),
                meta=meta,
            )
        return result

    return mask_errors


async def as_results(call: Call, call_next: CallNext) -> ToolResult:
    """Answer the call of a tool; turn a failure into an error result."""
    try:
        result: ToolResult = await call_next(call)
    except ToolError as exc:
        return error_result(exc.error_type, str(exc), exc.data)
    return result


async def contain(call: Call, call_next: CallNext) -> Any:
    """Answer the call; turn exceptions other than cancellation and Ctrl-C into a `ToolError`."""
    try:
        return await call_next(call)
    except (ToolError, InputRequiredError):
        raise
    except ServiceError as exc:
        # The text of a service's error is written for users, so plugins need not translate it.
        kind = InvalidInputError if isinstance(exc, FilterError) else ApiError
        raise kind(str(exc)) from exc
    except ValueError as exc:
        if _is_meant_for_client(exc, call.function):
            raise InvalidInputError(text_of(exc)) from exc
        raise _crash(call, exc) from None
    except BaseException as exc:
        # Only if this call is cancelled, and not just a task that the tool awaited.
        task = asyncio.current_task() if isinstance(exc, asyncio.CancelledError) else None
        if is_from_outside(exc) or (task and task.cancelling()):
            raise
        # Anything else, such as sys.exit or a panic in native code, is a crash of the plugin.
        raise _crash(call, exc) from None


def _is_meant_for_client(error: ValueError, function: Callable[..., Any]) -> bool:
    """Return True if the function's own package raised the error, with a message.

    Authors raise a plain `ValueError` for a wrong argument, as a message to the client. An error of
    a library, or a subclass such as a decoding error, is about data that clients did not send and
    may not see.
    """
    if type(error) is not ValueError or not text_of(error):
        return False
    # Otherwise, the error of a built-in such as `int` would seem to be a message of the author.
    if not is_raised(error.__traceback__):
        return False
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    module: str = getattr(plain_function(function), "__module__", "")
    where: str = frame.f_globals.get("__name__", "")
    return bool(module) and where.partition(".")[0] == module.partition(".")[0]


def _crash(call: Call, cause: BaseException) -> CrashedError:
    item, incident = call.item, new_incident()
    call.record.incident = incident
    # A filter runs in calls of other plugins' tools; the log names the plugin of the filter.
    owner = cause.plugin if isinstance(cause, FilterFailedError) else item.plugin
    fields = {item.kind: item.declared, "plugin": owner, "incident": incident}
    log.error("%s crashed", item.kind, exc_info=cause, extra=fields)
    where = "" if owner == item.plugin else f" (in plugin {owner!r})"
    return CrashedError(internal_error(item.published + where, incident))


async def cap_output(call: Call, call_next: CallNext) -> ToolResult:
    """Answer the call within its limit of tokens."""
    result: ToolResult = await call_next(call)
    limit = call.limits.max_output_tokens
    return result if limit is None else capped(result, limit)


async def refuse_long(call: Call, call_next: CallNext) -> PromptAnswer | Contents:
    """Answer the call of a prompt or a resource, unless the answer is too long.

    The answer is not cut: a part of a file looks like a whole file, and has no place for a note.

    Raises:
        TooLargeError: The answer has more tokens than the limit.
    """
    answer: PromptAnswer | Contents = await call_next(call)
    limit, size = call.limits.max_output_tokens, tokens(_text_in_content(answer))
    if limit is not None and size > limit:
        raise TooLargeError(
            f"{call.item.published} has about {size:,} tokens, more than the {limit:,} allowed "
            f"here. The administrator can raise max_output_tokens of this {call.item.kind}."
        )
    return answer


def capped(result: ToolResult, limit: int) -> ToolResult:
    """Return *result* in at most about *limit* tokens, with a note about the cut.

    Text is cut at the end of a line. Structured content keeps its shape: the largest list of its
    top level loses its last items, and its ``message`` says so.
    """
    if result.is_error:  # clients need the reason, however low the limit is
        limit = max(limit, _ERROR_TOKENS)
    text = "\n".join(map(_text_of, result.content)) if result.content else result.text
    size, structured = tokens(text), result.structured
    if structured is None:
        return result if size <= limit else _with_short_text(result, size, limit)
    full = tokens(_json(structured))
    if max(size, full) <= limit:
        return result
    short, note = _shortened(structured, limit) if full > limit else (structured, "")
    if not short:
        return error_result(
            "too_large",
            f"The answer has about {max(size, full):,} tokens, more than the {limit:,} allowed "
            "here. Ask for less, or raise its max_output_tokens in the configuration.",
        )
    notes = (*result.notes, note) if note else result.notes
    if note and (result.content or is_json_of(result.text, structured)):
        # The shorter JSON replaces content blocks, or a text that was the JSON of the structure.
        return replace(result, text=_json(short), structured=short, content=(), notes=notes)
    cut = replace(result, structured=short, notes=notes)
    return cut if size <= limit else _with_short_text(cut, size, limit, is_noted=bool(note))


def _with_short_text(
    result: ToolResult, size: int, limit: int, *, is_noted: bool = False
) -> ToolResult:
    """Return *result* with its text, or its content blocks, cut to *limit* tokens.

    Images and other binary blocks count no tokens, and stay.
    """
    room = limit * BYTES_PER_TOKEN
    note = f"Cut to about {limit:,} of {size:,} tokens. Ask for less."
    notes = result.notes if is_noted else (*result.notes, note)
    if not result.content:
        return replace(result, text=_cut(result.text, room), notes=notes)
    blocks: list[Mapping[str, Any]] = []
    for block in result.content:
        kept = _cut(_text_of(block), room)
        room -= len(kept.encode())
        blocks.append(_with_text(block, kept))
    return replace(result, content=tuple(blocks), notes=notes)


def _cut(text: str, size: int) -> str:
    """Return the beginning of *text* in at most *size* bytes of UTF-8.

    The beginning ends with a whole line, unless that would remove half of it.
    """
    encoded = text.encode()
    if len(encoded) <= size:
        return text
    kept = encoded[: max(size, 0)].decode(errors="ignore")
    whole, line_end, _ = kept.rpartition("\n")
    return whole if line_end and len(whole) >= len(kept) // 2 else kept


def _text_in_content(answer: PromptAnswer | Contents) -> str:
    """Return the text of an answer, without images and other bytes."""
    if isinstance(answer, PromptAnswer):
        return "\n".join(_text_of(m.content) if m.content else m.text for m in answer.messages)
    if answer.parts is not None:
        return "\n".join(map(_text_of, answer.parts))
    return answer.data if isinstance(answer.data, str) else ""


def _text_of(block: Mapping[str, Any]) -> str:
    """Return the text of a content block; in a resource it is one level deeper."""
    inner = block.get("resource")
    holder = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else block
    text = holder.get("text")
    return text if isinstance(text, str) else ""


def _with_text(block: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    if "resource" in block and _text_of(block):
        return {**block, "resource": {**block["resource"], "text": text}}
    return {**block, "text": text} if "text" in block else block


def _shortened(structured: dict[str, Any], limit: int) -> tuple[dict[str, Any], str]:
    """Return the structure with as many items of its largest list as fit, and a note about it.

    The structure is empty if no item fits.
    """
    lists = {key: tokens(_json(value)) for key, value in structured.items() if type(value) is list}
    if not lists:
        return {}, ""
    key = max(lists, key=lists.__getitem__)
    items: list[Any] = structured[key]
    has_message = isinstance(structured.get("message"), str)
    room = limit - tokens(_json({**structured, key: []})) - _NOTE_TOKENS * has_message
    count = 0
    for item in items:
        room -= tokens(_json(item))
        if room < 0:
            break
        count += 1
    if not count:
        return {}, ""
    note = (
        f"{key}: the first {count} of {len(items)}; the rest was cut to stay within about "
        f"{limit:,} tokens. Ask for less to see them all."
    )
    short = {**structured, key: items[:count]}
    # Programs that read only the structure find the note in its message.
    if has_message:
        message = structured["message"].strip()
        end = "" if message.endswith(_SENTENCE_ENDS) else "."
        short["message"] = f"{message}{end} {note}" if message else note
    return short, note


def _json(data: Any) -> str:
    return pydantic_core.to_json(data).decode()
