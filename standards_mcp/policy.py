"""What stands around every tool call: validation, a deadline, errors as results, one log line."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
import uuid
from collections.abc import Mapping
from typing import Any, cast

import anyio

from .declarations import RegisteredTool
from .errors import FilterFailedError, ToolError
from .plugin import ToolResult
from .signatures import error_result
from .threads import PluginThreads

log = logging.getLogger(__name__)


async def run_tool(
    item: RegisteredTool,
    arguments: Mapping[str, Any],
    default_timeout: float,
    threads: PluginThreads,
) -> ToolResult:
    """Call a tool and return what it came to; only cancellation escapes.

    A sync function runs in one of its plugin's *threads*; when it overruns its deadline it is
    abandoned, since a thread cannot be stopped. What a crashed tool raised goes to the log, under
    an id that the client gets.
    """
    started = time.perf_counter()
    timeout = item.tool.timeout or default_timeout
    result = None
    try:
        result = await _guarded(item, arguments, timeout, threads)
        return result
    finally:
        _log_call(item, arguments, result, time.perf_counter() - started)


async def _guarded(
    item: RegisteredTool,
    arguments: Mapping[str, Any],
    timeout: float,  # noqa: ASYNC109
    threads: PluginThreads,
) -> ToolResult:
    try:
        with anyio.move_on_after(timeout):
            value = await _invoke(item, item.arguments.validate(arguments), threads)
            return item.result.render(value)
    except ToolError as exc:
        return error_result(exc.error_type, str(exc))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as exc:
        # Whatever else it is, such as sys.exit or a panic in native code, is the tool's crash.
        if isinstance(exc, asyncio.CancelledError) and _is_cancelled():
            raise
        return _crash(item, exc)
    message = (
        f"{item.published} did not answer within {timeout:g} s. Try again with a smaller "
        "request, or raise [tools] timeout in the configuration."
    )
    return error_result("timeout", message)


def _is_cancelled() -> bool:
    """Tell whether the call is cancelled, or a tool let another task's cancellation escape."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _invoke(item: RegisteredTool, keywords: dict[str, Any], threads: PluginThreads) -> Any:
    call = functools.partial(item.tool.function, **keywords)
    if inspect.iscoroutinefunction(item.tool.function):
        return await call()
    value = await threads.run(call)
    return await value if inspect.isawaitable(value) else value


def _crash(item: RegisteredTool, cause: BaseException) -> ToolResult:
    incident = uuid.uuid4().hex[:12]
    blamed = cause.plugin if isinstance(cause, FilterFailedError) else item.plugin
    fields = {"tool": item.tool.name, "plugin": blamed, "incident": incident}
    log.error("tool crashed", exc_info=cause, extra=fields)
    where = "" if blamed == item.plugin else f" of plugin {blamed!r}"
    message = (
        f"{item.published} failed with an internal error{where} (id {incident}). Try again; if it "
        "persists, the server's log has the details under this id."
    )
    return error_result("internal_error", message)


def _log_call(
    item: RegisteredTool, arguments: Mapping[str, Any], result: ToolResult | None, seconds: float
) -> None:
    fields: dict[str, Any] = {
        "tool": item.tool.name,
        "plugin": item.plugin,
        "duration_ms": round(seconds * 1000, 2),
        "outcome": _outcome(result),
    }
    results: object = result.structured.get("results") if result and result.structured else None
    if isinstance(results, list) and fields["outcome"] == "ok":
        fields["results"] = len(cast("list[object]", results))
    if log.isEnabledFor(logging.DEBUG):
        fields["arguments"] = dict(arguments)
    log.info("tool call", extra=fields)


def _outcome(result: ToolResult | None) -> str:
    if result is None:
        return "cancelled"
    if not result.is_error:
        return "ok"
    return str((result.structured or {}).get("error_type", "error"))
