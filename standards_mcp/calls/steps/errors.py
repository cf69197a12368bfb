"""What becomes of errors: plugins raise, clients get a message that says what to do next.

A `ToolError` is meant for the client. A `CatalogError` is, too: it is translated here, once for all
plugins. Whatever else a plugin raises is a crash: the log has it, under an id that the client gets.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from standards_mcp._utils.secrets import mask, masked_data
from standards_mcp.calls.call import Call, CallNext
from standards_mcp.calls.context import InputRequiredError
from standards_mcp.catalog.errors import CatalogError, FilterError
from standards_mcp.contributions.results import error_result
from standards_mcp.errors import (
    ApiError,
    CrashedError,
    FilterFailedError,
    InvalidInputError,
    ToolError,
)
from standards_mcp.plugin import ToolResult

log = logging.getLogger(__name__)


class Masking:
    """Lets no secret out with the message of an error.

    Args:
        secrets: Returns those of the configuration and of the loaded plugins.
    """

    def __init__(self, secrets: Callable[[], frozenset[str]]) -> None:
        self._secrets = secrets

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Answer the call; only errors are masked, since answers are the plugin's own business."""
        try:
            result = await call_next(call)
        except ToolError as exc:
            exc.args = (mask(str(exc), self._secrets()),)
            raise
        if isinstance(result, ToolResult) and result.is_error:
            return _masked(result, self._secrets())
        return result


async def as_results(call: Call, call_next: CallNext) -> ToolResult:
    """Answer the call of a tool with an error in its envelope, where it fails."""
    try:
        result: ToolResult = await call_next(call)
    except ToolError as exc:
        return error_result(exc.error_type, str(exc))
    return result


async def contain(call: Call, call_next: CallNext) -> Any:
    """Answer the call; let nothing escape but cancellation and a `ToolError`."""
    try:
        return await call_next(call)
    except (ToolError, KeyboardInterrupt, GeneratorExit, InputRequiredError):
        raise
    except CatalogError as exc:
        raise translated(exc) from exc
    except BaseException as exc:
        # Whatever else it is, such as sys.exit or a panic in native code, is the plugin's crash.
        if isinstance(exc, asyncio.CancelledError) and _is_cancelled():
            raise
        raise _crash(call, exc) from None


def translated(error: CatalogError) -> ToolError:
    """Return an error of the catalog as one of a tool."""
    kind = InvalidInputError if isinstance(error, FilterError) else ApiError
    return kind(str(error))


def _masked(result: ToolResult, secrets: frozenset[str]) -> ToolResult:
    structured = result.structured and masked_data(result.structured, secrets)
    content = tuple(masked_data(block, secrets) for block in result.content)
    return replace(result, text=mask(result.text, secrets), structured=structured, content=content)


def _is_cancelled() -> bool:
    """Tell whether the call is cancelled, or a tool let another task's cancellation escape."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _crash(call: Call, cause: BaseException) -> CrashedError:
    item, incident = call.item, uuid.uuid4().hex[:12]
    call.record.incident = incident
    # A filter is called with the tools of other plugins, which are not to blame.
    blamed = cause.plugin if isinstance(cause, FilterFailedError) else item.plugin
    fields = {item.kind: item.declared, "plugin": blamed, "incident": incident}
    log.error("%s crashed", item.kind, exc_info=cause, extra=fields)
    where = "" if blamed == item.plugin else f" of plugin {blamed!r}"
    return CrashedError(
        f"{item.published} failed with an internal error{where} (id {incident}). Try again; if it "
        "persists, the server's log has the details under this id."
    )
