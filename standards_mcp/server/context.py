"""The context of a call from an MCP client: progress, log lines and questions to the user.

Before 2026-07-28, the server asks the user while the call runs. Since then, the question is the
answer of the call, and the client calls again with the reply. The client also sends back the
earlier replies, sealed by the SDK. The tool's function runs again from its beginning, and gets all
replies so far.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias, get_args

import anyio
import anyio.lowlevel
import mcp_types as types
import pydantic_core
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.elicitation import render_elicitation_schema
from mcp.shared.message import ServerMessageMetadata
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least
from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter, ValidationError

from standards_mcp._utils.text import readable
from standards_mcp.calls.context import (
    LOCAL,
    ClientRequest,
    HostContext,
    InputRequiredError,
    InputResponses,
    Principal,
    refusal,
)
from standards_mcp.errors import Ability, ApiError, InvalidInputError
from standards_mcp.plugin import AnswerT, LogLevel
from standards_mcp.remote.definitions import why_not_valid

log = logging.getLogger(__name__)

# A lower number would make tests of plugins that report some steps unreliable.
_UNLIMITED_REPORTS: Final = 50
_REPORT_INTERVAL_SECONDS: Final = 0.1
SET_LEVEL: Final = "logging/setLevel"

_FIRST_ASKING_BY_RESULT: Final = "2026-07-28"
_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
_LEVEL_KEY: Final = "standards-mcp/log-level"

Context = ServerRequestContext[None, Any]

# Some clients cannot read integers beyond the exact range of a JSON number.
_Number: TypeAlias = Annotated[int, Field(ge=-(2**53), le=2**53)] | FiniteFloat
_Report: TypeAlias = tuple[_Number, _Number | None, str | None]
_REPORT: Final[TypeAdapter[_Report]] = TypeAdapter(_Report)


def connection_of(ctx: Context) -> Connection:
    """Return the connection of a request, which lasts as long as its client is connected."""
    # The SDK gives handlers no other access to the connection.
    return ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def session_of(ctx: Context) -> str:
    """Return the session id of a request, or an empty string without a session.

    The header of a request without a session may contain any text, so it is not used.
    """
    return connection_of(ctx).session_id or ""


def local_principal(_: Context) -> Principal:
    """Return the only possible caller over stdio: the user who started the process."""
    return LOCAL


async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    """Answer ``logging/setLevel``, the way to choose a level before 2026-07-28."""
    connection_of(ctx).state[_LEVEL_KEY] = params.level
    return types.EmptyResult()


class _RequestState(BaseModel):
    """State that a client keeps while it asks its user, and sends back with the reply.

    Attributes:
        replies: Earlier replies, by the keys of their questions.
        of_server: The state that another MCP server sent with its questions.
    """

    replies: dict[str, types.InputResponse] = {}
    of_server: str | None = None


class ClientContext(HostContext):
    """The context of a call from an MCP client."""

    def __init__(
        self,
        ctx: Context,
        params: types.CallToolRequestParams | types.GetPromptRequestParams,
        principal: Principal,
    ) -> None:
        super().__init__(principal, session_of(ctx))
        self._ctx = ctx
        self._progress = _ProgressReports(params.name, ctx.session.report_progress)
        self._questions = 0
        self._unanswered: dict[str, ClientRequest] = {}
        sealed = params.request_state
        state = _RequestState.model_validate_json(sealed) if sealed else _RequestState()
        self.responses = InputResponses(params.input_responses, state.of_server)
        self.is_continuation = self.has_elicited = params.request_state is not None
        self._replies = {**state.replies, **(params.input_responses or {})}

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Send progress to the client, if it asked for progress. See `_ProgressReports`."""
        await self._progress.report(done, total, message)

    async def aclose(self) -> None:
        """Send the last progress report before the answer."""
        await self._progress.aclose()

    async def log(self, message: str, level: LogLevel = "info") -> None:
        """Send a line to the client, if it asked for lines of this level.

        A client gets no lines before it asks: with ``logging/setLevel`` for its session, and since
        2026-07-28 in the ``_meta`` of each request.

        Raises:
            ValueError: The level does not exist, or the line cannot be sent.
        """
        severity = _LEVELS.index(level)
        pydantic_core.to_json(message)
        is_modern = self._ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        lowest: Any = (
            (self._ctx.meta or {}).get(LOG_LEVEL_META_KEY)
            if is_modern
            else connection_of(self._ctx).state.get(_LEVEL_KEY)
        )
        if lowest in _LEVELS and severity >= _LEVELS.index(lowest):
            line = types.LoggingMessageNotificationParams(level=level, data=readable(message))
            notice = types.LoggingMessageNotification(params=line)
            await self._ctx.session.send_notification(notice, self._ctx.request_id)
        # Without this, a tool that only logs in a loop could not be cancelled.
        await anyio.lowlevel.checkpoint()

    async def ask(self, question: str, answer: type[AnswerT], *, key: str = "") -> AnswerT | None:
        """Ask the user. See `standards_mcp.CallContext.ask`."""
        params = {"message": question, "requestedSchema": render_elicitation_schema(answer)}
        reply: types.ElicitResult = await self._reply(ClientRequest("elicitation", params), key)
        if reply.action != "accept":
            return None
        try:
            return answer.model_validate(reply.content or {})
        except ValidationError as exc:
            message = f"the user's answer to {question!r} does not fit: {why_not_valid(exc)}"
            raise InvalidInputError(message) from None

    async def sample(
        self, prompt: str, *, max_tokens: int = 1000, system: str = "", key: str = ""
    ) -> str:
        """Ask the client's model. See `standards_mcp.CallContext.sample`."""
        message = {"role": "user", "content": {"type": "text", "text": prompt}}
        params: dict[str, Any] = {"messages": [message], "maxTokens": max_tokens}
        params |= {"systemPrompt": system} if system else {}
        reply: types.CreateMessageResult = await self._reply(ClientRequest("sampling", params), key)
        if not isinstance(reply.content, types.TextContent):
            raise ApiError(f"The client's model answered with {reply.content.type}, not with text.")
        return reply.content.text

    async def roots(self) -> list[str]:
        """Return the user's working folders. See `standards_mcp.CallContext.roots`."""
        reply: types.ListRootsResult = await self._reply(ClientRequest("roots"), "")
        return [str(root.uri) for root in reply.roots]

    @property
    def abilities(self) -> frozenset[Ability]:
        """The abilities that the client has declared. See `HostContext`."""
        able = self._ctx.session.client_capabilities or types.ClientCapabilities()
        # Before the elicitation capability had modes, an empty one meant forms.
        asked = able.elicitation
        declared: dict[Ability, bool] = {
            "elicitation": asked is not None and (asked.form is not None or asked.url is None),
            "sampling": able.sampling is not None,
            "roots": able.roots is not None,
        }
        return frozenset(ability for ability, is_declared in declared.items() if is_declared)

    @property
    def can_ask_midway(self) -> bool:
        """True if the client can show forms while a call runs."""
        return "elicitation" in self.abilities and self._asks_midway

    @property
    def _asks_midway(self) -> bool:
        return not is_version_at_least(self._ctx.protocol_version, _FIRST_ASKING_BY_RESULT)

    async def put(self, request: ClientRequest) -> Any:
        """Return the reply to a request of another server. See `HostContext`."""
        # A server of an earlier protocol cannot wait until a client of 2026-07-28 calls again, and
        # its call must not run twice.
        if request.ability not in self.abilities or not self._asks_midway:
            raise refusal(request)
        related = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        # The protocol has deprecated two of these requests, and the SDK's own methods for them
        # warn.
        message, reply = _wire_request(request), _REPLIES[request.ability]
        with self.paused():
            try:
                return await self._ctx.session.send_request(message, reply, metadata=related)
            except MCPError as exc:
                fields = {"asked": request.ability, "reason": exc.message}
                log.warning("a client refused a request that it declared to support", extra=fields)
                raise refusal(request) from None

    async def next_responses(
        self, requests: Mapping[str, ClientRequest], state: str | None
    ) -> InputResponses:
        """Return the replies to requests of another server. See `HostContext`."""
        able = self.abilities
        if unsupported := [asked for asked in requests.values() if asked.ability not in able]:
            raise refusal(*unsupported)
        if not self._asks_midway:
            raise _input_required(requests, _RequestState(of_server=state))
        replies = {key: await self.put(request) for key, request in requests.items()}
        return InputResponses(replies, state)

    async def _reply(self, request: ClientRequest, key: str) -> Any:
        if request.ability not in self.abilities:
            raise refusal(request)
        pydantic_core.to_json(request.params)  # raises in the plugin if the question cannot be sent
        if self._asks_midway:
            return await self.put(request)
        self._questions += 1
        # The default key has a digest of the question, so that a reply is never used for another
        # question. One whose words differ from run to run can be answered only with its own key.
        text = json.dumps([request.ability, request.params], sort_keys=True)
        key = key or f"{self._questions}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        reply = self._replies.get(key)
        if isinstance(reply, _REPLIES[request.ability]):
            return reply
        self._unanswered[key] = request
        await anyio.lowlevel.checkpoint()  # concurrent questions go to the client together
        raise _input_required(self._unanswered, _RequestState(replies=self._replies))


