"""A supervised connection to another MCP server, opened on demand, and again after a failure.

Each connection has a task that holds its process or its HTTP session, because only the task that
entered the SDK's task groups may leave them. Calls come from other tasks. A cancelled call cancels
its request at the server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from standards_mcp._utils.exceptions import leaves
from standards_mcp._utils.text import describe_exception, readable
from standards_mcp.calls.context import HostContext
from standards_mcp.errors import ApiError, CannotAskError, ToolError

from .definitions import RefusedError, why_not_valid
from .session import (
    ActiveCallers,
    OpenSession,
    is_closed,
    missing_ability,
    negotiate,
    next_responses,
    response_params,
)
from .updates import Listing

log = logging.getLogger(__name__)

MAX_BACKOFF: Final = 60.0
"""The longest pause in seconds before a restart. A longer run resets the count of failures."""
_SESSION_LOST: Final = "Session terminated"  # the SDK's message if an HTTP server lost the session
_CLOSE_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 1.0
_CHECKED_METHODS: Final = {"tools/call", "prompts/get", "resources/read", "completion/complete"}


class StartAgainError(Exception):
    """The process must be restarted with other options before its first use."""


class Transport(ABC):
    """The transport of one connection: a process or an address.

    Attributes:
        exit_reason: Why the connection ended, or an empty string.
    """

    exit_reason: str = ""

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that opens the connection, and yields its two streams.

        Raises:
            ApiError: The connection cannot be made.
        """

    def explain(self, error: BaseException) -> str:
        """Return the cause of an error with a remedy, or an empty string if it is unknown."""
        del error
        return ""


