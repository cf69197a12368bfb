"""A call of an MCP client: progress, log and questions in the way of its protocol generation.

Before 2026-07-28 a server asks while the call runs. Since then it answers the call with the
question, and the client calls again with the reply; what was answered before travels with the
client, sealed by the SDK. The tool's function then runs again from its beginning and gets the
answers that are known.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any, Final

import anyio.lowlevel
import mcp_types as types
import pydantic_core
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.elicitation import render_elicitation_schema
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, ValidationError

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

from .client_log import connection_of, send_line
from .progress import ProgressReports

log = logging.getLogger(__name__)


_ASKS_BY_RESULT: Final = "2026-07-28"
Context = ServerRequestContext[None, Any]


def session_of(ctx: Context) -> str:
    """Return the id of the session of a request, or an empty string.

    A request without one may have any text in its header.
    """
    return connection_of(ctx).session_id or ""


def local_principal(_: Context) -> Principal:
    """Return who makes a request where there is one client: the user who started the process."""
    return LOCAL


class _State(BaseModel):
    """What travels with a client that asks its user.

    Attributes:
        known: What was answered before, by the keys of what was asked.
        of_server: The state of another server, whose tool it is.
    """

    known: dict[str, types.InputResponse] = {}
    of_server: str | None = None


class ClientContext(HostContext):
    """A call that a client made."""

    def __init__(
        self,
        ctx: Context,
        params: types.CallToolRequestParams | types.GetPromptRequestParams,
        principal: Principal,
    ) -> None:
        super().__init__(principal, session_of(ctx))
        self._ctx = ctx
        self._progress = ProgressReports(params.name, ctx.session.report_progress)
        self._asked = 0
        self._open: dict[str, ClientRequest] = {}
        given = params.request_state
        state = _State.model_validate_json(given) if given else _State()
        self.responses = InputResponses(params.input_responses, state.of_server)
        self.is_continuation = self.has_elicited = params.request_state is not None
        self._known = {**state.known, **(params.input_responses or {})}

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if it wants to know. See `ProgressReports`."""
        await self._progress.report(done, total, message)

    async def aclose(self) -> None:
        """Tell the client what is left to tell before the answer."""
        await self._progress.aclose()

    async def log(self, message: str, level: LogLevel = "info") -> None:
        """Send a line to the client, if it wants lines of this level."""
        await send_line(self._ctx, message, level)

    async def ask(self, question: str, answer: type[AnswerT], *, key: str = "") -> AnswerT | None:
        """Return what the user answers. See `standards_mcp.CallContext.ask`."""
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
        """Return what the client's model answers. See `standards_mcp.CallContext.sample`."""
        message = {"role": "user", "content": {"type": "text", "text": prompt}}
        params: dict[str, Any] = {"messages": [message], "maxTokens": max_tokens}
        params |= {"systemPrompt": system} if system else {}
        reply: types.CreateMessageResult = await self._reply(ClientRequest("sampling", params), key)
        if not isinstance(reply.content, types.TextContent):
            raise ApiError(f"The client's model answered with {reply.content.type}, not with text.")
        return reply.content.text

    async def roots(self) -> list[str]:
        """Return where the user works. See `standards_mcp.CallContext.roots`."""
        reply: types.ListRootsResult = await self._reply(ClientRequest("roots"), "")
        return [str(each.uri) for each in reply.roots]

    @property
    def abilities(self) -> frozenset[Ability]:
        """What the client has declared. See `HostContext`."""
        able = self._ctx.session.client_capabilities or types.ClientCapabilities()
        declared: dict[Ability, bool] = {
            "elicitation": _shows_forms(able),
            "sampling": able.sampling is not None,
            "roots": able.roots is not None,
        }
        return frozenset(ability for ability, is_declared in declared.items() if is_declared)

    @property
    def can_ask_midway(self) -> bool:
        """Whether it can show forms, in a generation in which it does so during a call."""
        return "elicitation" in self.abilities and self._asks_midway

    @property
    def _asks_midway(self) -> bool:
        return not is_version_at_least(self._ctx.protocol_version, _ASKS_BY_RESULT)

    async def put(self, request: ClientRequest) -> Any:
        """Return the reply to a request of another server. See `HostContext`."""
        if request.ability not in self.abilities or not self._asks_midway:
            raise refusal([request])
        related = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        sent, reply = _wire_request(request), _REPLIES[request.ability]
        with self.paused():
            try:
                return await self._ctx.session.send_request(sent, reply, metadata=related)
            except MCPError as exc:  # it says that it can, and does not
                fields = {"asked": request.ability, "reason": exc.message}
                log.warning("a client does not do what it declared", extra=fields)
                raise refusal([request]) from None

    async def next_responses(
        self, requests: Mapping[str, ClientRequest], state: str | None
    ) -> InputResponses:
        """Return the replies to requests of another server. See `HostContext`."""
        if beyond := [each for each in requests.values() if each.ability not in self.abilities]:
            raise refusal(beyond)
        if not self._asks_midway:
            raise _required(requests, _State(of_server=state))
        return InputResponses({key: await self.put(each) for key, each in requests.items()}, state)

    async def _reply(self, request: ClientRequest, key: str) -> Any:
        if request.ability not in self.abilities:
            raise refusal([request])
        pydantic_core.to_json(request.params)  # what cannot be sent is the plugin's mistake
        if self._asks_midway:
            return await self.put(request)
        self._asked += 1
        key = key or f"{self._asked}-{_digest(request)}"
        known = self._known.get(key)
        if isinstance(known, _REPLIES[request.ability]):
            return known
        self._open[key] = request
        await anyio.lowlevel.checkpoint()  # what is asked at the same time goes along
        raise _required(self._open, _State(known=self._known))


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
            asked = types.CreateMessageRequestParams.model_validate(request.params)
            return types.CreateMessageRequest(params=asked)
        case "roots":
            return types.ListRootsRequest()


def _required(requests: Mapping[str, ClientRequest], state: _State) -> InputRequiredError:
    sent = {key: _wire_request(each) for key, each in requests.items()}
    kept = state.model_dump_json(by_alias=True)
    return InputRequiredError(types.InputRequiredResult(input_requests=sent, request_state=kept))


def _digest(request: ClientRequest) -> str:
    """Tell requests apart: a reply must not be taken for that to another one."""
    text = json.dumps([request.ability, request.params], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shows_forms(able: types.ClientCapabilities) -> bool:
    found = able.elicitation
    # Before there were modes, a bare capability meant forms.
    return found is not None and (found.form is not None or found.url is None)