_REPLIES: Final[Mapping[Ability, type[Any]]] = {
    "elicitation": types.ElicitResult,
    "sampling": types.CreateMessageResult,
    "roots": types.ListRootsResult,
}


def _wire_request(request: ClientRequest) -> types.InputRequest:
    match request.ability:
        case "elicitation":
            form = types.ElicitRequestFormParams.model_validate(request.params)
            return types.ElicitRequest(params=form)
        case "sampling":
            message = types.CreateMessageRequestParams.model_validate(request.params)
            return types.CreateMessageRequest(params=message)
        case "roots":
            return types.ListRootsRequest()


def _input_required(
    requests: Mapping[str, ClientRequest], state: _RequestState
) -> InputRequiredError:
    questions = {key: _wire_request(request) for key, request in requests.items()}
    sealed = state.model_dump_json(by_alias=True)
    return InputRequiredError(
        types.InputRequiredResult(input_requests=questions, request_state=sealed)
    )


class _ProgressReports:
    """Send the progress reports of one call: the first ones at once, later ones at a limited rate.

    A tool may report in each round of a loop. Without the limit, the client and any proxy would
    have to read all reports before the answer.

    Args:
        tool: The name of the tool in the log.
        send: Sends the done part, the total and the message of a report.
    """

    def __init__(
        self, tool: str, send: Callable[[float, float | None, str | None], Awaitable[None]]
    ) -> None:
        self._tool, self._send = tool, send
        self._unlimited_left = _UNLIMITED_REPORTS
        self._pending: _Report | None = None
        self._sending: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()
        self._has_dropped = False

    async def report(self, *values: object) -> None:
        """Send a report, or keep it until the pause ends; a newer report replaces it.

        A report that cannot be sent is dropped. The first dropped report of a call is logged.
        """
        try:
            done, total, message = _REPORT.validate_python(values)
            report = (done, total, message and readable(message))
            pydantic_core.to_json(report)
        except ValueError as exc:
            reason = why_not_valid(exc) if isinstance(exc, ValidationError) else str(exc)
            if not self._has_dropped:
                log.warning("progress was dropped", extra={"tool": self._tool, "reason": reason})
            self._has_dropped = True
        else:
            if self._unlimited_left:
                self._unlimited_left -= 1
                await self._send(*report)
            elif not self._ending.is_set():
                self._pending = report
                self._sending = self._sending or asyncio.create_task(self._send_pending())
        # Without this, a tool that only reports in a loop could not be cancelled.
        await anyio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        """Send the last report if it is still waiting, and drop later ones."""
        self._ending.set()
        self._unlimited_left = 0
        if sending := self._sending:
            try:
                await asyncio.wait({sending})
            finally:
                sending.cancel()

    async def _send_pending(self) -> None:
        while self._pending:
            report, self._pending = self._pending, None
            await self._send(*report)
            with anyio.move_on_after(_REPORT_INTERVAL_SECONDS):
                await self._ending.wait()
        self._sending = None