class Connection:
    """One MCP server, connected to while calls need it.

    Args:
        name: The server's name in the log.
        title: The server's name in errors.
        connect: Returns the transport of a new connection.
        listing: The items of the server.
        start_timeout: Time limit in seconds for the start of the server and the list of its items.

    Attributes:
        problem: Why the last connection ended, or an empty string.
    """

    def __init__(
        self,
        name: str,
        title: str,
        connect: Callable[[], Transport],
        listing: Listing,
        start_timeout: float,
    ) -> None:
        self._name = name
        self._title = title
        self._connect = connect
        self._start_timeout = start_timeout
        self.listing = listing
        self._task: asyncio.Task[None] | None = None
        self._pending_session: asyncio.Future[OpenSession] | None = None
        self._transport: Transport | None = None
        self._callers = ActiveCallers()
        self._first_call_lock = asyncio.Lock()
        self._is_unused = True
        self._can_ask = False
        self._failures = 0
        self._retry_at = 0.0
        self.problem = ""

    async def open(self) -> OpenSession:
        """Return the session; open a connection if there is none.

        Raises:
            ApiError: The server cannot be reached, or it failed and the pause is not over.
        """
        if self._task is None or self._task.done():
            self._check_backoff()
            self._pending_session = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._pending_session), name=self._title)
        assert self._pending_session  # noqa: S101  - set with the task
        # Shielded, so that the server goes on starting if this call is cancelled.
        return await asyncio.shield(self._pending_session)

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: HostContext | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the raw result of an MCP request; pass the server's questions to the caller.

        Args:
            caller: Gets progress and questions. By default, progress is dropped, and questions are
                refused.
            meta: Sent as the ``_meta`` of the request.

        Raises:
            ApiError: There was no answer, or the answer does not follow the protocol.
            CannotAskError: The server asks, and the caller cannot be asked.
            InputRequiredError: The caller's client must ask its user, and send the call again.
            RefusedError: The server answered with an error.
        """
        caller = caller or HostContext()
        responses = caller.responses
        while True:
            sent = {**params, **response_params(responses), **({"_meta": meta} if meta else {})}
            result = await self._request(method, sent, caller)
            if not (following := await next_responses(result, caller, self._title)):
                return result
            responses = following

    async def _request(
        self, method: str, params: Mapping[str, Any], caller: HostContext
    ) -> dict[str, Any]:
        is_second_try = False
        while True:
            session, task = await self._open_for(caller), self._task
            try:
                return await self._send(session, method, params, caller)
            except MCPError as exc:
                if is_second_try or exc.message != _SESSION_LOST:
                    raise await self._failure(session, task, exc) from None
            # The server lost the session, so it has not run the call. It is safe to repeat it.
            await self._end_lost(session, task)
            is_second_try = True

    async def _send(
        self, session: OpenSession, method: str, params: Mapping[str, Any], caller: HostContext
    ) -> dict[str, Any]:
        report: Any = caller.report_progress
        with self._callers.calling(caller):
            abilities = caller.abilities
            result = await session.request(method, params, abilities=abilities, on_progress=report)
        if method in _CHECKED_METHODS:
            try:
                validate_server_result(method, session.version, result)
            except ValidationError as exc:
                raise ApiError(
                    f"the answer of {self._title} does not follow the protocol "
                    f"({why_not_valid(exc)}). Tell its maintainer."
                ) from None
        return result

    async def _end_lost(self, session: OpenSession, task: asyncio.Task[None] | None) -> None:
        """End a session that the server has lost, after its other calls have failed, too."""
        with anyio.move_on_after(_IDLE_SECONDS):
            await self._callers.wait_idle()
        session.abort("the server ended the session")
        await self.reset_backoff(task)

    async def _failure(
        self, session: OpenSession, task: asyncio.Task[None] | None, cause: MCPError
    ) -> ToolError:
        """Return the error for a request that was refused or not answered."""
        if ability := missing_ability(cause):
            return CannotAskError(ability=ability, message=readable(cause.message))
        if not is_closed(cause):
            why = self._transport.explain(cause) if self._transport else ""
            return RefusedError(self._title, why or cause.message, cause.code, cause.error.data)
        session.abort(cause.message)
        await _wait_closed(task)  # the exit code is known only after the end
        return ApiError(
            f"{self._title} failed during the call: {self.problem or cause.message}. The call may "
            "have had an effect. The log has the output of the server, which is started again at "
            "the next call."
        )

    async def _open_for(self, caller: HostContext) -> OpenSession:
        """Return the session; for the first caller, reconnect if it can answer questions.

        A server of a protocol before 2026-07-28 learns only in the handshake whether it may ask
        questions. The first caller decides that, because a later reconnect would disturb calls.
        """
        async with self._first_call_lock:
            session = await self.open()
            may_ask = caller.can_ask_midway and session.is_handshake
            if may_ask and not self._can_ask and self._is_unused:
                self._can_ask = True
                await self.aclose()
                session = await self.open()
            self._is_unused = False
        return session

    async def aclose(self) -> None:
        """End the connection, and its process."""
        if self._task and not self._task.done():
            self._task.cancel()
            await _wait_closed(self._task)

    async def reset_backoff(self, task: asyncio.Task[None] | None = None) -> None:
        """Wait for the end of a connection that is closed on purpose, and forget its failures.

        Args:
            task: The task of the connection; by default the current one.
        """
        await _wait_closed(task or self._task)
        self._failures, self._retry_at = 0, 0.0

    def _check_backoff(self) -> None:
        seconds = self._retry_at - time.monotonic()
        if seconds > 0:
            raise ApiError(
                f"{self._title} is not running: {self.problem}. Call it again in "
                f"{max(1, round(seconds))} s or later, to start it; the log has its output."
            )

    async def _run(self, pending: asyncio.Future[OpenSession]) -> None:
        """Hold one connection from its start to its end."""
        began = time.monotonic()
        self._transport = transport = self._connect()
        try:
            async with self._session(transport) as session:
                pending.set_result(session)
                self.problem = ""
                log.info("connected", extra={"plugin": self._name})
                await self.listing.follow(session)
            reason = transport.exit_reason or session.failure or "the connection was closed"
        except Exception as exc:  # noqa: BLE001  - the transport or the server may raise anything
            cause = leaves(exc)[0]
            if isinstance(cause, StartAgainError):
                await self._run(pending)
                return
            reason = readable(self._reason(cause, transport))
        except asyncio.CancelledError:
            pending.cancel()
            raise
        self._note_end(reason, time.monotonic() - began)
        if not pending.done():
            pending.set_exception(ApiError(f"{self._title} did not start: {reason}"))
            pending.exception()  # prevents a warning if no call waits for it

    @asynccontextmanager
    async def _session(self, transport: Transport) -> AsyncGenerator[OpenSession]:
        self._is_unused = True
        async with transport.open() as streams:
            session = OpenSession(
                self._name, streams, self.listing.on_notification, self._callers.on_elicitation
            )
            async with session.client:
                with anyio.fail_after(self._start_timeout):
                    await negotiate(session, can_ask=self._can_ask)
                    await self.listing.refresh(session)
                yield session

    def _reason(self, exc: BaseException, transport: Transport) -> str:
        if isinstance(exc, TimeoutError):
            return f"it did not answer within {self._start_timeout:g} s of its start"
        if explained := transport.explain(exc):
            return explained
        if isinstance(exc, MCPError):
            return (transport.exit_reason if is_closed(exc) else "") or exc.message
        if isinstance(exc, ValidationError):
            return f"its answer does not follow the protocol ({why_not_valid(exc)})"
        return str(exc) if isinstance(exc, ApiError) else describe_exception(exc)

    def _note_end(self, reason: str, seconds: float) -> None:
        self.problem = reason
        self._failures = 1 if seconds > MAX_BACKOFF else self._failures + 1
        wait = min(MAX_BACKOFF, 2.0 ** (self._failures - 1))
        self._retry_at = time.monotonic() + wait
        log.warning(
            "connection ended", extra={"plugin": self._name, "reason": reason, "wait": wait}
        )


async def _wait_closed(task: asyncio.Task[None] | None) -> None:
    if task:
        await asyncio.wait({task}, timeout=_CLOSE_SECONDS)
