"""Run the wrappers that plugins put around tool calls, and contain their failures.

A wrapper that crashes is skipped for that call. A wrapper that hangs is skipped in all later calls.
If the plugin is required, the calls fail instead. No tool is called twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp.contributions.results import error_result, sendable
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import ToolError
from standards_mcp.plugin import ToolCall, ToolHandler, ToolResult

from .call import Call, CallNext
from .context import InputRequiredError

log = logging.getLogger(__name__)


class Wrappers:
    """The step that passes calls through the wrappers of all plugins."""

    def __init__(self) -> None:
        self._handler: ToolHandler = _call_tool

    def set_chain(self, build: Callable[[ToolHandler], ToolHandler]) -> None:
        """Replace the handler with `build(_call_tool)`."""
        self._handler = build(_call_tool)

    async def __call__(self, call: Call, call_next: CallNext) -> ToolResult:
        """Answer the call through all wrappers."""
        if self._handler is _call_tool:
            result: ToolResult = await call_next(call)
            return result
        return await self._handler(
            _HostCall(
                tool=call.item.declared,
                plugin=call.item.plugin,
                arguments=dict(call.arguments),
                read_only=cast("RegisteredTool", call.item).tool.read_only,
                caller=call.context.caller,
                call=call,
                inner_steps=call_next,
            )
        )


async def _call_tool(call: ToolCall) -> ToolResult:
    """Continue a call after all wrappers, with the arguments that they have set."""
    host_call = _checked_host_call(call)
    host_call.call.arguments = call.arguments
    result: ToolResult = await host_call.inner_steps(host_call.call)
    return result


@dataclass(slots=True, eq=False)
class _Progress:
    """The progress of a call in one wrapper.

    Attributes:
        has_called_next: True once the wrapper has called `Wrapper.call_next`.
        result: The result of `call_next`.
    """

    has_called_next: bool = False
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _HostCall(ToolCall):
    """A call as wrappers get it, with private fields with which the host continues the call."""

    call: Call = field(repr=False)
    inner_steps: CallNext = field(repr=False)
    progress: _Progress = field(default_factory=_Progress, repr=False)


def _checked_host_call(call: ToolCall) -> _HostCall:
    """Check that *call* is the host's own call object, and return it.

    Raises:
        TypeError: The wrapper built a call of its own.
    """
    if not isinstance(call, _HostCall):
        raise TypeError(
            "the wrapper passed on a ToolCall that it built itself; pass on the given call, or a "
            "copy from dataclasses.replace()"
        )
    return call


class Wrapper:
    """One plugin's wrapper around the calls of all tools.

    Args:
        seconds: Time limit in addition to the tool's timeout. Give inner wrappers shorter limits.
            If an inner one hangs, its own limit then expires first and the right plugin is blamed.
        is_enabled: Returns True while the plugin is enabled; a reload may disable the plugin.

    Attributes:
        handler: The plugin's handler around `call_next`, or None.
    """

    def __init__(
        self,
        plugin: str,
        call_next: ToolHandler,
        *,
        seconds: float,
        required: bool,
        is_enabled: Callable[[], bool],
    ) -> None:
        self._plugin = plugin
        self._is_skipped = False
        self._next = call_next
        self._seconds = seconds
        self._required = required
        self._is_enabled = is_enabled
        self.handler: ToolHandler | None = None

    async def __call__(self, call: ToolCall) -> ToolResult:
        """If the wrapper fails, return an error result or the tool's answer without it."""
        if self.handler is None or self._is_skipped or not self._is_enabled():
            return await self._next(call)
        call = replace(_checked_host_call(call), progress=_Progress())
        with call.call.context.within(call.call.limits.timeout + self._seconds):
            try:
                answer = await self.handler(call)
                # An unchanged tool result was validated already; validate only a new one.
                return answer if answer is call.progress.result else sendable(answer)
            except ToolError as exc:
                return error_result(exc.error_type, str(exc), exc.data)
            except InputRequiredError:
                raise
            except BaseException as exc:
                task = asyncio.current_task() if isinstance(exc, asyncio.CancelledError) else None
                if is_from_outside(exc) or (task and task.cancelling()):
                    raise
                return await self._recover(exc, call)
        return self._time_out(call)

    def _time_out(self, call: _HostCall) -> ToolResult:
        """Return the answer for a call that timed out.

        Skip this wrapper in later calls, unless its plugin is required.
        """
        log.error("a tool call wrapper timed out", extra={"plugin": self._plugin})
        # Without this, each later call would wait for the full timeout.
        self._is_skipped = not self._required
        advice = "Try again" if self._is_skipped else "Restart the server"
        # The tool may have answered before the wrapper hung: the client gets this answer.
        return call.progress.result or error_result(
            "timeout",
            f"plugin {self._plugin!r}, which wraps every call, does not answer. {advice}.",
        )

    async def _recover(self, cause: BaseException, call: _HostCall) -> ToolResult:
        extra = {"plugin": self._plugin, "tool": call.tool}
        log.error("a wrapper of tool calls crashed", exc_info=cause, extra=extra)
        # If call_next was called but did not return, the tool may have run: do not call it again.
        if self._required or (call.progress.has_called_next and call.progress.result is None):
            return error_result(
                "internal_error",
                f"plugin {self._plugin!r}, which wraps every call, failed. Try again; "
                "if it persists, the server's log says why.",
            )
        return call.progress.result or await self._next(call)

    async def call_next(self, call: ToolCall) -> ToolResult:
        """Pass a call on to the next wrapper or the tool; the plugin's handler awaits this."""
        progress = _checked_host_call(call).progress
        if progress.has_called_next:
            raise RuntimeError("a wrapper may call call_next only once")
        progress.has_called_next = True
        progress.result = await self._next(call)
        return progress.result
