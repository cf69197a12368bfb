"""What plugins put around every tool call, kept from doing harm to the calls of other plugins.

A wrapper that crashes is passed by for that call, and one that keeps a call waiting is left out
from then on; but where its plugin is required, the calls fail instead. No tool is called twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, cast

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.calls.context import InputRequiredError
from standards_mcp.contributions.results import error_result, sendable
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import ToolError
from standards_mcp.plugin import ToolCall, ToolHandler, ToolResult

log = logging.getLogger(__name__)

WRAPPER_SECONDS: Final = 5.0
"""How long all wrappers may keep a call, beside the time that the tool has."""


class Wrappers:
    """Sends calls through the wrappers of all plugins; without any, straight on."""

    def __init__(self) -> None:
        self._handler: ToolHandler | None = None

    def wrap(self, wrapper: Callable[[ToolHandler], ToolHandler]) -> None:
        """Put around calls what *wrapper* makes of their handler."""
        innermost: ToolHandler = _call_tool
        handler = wrapper(innermost)
        self._handler = None if handler is innermost else handler

    async def __call__(self, call: Call, call_next: CallNext) -> ToolResult:
        """Answer the call through all wrappers, which have a time of their own."""
        if self._handler is None:
            result: ToolResult = await call_next(call)
            return result
        wrapped = HostCall(
            tool=call.item.declared,
            plugin=call.item.plugin,
            arguments=dict(call.arguments),
            read_only=cast("RegisteredTool", call.item).tool.read_only,
            caller=call.context.caller,
            call=call,
            call_next=call_next,
        )
        with call.context.within(call.limits.timeout + WRAPPER_SECONDS):
            return await self._handler(wrapped)
        if wrapped.blame.wrapper is None:
            return error_result("timeout", f"{call.item.published} did not answer. Try again.")
        answer = wrapped.blame.wrapper.leave_out()
        return wrapped.blame.result or answer


async def _call_tool(call: ToolCall) -> ToolResult:
    """Answer a call behind all wrappers, with the arguments that they made of it."""
    made = of_host(call)
    made.call.arguments = call.arguments
    result: ToolResult = await made.call_next(made.call)
    return result


@dataclass(slots=True)
class _Progress:
    """How far one wrapper is with one call.

    Attributes:
        inside: Whether what the wrapper calls is running.
        result: What came back from there.
    """

    called: bool = False
    inside: bool = False
    result: ToolResult | None = None


@dataclass(slots=True)
class _Blame:
    """Which wrapper had a call when its time was over, and what the tool had answered by then."""

    wrapper: Wrapper | None = None
    result: ToolResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall(ToolCall):
    """A call as wrappers get it; they pass on unseen what the host needs to go on."""

    call: Call = field(repr=False)
    call_next: CallNext = field(repr=False)
    progress: _Progress = field(default_factory=_Progress, repr=False)
    blame: _Blame = field(default_factory=_Blame, repr=False)


class Wrapper:
    """One plugin's wrapper around the calls of all tools.

    Args:
        is_enabled: Tells whether the configuration has the plugin enabled still.
    """

    def __init__(
        self,
        plugin: str,
        call_next: ToolHandler,
        *,
        required: bool,
        is_enabled: Callable[[], bool],
    ) -> None:
        self.plugin = plugin
        self.left_out = False
        self._next = call_next
        self._required = required
        self._is_enabled = is_enabled
        self._handler: ToolHandler | None = None

    @property
    def is_used(self) -> bool:
        """Whether the plugin puts anything around calls."""
        return self._handler is not None

    def use(self, handler: object) -> None:
        """Take the handler that the plugin puts around `call_next`.

        Raises:
            TypeError: It is none.
        """
        if not callable(handler):
            raise TypeError(f"wrap_tool_call returned a {type(handler).__name__}")
        self._handler = cast("ToolHandler", handler)

    async def __call__(self, call: ToolCall) -> ToolResult:
        """Answer a call; whatever the wrapper does, only cancellation escapes."""
        if self._handler is None or self.left_out or not self._is_enabled():
            return await self._next(call)
        call = replace(of_host(call), progress=_Progress())
        try:
            return sendable(await self._handler(call))
        except ToolError as exc:
            return error_result(exc.error_type, str(exc))
        except (KeyboardInterrupt, GeneratorExit, InputRequiredError):
            raise
        except BaseException as exc:
            task = asyncio.current_task()
            if isinstance(exc, asyncio.CancelledError) and task and task.cancelling():
                if not call.progress.inside:
                    call.blame.wrapper, call.blame.result = self, call.progress.result
                raise
            return await self._recover(exc, call)

    def leave_out(self) -> ToolResult:
        """Take note that the wrapper kept a call until its time was over; return its answer."""
        name = self.plugin
        log.error("a wrapper of tool calls keeps them waiting", extra={"plugin": name})
        self.left_out = not self._required
        advice = "Try again" if self.left_out else "Restart the server"
        return error_result(
            "timeout", f"plugin {name!r}, which stands around every call, hangs. {advice}."
        )

    async def _recover(self, cause: BaseException, call: HostCall) -> ToolResult:
        extra = {"plugin": self.plugin, "tool": call.tool}
        log.error("a wrapper of tool calls crashed", exc_info=cause, extra=extra)
        if self._required or (call.progress.called and call.progress.result is None):
            return error_result(
                "internal_error",
                f"plugin {self.plugin!r}, which stands around every call, failed. Try again; "
                "if it persists, the server's log says why.",
            )
        return call.progress.result or await self._next(call)

    async def call_next(self, call: ToolCall) -> ToolResult:
        """Answer a call without the plugin: what its handler awaits."""
        progress = of_host(call).progress
        if progress.called:
            raise RuntimeError("a wrapper may hand on a call once")
        progress.called = progress.inside = True
        try:
            progress.result = await self._next(call)
        finally:
            progress.inside = False
        return progress.result


def of_host(call: ToolCall) -> HostCall:
    """Return a call as the host made it.

    Raises:
        TypeError: A wrapper made it.
    """
    if not isinstance(call, HostCall):
        raise TypeError("hand on the call that was given, changed by dataclasses.replace")
    return call
