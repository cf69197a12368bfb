"""Questions of other servers, put to the caller of the tool that asks.

There are two ways, one for each generation of the protocol. Since 2026-07-28 a server answers a
call with its questions, and is called again with the replies: `next_responses`. Before, it sent a
request of its own while a call ran, without saying which call: `ActiveCallers`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.client.session import ClientRequestContext
from pydantic import BaseModel, ValidationError

from standards_mcp._utils.text import readable
from standards_mcp.calls.context import ClientRequest, HostContext, InputResponses
from standards_mcp.errors import ApiError, CannotAskError

_POLL_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A call that runs, and the questions that wait for a reply."""

    caller: HostContext
    questions: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])


class ActiveCallers:
    """Those whose calls a server is at work on: whom its questions may be for."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._left = anyio.Event()

    @contextmanager
    def calling(self, caller: HostContext) -> Generator[None]:
        """Let the server ask *caller* meanwhile. What is not answered by then is withdrawn."""
        call = _Call(caller)
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            self._left.set()
            for question in call.questions:
                question.cancel()

    async def wait_idle(self) -> None:
        """Wait until no call runs."""
        while self._calls:
            self._left = anyio.Event()
            await self._left.wait()

    async def on_elicitation(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Return the reply to a question that came while calls run: an ``elicitation/create``."""
        del context
        if not isinstance(params, types.ElicitRequestFormParams):
            return _refusal("Only forms can be shown to the user.")
        if not self._calls:
            return _refusal("No call is running, so there is nobody to ask. Ask during a call.")
        if len(self._calls) > 1:
            # The request does not name its call, and a guess would put it to the wrong person.
            return _refusal(
                f"{len(self._calls)} calls are running, and which one asks cannot be told. "
                "Call this tool again, alone."
            )
        call = self._calls[0]
        with anyio.CancelScope() as scope:
            call.questions.add(scope)
            try:
                reply: types.ElicitResult = await call.caller.put(_question(params))
            except CannotAskError as exc:
                return _refusal(str(exc))
            finally:
                call.questions.discard(scope)
            return reply
        return _refusal("The call has ended, so there is nobody to ask any more.")


async def next_responses(
    answer: Mapping[str, Any], caller: HostContext, title: str
) -> InputResponses | None:
    """Return the replies to the questions in an answer; None where it holds none.

    Args:
        title: What errors call the server.

    Raises:
        ApiError: It asks for what cannot be passed on.
        CannotAskError: The caller cannot be asked that.
        InputRequiredError: The caller's client sees to it, and calls again.
    """
    if answer.get("resultType") != "input_required":
        return None
    try:
        required = types.InputRequiredResult.model_validate(answer, by_name=False)
    except ValidationError:
        raise ApiError(
            f"{title} asks in a way that is not of the protocol. Tell whoever maintains it."
        ) from None
    requests: dict[str, ClientRequest] = {}
    for key, each in (required.input_requests or {}).items():
        if not (request := _request(each)):
            raise ApiError(
                f"{title} asks for what cannot be passed on ({each.method}), though it was told "
                "so. Tell whoever maintains it."
            )
        requests[key] = request
    if requests:
        return await caller.next_responses(requests, required.request_state)
    await anyio.sleep(_POLL_SECONDS)  # it wants to be called again a little later
    return InputResponses(None, required.request_state)


def _request(sent: types.InputRequest) -> ClientRequest | None:
    """Return what the client is asked, or None where that is no form but a page to visit."""
    match sent:
        case types.ElicitRequest(params=types.ElicitRequestFormParams() as form):
            return _question(form)
        case types.CreateMessageRequest():
            return ClientRequest("sampling", _plain(sent.params))
        case types.ListRootsRequest():
            return ClientRequest("roots")
        case _:
            return None


def _question(params: types.ElicitRequestFormParams) -> ClientRequest:
    return ClientRequest("elicitation", _plain(params) | {"message": readable(params.message)})


def _plain(params: BaseModel) -> dict[str, Any]:
    return params.model_dump(by_alias=True, mode="json", exclude_none=True)


def _refusal(message: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=message)


def response_params(responses: InputResponses) -> dict[str, Any]:
    """Return what goes with a call that the server answered with questions before."""
    params: dict[str, Any] = {}
    if responses.replies is not None:
        params["inputResponses"] = {key: _plain(reply) for key, reply in responses.replies.items()}
    if responses.state is not None:
        params["requestState"] = responses.state
    return params
