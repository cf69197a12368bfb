"""A call of an MCP client: progress and questions in the way of its protocol generation.

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

import mcp_types as types
import pydantic_core
from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.connection import Connection
from mcp.server.elicitation import render_elicitation_schema
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, ValidationError

from standards_mcp.calls.context import (
    LOCAL,
    HostContext,
    InputRequiredError,
    InputResponses,
    Principal,
    Question,
)
from standards_mcp.errors import CannotAskError, InvalidInputError
from standards_mcp.plugin import AnswerT
from standards_mcp.remote.errors import why_not_valid

from .progress import ProgressReports

log = logging.getLogger(__name__)


_LONGEST_SESSION: Final = 64
_ASKS_BY_RESULT: Final = "2026-07-28"
Context = ServerRequestContext[None, Any]


def session_of(ctx: Context) -> str:
    """Return the id of the session that a request names, or an empty string."""
    headers: Mapping[str, str] = getattr(ctx.request, "headers", {})
    return headers.get("mcp-session-id", "")[:_LONGEST_SESSION]


def connection_of(ctx: Context) -> Connection:
    """Return what lasts as long as the client of a request is connected."""
    # The SDK gives handlers no other way to it.
    return ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def local_principal(_: Context) -> Principal:
    """Return who makes a request where there is one client: the user who started the process."""
    return LOCAL


class _State(BaseModel):
    """What travels with a client that asks its user.

    Attributes:
        known: What was answered before, by the questions of a tool of this host.
        of_server: The state of another server, whose tool it is.
    """

    known: dict[str, types.ElicitResult] = {}
    of_server: str | None = None


class ClientContext(HostContext):
    """A call that a client made."""

    def __init__(
        self, ctx: Context, params: types.CallToolRequestParams, principal: Principal
    ) -> None:
        super().__init__(principal, session_of(ctx))
        self._ctx = ctx
        self._progress = ProgressReports(params.name, ctx.session.report_progress)
        self._asked = 0
        given = params.request_state
        state = _State.model_validate_json(given) if given else _State()
        self.responses = InputResponses(params.input_responses, state.of_server)
        self.is_continuation = self.has_elicited = params.request_state is not None
        self._known = state.known
        for key, reply in (params.input_responses or {}).items():
            if isinstance(reply, types.ElicitResult):
                self._known[key] = reply

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if it wants to know. See `ProgressReports`."""
        await self._progress.report(done, total, message)

    async def aclose(self) -> None:
        """Tell the client what is left to tell before the answer."""
        await self._progress.aclose()

    async def ask(self, question: str, answer: type[AnswerT]) -> AnswerT | None:
        """Return what the user answers. See `standards_mcp.CallContext.ask`."""
        schema = render_elicitation_schema(answer)
        if not self.can_ask:
            raise CannotAskError(question)
        pydantic_core.to_json((question, schema))  # one that cannot be sent is the plugin's mistake
        reply = await self._reply(Question(question, schema))
        if reply.action != "accept":
            return None
        try:
            return answer.model_validate(reply.content or {})
        except ValidationError as exc:
            message = f"the user's answer to {question!r} does not fit: {why_not_valid(exc)}"
            raise InvalidInputError(message) from None

    @property
    def can_ask(self) -> bool:
        """Whether the client can show forms. See `HostContext`."""
        return _asks_users(self._ctx.session.client_capabilities)

    @property
    def can_ask_midway(self) -> bool:
        """Whether it can, in a generation in which it does so during a call."""
        return self.can_ask and not is_version_at_least(self._ctx.protocol_version, _ASKS_BY_RESULT)

    async def elicit(self, question: Question) -> types.ElicitResult:
        """Return the reply to a question of another server. See `HostContext`."""
        if not self.can_ask_midway:
            raise CannotAskError(question.text)
        with self.paused():
            try:
                return await self._ctx.session.elicit_form(
                    question.text, question.schema, self._ctx.request_id
                )
            except MCPError as exc:  # it says that it can, and does not
                log.warning("a client does not put a question", extra={"reason": exc.message})
                raise CannotAskError(question.text) from None

    async def next_responses(
        self, questions: Mapping[str, Question], state: str | None
    ) -> InputResponses:
        """Return the replies to questions of another server. See `HostContext`."""
        if not self.can_ask:
            raise CannotAskError(" ".join(each.text for each in questions.values()))
        if not self.can_ask_midway:
            raise _required(questions, _State(of_server=state))
        return InputResponses(
            {key: await self.elicit(each) for key, each in questions.items()}, state
        )

    async def _reply(self, question: Question) -> types.ElicitResult:
        if self.can_ask_midway:
            return await self.elicit(question)
        self._asked += 1
        key = f"{self._asked}-{_digest(question)}"
        if key in self._known:
            return self._known[key]
        raise _required({key: question}, _State(known=self._known))


def _required(questions: Mapping[str, Question], state: _State) -> InputRequiredError:
    requests: dict[str, types.InputRequest] = {
        key: types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=each.text, requested_schema=each.schema)
        )
        for key, each in questions.items()
    }
    kept = state.model_dump_json(by_alias=True)
    return InputRequiredError(
        types.InputRequiredResult(input_requests=requests, request_state=kept)
    )


def _digest(question: Question) -> str:
    """Tell questions apart: a reply must not be taken for that to another one."""
    text = json.dumps([question.text, question.schema], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _asks_users(capabilities: types.ClientCapabilities | None) -> bool:
    found = capabilities.elicitation if capabilities else None
    # Before there were modes, a bare capability meant forms.
    return found is not None and (found.form is not None or found.url is None)
