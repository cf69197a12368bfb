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
from mcp import ClientSession, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from pydantic import TypeAdapter, ValidationError

from .call_context import HostContext, Unattended
from .errors import ApiError, describe_exception
from .relayed_calls import Callers, next_turn
from .sessions import ASKS, Live, RawTool, is_closed, negotiate, open_session

log = logging.getLogger(__name__)

MAX_TOOLS: Final = 1000
_MAX_PAGES: Final = 100
LONGEST_WAIT: Final = 60.0
"""Seconds until a server that keeps failing is tried again; a run of so long counts as healthy."""
_SETTLE_SECONDS: Final = 0.2
_SESSION_LOST: Final = "Session terminated"  # how the SDK says that an HTTP server forgot us
_END_SECONDS: Final = 10.0

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
        self._on_tools = on_tools
        self._task: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Live] | None = None
        self._changed = anyio.Event()
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
        turn = caller.turn
        while True:
            params = types.CallToolRequestParams(
                name=name,
                arguments=dict(arguments),
                input_responses=turn.replies,
                request_state=turn.state,
                _meta=cast("types.RequestParamsMeta", {ASKS: caller.can_ask}),
            )
            result = await self._request(types.CallToolRequest(params=params), caller)
            if not (following := await next_turn(result, caller, self._title)):
                return result
            turn = following

    async def _request(
        self, request: types.Request[Any, Any], caller: HostContext
    ) -> dict[str, Any]:
        live = await self._open_for(caller)
        report: Any = caller.report_progress
        try:
            with self._callers.calling(caller):
                result: dict[str, Any] = await live.session.send_request(
                    request, _OBJECT, progress_callback=report
                )
        except MCPError as exc:
            if is_closed(exc) or exc.message == _SESSION_LOST:
                raise await self._broken(live, exc) from None
            raise ApiError(f"{self._title} refused it: {exc.message}") from None
        except ValidationError as exc:
            first = exc.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise ApiError(
                f"the answer of {self._title} is not of the protocol ({where}: "
                f"{first['msg']}). Tell whoever maintains it."
            ) from None
        return result

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

    async def excuse_end(self) -> None:
        """Wait for the end of what was ended on purpose; the next call starts it without delay."""
        if self._task:
            await asyncio.wait({self._task}, timeout=_END_SECONDS)
        self._failures, self._retry_at = 0, 0.0

    def _check_patience(self) -> None:
        seconds = self._retry_at - time.monotonic()
        if seconds > 0:
            raise ApiError(
                f"{self._title} is not running: {self.problem}. It is started again when "
                f"called in {max(1, round(seconds))} s or later; what it wrote is in the log."
            )

    async def _broken(self, live: Live, cause: MCPError) -> ApiError:
        live.dispatcher.give_up(cause.message)
        if self._task:
            await asyncio.wait({self._task}, timeout=_END_SECONDS)
        return ApiError(
            f"{self._title} failed during the call: {self.problem or cause.message}. Whether the "
            "call had an effect is not known; what it wrote is in the log. It is started again "
            "when called."
        )

    async def _run(self, opened: asyncio.Future[Live]) -> None:
        """Hold one connection from its start to its end."""
        began = time.monotonic()
        target = self._connect()
        try:
            async with self._session(target) as live:
                opened.set_result(live)
                self.problem = ""
                log.info("started", extra={"plugin": self._name})
                await self._follow(live)
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
            open_session(streams, self._hear, self._callers.ask, asks=self._asks) as live,
        ):
            with anyio.fail_after(self._start_timeout):
                await negotiate(live.session)
                await self._list(live)
            yield live

    def _reason(self, exc: BaseException, target: Target) -> str:
        if isinstance(exc, TimeoutError):
            return f"it did not answer within {self._start_timeout:g} s of its start"
        if isinstance(exc, MCPError):
            return (target.ending if is_closed(exc) else "") or exc.message
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

    async def _follow(self, live: Live) -> None:
        """List the tools again whenever they change, until the connection ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, live.session)
            group.start_soon(self._list_changes, live)
            await live.dispatcher.ended.wait()
            group.cancel_scope.cancel()

    async def _listen(self, session: ClientSession) -> None:
        """Hear of changes as the 2026-07-28 generation tells them; older ones use `_hear`."""
        try:
            async with listen(session, tools_list_changed=True) as events:
                async for _ in events:
                    self._changed.set()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError) as exc:
            log.debug("no changes are told", extra={"plugin": self._name, "reason": str(exc)})

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()

    async def _list_changes(self, live: Live) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                await self._list(live)
            except (MCPError, ValidationError) as exc:
                fields = {"plugin": self._name, "reason": describe_exception(exc)}
                log.warning("changed tools cannot be listed", extra=fields)
            await anyio.sleep(_SETTLE_SECONDS)

    async def _list(self, live: Live) -> None:
        tools: list[RawTool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            page = await live.session.list_tools(params=params)
            tools += live.dispatcher.listed
            cursor = page.next_cursor
            if cursor is None or len(tools) > MAX_TOOLS:
                break
        if cursor is not None or len(tools) > MAX_TOOLS:
            fields = {"plugin": self._name, "kept": min(len(tools), MAX_TOOLS)}
            log.warning("a server has more tools than are taken", extra=fields)
        self._on_tools(tools[:MAX_TOOLS])


def _leaf(exc: BaseException) -> BaseException:
    """Return what was raised first; task groups wrap it."""
    while isinstance(exc, BaseExceptionGroup):
        exc = cast("BaseExceptionGroup[BaseException]", exc).exceptions[0]
    return exc
