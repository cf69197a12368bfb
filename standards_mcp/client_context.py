"""A call of an MCP client: progress and questions in the way of its protocol generation.

Before 2026-07-28 a server asks while the call runs. Since then it answers the call with the
question, and the client calls again with the reply; what was answered before travels with the
client, sealed by the SDK. The tool's function then runs again from its beginning and gets the
answers that are known.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.elicitation import render_elicitation_schema
from mcp_types.version import is_version_at_least
from pydantic import TypeAdapter, ValidationError

from .call_context import HostContext, InputRequiredError
from .errors import CannotAskError, InvalidInputError
from .plugin import AnswerT

_ASKS_BY_RESULT: Final = "2026-07-28"
_REPLIES: Final = TypeAdapter(dict[str, types.ElicitResult])

Context = ServerRequestContext[None, Any]


class ClientContext(HostContext):
    """A call that a client made."""

    def __init__(self, ctx: Context, params: types.CallToolRequestParams) -> None:
        super().__init__()
        self._ctx = ctx
        self._asked = 0
        self._known = _replies(params.request_state)
        for key, reply in (params.input_responses or {}).items():
            if isinstance(reply, types.ElicitResult):
                self._known[key] = reply

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if it wants to know."""
        await self._ctx.session.report_progress(done, total, message)

    async def ask(self, question: str, answer: type[AnswerT]) -> AnswerT | None:
        """Return what the user answers. See `standards_mcp.CallContext.ask`."""
        schema = render_elicitation_schema(answer)
        if not _asks_users(self._ctx.session.client_capabilities):
            raise CannotAskError(question)
        reply = await self._reply(question, schema)
        if reply.action != "accept":
            return None
        try:
            return answer.model_validate(reply.content or {})
        except ValidationError as exc:
            first = exc.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            message = f"the user's answer to {question!r} does not fit: {where}: {first['msg']}"
            raise InvalidInputError(message) from None

    async def _reply(self, question: str, schema: dict[str, Any]) -> types.ElicitResult:
        if not is_version_at_least(self._ctx.protocol_version, _ASKS_BY_RESULT):
            with self.paused():
                return await self._ctx.session.elicit_form(question, schema, self._ctx.request_id)
        self._asked += 1
        key = f"{self._asked}-{_digest(question, schema)}"
        if key in self._known:
            return self._known[key]
        params = types.ElicitRequestFormParams(message=question, requested_schema=schema)
        raise InputRequiredError(
            types.InputRequiredResult(
                input_requests={key: types.ElicitRequest(params=params)},
                request_state=_REPLIES.dump_json(self._known, by_alias=True).decode(),
            )
        )


def _replies(state: str | None) -> dict[str, types.ElicitResult]:
    return _REPLIES.validate_json(state) if state else {}


def _digest(question: str, schema: dict[str, Any]) -> str:
    """Tell questions apart: a reply must not be taken for that to another one."""
    text = json.dumps([question, schema], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _asks_users(capabilities: types.ClientCapabilities | None) -> bool:
    found = capabilities.elicitation if capabilities else None
    # Before there were modes, a bare capability meant forms.
    return found is not None and (found.form is not None or found.url is None)
