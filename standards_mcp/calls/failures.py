"""Turn exceptions of plugins into messages with a next step for the client.

A `ToolError` is a message for the client. So is a `ServiceError`, which is translated here for all
plugins. Anything else is a crash: the log has it under an id, and the client gets the id.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from standards_mcp._utils.exceptions import internal_error, is_from_outside, is_raised, new_incident
from standards_mcp._utils.secrets import mask, masked_data
from standards_mcp._utils.text import printable, text_of
from standards_mcp.contributions.base import plain_function
from standards_mcp.contributions.results import error_result
from standards_mcp.errors import (
    ApiError,
    CrashedError,
    FilterError,
    FilterFailedError,
    InvalidInputError,
    ServiceError,
    ToolError,
)
from standards_mcp.plugin import ToolResult

from .call import Call, CallNext
from .context import InputRequiredError

log = logging.getLogger(__name__)


class Masking:
    """Masks secrets in the messages of errors.

    Args:
        secrets: Returns the secrets of the configuration and of the loaded plugins.
    """

    def __init__(self, secrets: Callable[[], frozenset[str]]) -> None:
        self._secrets = secrets

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Answer the call; mask errors only, because the plugin chooses its answers itself.

        Errors may quote text from elsewhere, so control characters are made visible.
        """
        try:
            result = await call_next(call)
        except ToolError as exc:
            exc.args = (printable(mask(str(exc), self._secrets())),)
            exc.details = exc.details and masked_data(exc.details, self._secrets())
            raise
        if isinstance(result, ToolResult) and result.is_error:
            masked = partial(masked_data, secrets=self._secrets())
            return replace(
                result,
                text=masked(result.text),
                structured=masked(result.structured),
                notes=tuple(masked(result.notes)),
                content=tuple(masked(result.content)),
                meta=masked(result.meta),
            )
        return result


async def as_results(call: Call, call_next: CallNext) -> ToolResult:
    """Answer the call of a tool; turn a failure into an error result."""
    try:
        result: ToolResult = await call_next(call)
    except ToolError as exc:
        return error_result(exc.error_type, str(exc), exc.data)
    return result


async def contain(call: Call, call_next: CallNext) -> Any:
    """Answer the call; treat all but cancellation, Ctrl-C and a `ToolError` as a crash."""
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
        # Anything else, such as sys.exit or a panic in native code, is a crash of the plugin.
        if is_from_outside(exc) or (isinstance(exc, asyncio.CancelledError) and _is_cancelled()):
            raise
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


def _is_cancelled() -> bool:
    """Return True if this call is cancelled, and not another task that the tool awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _crash(call: Call, cause: BaseException) -> CrashedError:
    item, incident = call.item, new_incident()
    call.record.incident = incident
    # A filter runs in calls of other plugins' tools; the log names the plugin of the filter.
    owner = cause.plugin if isinstance(cause, FilterFailedError) else item.plugin
    fields = {item.kind: item.declared, "plugin": owner, "incident": incident}
    log.error("%s crashed", item.kind, exc_info=cause, extra=fields)
    where = "" if owner == item.plugin else f" (in plugin {owner!r})"
    return CrashedError(internal_error(item.published + where, incident))
