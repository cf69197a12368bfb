"""A supervised connection to another MCP server: made when it is needed, and again after a failure.

Each connection lives in a task of its own, which holds the process or the HTTP session, because the
SDK's task groups must be left by the task that entered them. Calls come from other tasks; one that
is cancelled cancels the request at the other server.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from mcp import MCPError
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from standards_mcp._utils.exceptions import leaves
from standards_mcp._utils.text import describe_exception, readable
from standards_mcp.calls.context import HostContext, Unattended
from standards_mcp.errors import ApiError, CannotAskError, ToolError

from .elicitation import ActiveCallers, next_responses, response_params
from .errors import RefusedError, StartAgainError, why_not_valid
from .listing import Listing
from .session import OpenSession, is_closed, missing_ability, negotiate
from .transports.base import Transport

log = logging.getLogger(__name__)


MAX_BACKOFF: Final = 60.0
"""Seconds until a server that keeps failing is tried again; a run of so long counts as healthy."""
_SESSION_LOST: Final = "Session terminated"  # how the SDK says that an HTTP server forgot us

_CLOSE_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 1.0
_CHECKED: Final = {"tools/call", "prompts/get", "resources/read", "completion/complete"}


class Connection:
    """One MCP server, connected to while calls need it.

    Args:
        name: What the log calls it.
        title: What errors call it.
        connect: Returns the transport of a new connection.
        listing: Keeps up with what it contributes.
        start_timeout: Seconds that it may take to start and to say what it contributes.

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
        self._listing = listing
        self._task: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[OpenSession] | None = None
        self._transport: Transport | None = None
        self._callers = ActiveCallers()
        self._first_call = asyncio.Lock()
        self._is_unused = True
        self._can_ask = False
        self._failures = 0
        self._retry_at = 0.0
        self.problem = ""

    async def open(self) -> OpenSession:
        """Return the session, connecting where there is none.

        Raises:
            ApiError: It cannot be connected to, or failed and is not tried again yet.
        """
        if self._task is None or self._task.done():
            self._check_backoff()
            self._opened = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._opened), name=self._title)
        assert self._opened  # noqa: S101  - set with the task
        # Who waits may be cancelled; the server starts on for those that come later.
        return await asyncio.shield(self._opened)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        caller: HostContext,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the result of a tool as the server spelt it.

        Args:
            caller: Who is told of progress and asked.
            meta: Sent as the ``_meta`` of the call.

        Raises: see `ask`.
        """
        params = {"name": name, "arguments": dict(arguments)}
        return await self.ask("tools/call", params, caller, meta)

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: HostContext | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the result of a request of MCP that the server may answer with questions.

        Args:
            caller: Who is told of progress and asked; by default nobody.
            meta: Sent as the ``_meta`` of the request.

        Raises:
            ApiError: There was no answer, or one that is none; the message says what to do.
            CannotAskError: The server asks, and the caller cannot be asked.
            InputRequiredError: The caller's client asks, and calls again.
        """
        caller = caller or Unattended()
        responses = caller.responses
        while True:
            given = {**params, **response_params(responses), **({"_meta": meta} if meta else {})}
            result = await self.request(method, given, caller)
            if not (following := await next_responses(result, caller, self._title)):
                return result
            responses = following

    async def request(
        self, method: str, params: Mapping[str, Any], caller: HostContext | None = None
    ) -> dict[str, Any]:
        """Return the result of a request that is answered at once. See `ask`.

        Raises:
            CannotAskError: The server needs to ask what the caller cannot be asked.
            RefusedError: The server answered with another error.
        """
        caller = caller or Unattended()
        has_left = False
        while True:
            session, task = await self._open_for(caller), self._task
            try:
                return await self._send(session, method, params, caller)
            except MCPError as exc:
                if has_left or exc.message != _SESSION_LOST:
                    raise await self._failure(session, task, exc) from None
            # A server that has forgotten a session has done nothing there: to ask again is safe.
            await self._leave(session, task)
            has_left = True

    async def _send(
        self, session: OpenSession, method: str, params: Mapping[str, Any], caller: HostContext
    ) -> dict[str, Any]:
        report: Any = caller.report_progress
        with self._callers.calling(caller):
            able = caller.abilities
            result = await session.request(method, params, abilities=able, on_progress=report)
        if method in _CHECKED:
            try:
                validate_server_result(method, session.version, result)
            except ValidationError as exc:
                raise ApiError(
                    f"the answer of {self._title} is not of the protocol ({why_not_valid(exc)}). "
                    "Tell whoever maintains it."
                ) from None
        return result

    async def _leave(self, session: OpenSession, task: asyncio.Task[None] | None) -> None:
        """End a session that the server has forgotten, once its other calls were told so, too."""
        with anyio.move_on_after(_IDLE_SECONDS):
            await self._callers.wait_idle()
        session.abort("the server ended the session")
        await self.reset_backoff(task)

    async def _failure(
        self, session: OpenSession, task: asyncio.Task[None] | None, cause: MCPError
    ) -> ToolError:
        """Return the error of a request that a server did not answer, or refused."""
        if ability := missing_ability(cause):
            return CannotAskError(ability=ability, message=readable(cause.message))
        if not is_closed(cause):
            why = self._transport.explain(cause) if self._transport else ""
            return RefusedError(self._title, why or cause.message, cause.code, cause.error.data)
        session.abort(cause.message)
        await _wait_closed(task)  # only then it is known how the process ended
        return ApiError(
            f"{self._title} failed during the call: {self.problem or cause.message}. Whether the "
            "call had an effect is not known; what it wrote is in the log. It is started again "
            "when called."
        )

    async def _open_for(self, caller: HostContext) -> OpenSession:
        """Return the session, connected anew where the first caller could be asked more.

        A server of an earlier generation is told once, at its start, whether it may ask. It is
        started before anybody calls; so the first caller decides, and nobody else is disturbed.
        """
        async with self._first_call:
            session = await self.open()
            may_ask = caller.can_ask_midway and session.is_handshake
            if may_ask and not self._can_ask and self._is_unused:
                self._can_ask = True
                await self.aclose()
                session = await self.open()
            self._is_unused = False
        return session

    async def aclose(self) -> None:
        """End the connection, and the process with it."""
        if self._task and not self._task.done():
            self._task.cancel()
            await _wait_closed(self._task)

    async def reset_backoff(self, task: asyncio.Task[None] | None = None) -> None:
        """Wait for the end of a connection that was ended on purpose, and forgive that end.

        Args:
            task: That of the connection; by default the present one.
        """
        await _wait_closed(task or self._task)
        self._failures, self._retry_at = 0, 0.0

    def _check_backoff(self) -> None:
        seconds = self._retry_at - time.monotonic()
        if seconds > 0:
            raise ApiError(
                f"{self._title} is not running: {self.problem}. It is started again when "
                f"called in {max(1, round(seconds))} s or later; what it wrote is in the log."
            )

    async def _run(self, opened: asyncio.Future[OpenSession]) -> None:
        """Hold one connection from its start to its end."""
        began = time.monotonic()
        self._transport = transport = self._connect()
        try:
            async with self._session(transport) as session:
                opened.set_result(session)
                self.problem = ""
                log.info("connected", extra={"plugin": self._name})
                await self._listing.follow(session)
            reason = transport.exit_reason or session.failure or "the connection was closed"
        except Exception as exc:  # noqa: BLE001  - whatever the transport or the server raises
            cause = leaves(exc)[0]
            if isinstance(cause, StartAgainError):
                await self._run(opened)
                return
            reason = readable(self._reason(cause, transport))
        except asyncio.CancelledError:
            opened.cancel()
            raise
        self._note_end(reason, time.monotonic() - began)
        if not opened.done():
            opened.set_exception(ApiError(f"{self._title} did not start: {reason}"))
            opened.exception()  # perhaps nobody waits for it any more

    @asynccontextmanager
    async def _session(self, transport: Transport) -> AsyncGenerator[OpenSession]:
        self._is_unused = True
        async with transport.open() as streams:
            session = OpenSession(
                self._name, streams, self._listing.on_notification, self._callers.on_elicitation
            )
            async with session.client:
                with anyio.fail_after(self._start_timeout):
                    await negotiate(session, can_ask=self._can_ask)
                    await self._listing.refresh(session)
                yield session

    def _reason(self, exc: BaseException, transport: Transport) -> str:
        if isinstance(exc, TimeoutError):
            return f"it did not answer within {self._start_timeout:g} s of its start"
        if explained := transport.explain(exc):
            return explained
        if isinstance(exc, MCPError):
            return (transport.exit_reason if is_closed(exc) else "") or exc.message
        if isinstance(exc, ValidationError):
            return f"its answer is not of the protocol ({why_not_valid(exc)})"
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
