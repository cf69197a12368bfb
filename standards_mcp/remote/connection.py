"""A supervised connection to another MCP server: made when it is needed, and again after a failure.

Each connection lives in a task of its own, which holds the process or the HTTP session. Calls come
from other tasks; one that is cancelled cancels the request at the other server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, cast

import anyio
import mcp_types as types
from mcp import MCPError
from pydantic import TypeAdapter, ValidationError

from standards_mcp._utils.text import describe_exception
from standards_mcp.calls.context import HostContext, Unattended
from standards_mcp.errors import ApiError

from .elicitation import Callers, next_responses
from .session import ASKS, Live, RawTool, is_closed, negotiate, open_session, why_not_valid
from .tool_list import ToolList

log = logging.getLogger(__name__)


LONGEST_WAIT: Final = 60.0
"""Seconds until a server that keeps failing is tried again; a run of so long counts as healthy."""

_SESSION_LOST: Final = "Session terminated"  # how the SDK says that an HTTP server forgot us

_END_SECONDS: Final = 10.0

_LEAVE_SECONDS: Final = 1.0


_OBJECT: Final[Any] = TypeAdapter(dict[str, Any])  # a result as it came, unlike the SDK's models


class Target(Protocol):
    """What is connected to: a process to start or an address."""

    @property
    def ending(self) -> str:
        """How the last connection ended, or an empty string."""
        ...

    def open(self) -> AbstractAsyncContextManager[Any]:
        """Return the streams of a new connection."""
        ...

    def explain(self, error: BaseException) -> str:
        """Return what is wrong and what to do, where the error itself does not say it."""
        ...


class Connection:
    """One MCP server, connected to while calls need it.

    Args:
        name: What the log calls it.
        title: What errors call it.
        start_timeout: Seconds that it may take to start and to list its tools.
        on_tools: Told the tools whenever they were listed: all that it has, as it spells them.
    """

    def __init__(
        self,
        name: str,
        title: str,
        connect: Callable[[], Target],
        start_timeout: float,
        on_tools: Callable[[list[RawTool]], None],
    ) -> None:
        self._name = name
        self._title = title
        self._connect = connect
        self._start_timeout = start_timeout
        self._tools = ToolList(name, on_tools)
        self._task: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Live] | None = None
        self._target: Target | None = None
        self._callers = Callers()
        self._first_call = asyncio.Lock()
        self._is_unused = True
        self._asks = False
        self._failures = 0
        self._retry_at = 0.0
        self.problem = ""

    async def open(self) -> Live:
        """Return the connection, connecting where there is none.

        Raises:
            ApiError: It cannot be connected to, or failed and is not tried again yet.
        """
        if self._task is None or self._task.done():
            self._check_patience()
            self._opened = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._opened), name=self._title)
        assert self._opened  # noqa: S101  - set with the task
        # Who waits may give up; the server starts on for those that come later.
        return await asyncio.shield(self._opened)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], caller: HostContext | None = None
    ) -> dict[str, Any]:
        """Return the result of a tool as the server spelt it.

        Args:
            caller: Who is told of progress and asked; by default nobody.

        Raises:
            ApiError: There was no answer, or one that is none; the message says what to do.
            CannotAskError: The server asks, and the caller cannot be asked.
            InputRequiredError: The caller's client asks, and calls again.
        """
        caller = caller or Unattended()
        turn = caller.responses
        while True:
            params = types.CallToolRequestParams(
                name=name,
                arguments=dict(arguments),
                input_responses=turn.replies,
                request_state=turn.state,
                _meta=cast("types.RequestParamsMeta", {ASKS: caller.can_ask}),
            )
            result = await self._request(types.CallToolRequest(params=params), caller)
            if not (following := await next_responses(result, caller, self._title)):
                return result
            turn = following

    async def _request(
        self, request: types.Request[Any, Any], caller: HostContext
    ) -> dict[str, Any]:
        live, task = await self._open_for(caller), self._task
        try:
            return await self._send(live, request, caller)
        except MCPError as exc:
            if exc.message != _SESSION_LOST:
                raise await self._failure(live, task, exc) from None
        # A server that has forgotten a session has not done what was asked of it there.
        await self._leave(live, task)
        live, task = await self._open_for(caller), self._task
        try:
            return await self._send(live, request, caller)
        except MCPError as exc:
            raise await self._failure(live, task, exc) from None

    async def _leave(self, live: Live, task: asyncio.Task[None] | None) -> None:
        """End a session that the server has forgotten, once its other calls have heard so, too."""
        with anyio.move_on_after(_LEAVE_SECONDS):
            await self._callers.all_answered()
        live.dispatcher.give_up("the server ended the session")
        await self.excuse_end(task)

    async def _send(
        self, live: Live, request: types.Request[Any, Any], caller: HostContext
    ) -> dict[str, Any]:
        report: Any = caller.report_progress
        try:
            with self._callers.calling(caller):
                result: dict[str, Any] = await live.session.send_request(
                    request, _OBJECT, progress_callback=report
                )
        except ValidationError as exc:
            raise ApiError(
                f"the answer of {self._title} is not of the protocol ({why_not_valid(exc)}). Tell "
                "whoever maintains it."
            ) from None
        return result

    async def _failure(
        self, live: Live, task: asyncio.Task[None] | None, cause: MCPError
    ) -> ApiError:
        """Return what a call comes to that a server did not answer."""
        if not is_closed(cause):
            why = self._target.explain(cause) if self._target else ""
            return ApiError(f"{self._title} refused it: {why or cause.message}")
        live.dispatcher.give_up(cause.message)
        await self._wait_for_end(task)
        return ApiError(
            f"{self._title} failed during the call: {self.problem or cause.message}. Whether the "
            "call had an effect is not known; what it wrote is in the log. It is started again "
            "when called."
        )

    async def _open_for(self, caller: HostContext) -> Live:
        """Return the connection, made anew where the first caller could be asked more."""
        async with self._first_call:
            live = await self.open()
            if caller.can_ask_midway and not self._asks and live.is_told_once and self._is_unused:
                self._asks = True
                await self.aclose()
                live = await self.open()
            self._is_unused = False
        return live

    async def aclose(self) -> None:
        """End the connection, and the process with it."""
        if self._task and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_END_SECONDS)

    async def excuse_end(self, task: asyncio.Task[None] | None = None) -> None:
        """Wait for the end of what was ended on purpose; the next call starts it without delay.

        Args:
            task: That of a connection; by default the present one.
        """
        await self._wait_for_end(task or self._task)
        self._failures, self._retry_at = 0, 0.0

    async def _wait_for_end(self, task: asyncio.Task[None] | None) -> None:
        if task:
            await asyncio.wait({task}, timeout=_END_SECONDS)

    def _check_patience(self) -> None:
        seconds = self._retry_at - time.monotonic()
        if seconds > 0:
            raise ApiError(
                f"{self._title} is not running: {self.problem}. It is started again when "
                f"called in {max(1, round(seconds))} s or later; what it wrote is in the log."
            )

    async def _run(self, opened: asyncio.Future[Live]) -> None:
        """Hold one connection from its start to its end."""
        began = time.monotonic()
        self._target = target = self._connect()
        try:
            async with self._session(target) as live:
                opened.set_result(live)
                self.problem = ""
                log.info("started", extra={"plugin": self._name})
                await self._tools.follow(live)
            reason = target.ending or live.dispatcher.failure or "the connection was closed"
        except Exception as exc:  # noqa: BLE001  - whatever the transport or the server raises
            reason = self._reason(_leaf(exc), target)
        except asyncio.CancelledError:
            opened.cancel()
            raise
        self._note_end(reason, time.monotonic() - began)
        if not opened.done():
            opened.set_exception(ApiError(f"{self._title} did not start: {reason}"))
            opened.exception()  # perhaps nobody waits for it any more

    @asynccontextmanager
    async def _session(self, target: Target) -> AsyncGenerator[Live]:
        self._is_unused = True
        async with (
            target.open() as streams,
            open_session(streams, self._tools.hear, self._callers.ask, asks=self._asks) as live,
        ):
            with anyio.fail_after(self._start_timeout):
                await negotiate(live.session)
                await self._tools.learn(live)
            yield live

    def _reason(self, exc: BaseException, target: Target) -> str:
        if isinstance(exc, TimeoutError):
            return f"it did not answer within {self._start_timeout:g} s of its start"
        if explained := target.explain(exc):
            return explained
        if isinstance(exc, MCPError):
            return (target.ending if is_closed(exc) else "") or exc.message
        if isinstance(exc, ValidationError):
            return f"its answer is not of the protocol ({why_not_valid(exc)})"
        return str(exc) if isinstance(exc, ApiError) else describe_exception(exc)

    def _note_end(self, reason: str, seconds: float) -> None:
        self.problem = reason
        self._failures = 1 if seconds > LONGEST_WAIT else self._failures + 1
        wait = min(LONGEST_WAIT, 2.0 ** (self._failures - 1))
        self._retry_at = time.monotonic() + wait
        log.warning(
            "ended",
            extra={"plugin": self._name, "reason": reason, "wait": wait},
        )


def _leaf(exc: BaseException) -> BaseException:
    """Return what was raised first; task groups wrap it."""
    while isinstance(exc, BaseExceptionGroup):
        exc = cast("BaseExceptionGroup[BaseException]", exc).exceptions[0]
    return exc
