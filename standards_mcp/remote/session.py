"""A session with another MCP server, on the SDK's client, and the questions of the server.

The SDK's client negotiates, follows changes, and receives questions and notifications. Requests go
straight to its dispatcher for two reasons: the client declares the same abilities for every caller,
and it refuses a whole list because of one malformed tool.

A server of 2026-07-28 answers a call with its questions, and the call is sent again with the
replies (`next_responses`). An earlier server sends a request during a call, without naming the call
(`ActiveCallers`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Final

import anyio
import mcp_types as types
import pydantic_core
from mcp import ClientSession, MCPError
from mcp.client.session import ClientRequestContext, ElicitationFnT, MessageHandlerFnT
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    PROTOCOL_VERSION_META_KEY,
    REQUEST_TIMEOUT,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic import BaseModel, ValidationError

from standards_mcp._utils.text import describe_exception, readable
from standards_mcp.calls.context import ClientRequest, HostContext, InputResponses
from standards_mcp.errors import ABILITIES, Ability, ApiError, CannotAskError, InvalidInputError

from .definitions import object_of

log = logging.getLogger(__name__)

# The SDK logs a traceback for each malformed notification, and a server may send any number.
logging.getLogger("client").setLevel(logging.ERROR)

_CLOSED: Final = "Connection closed"  # the SDK's message for all transports
# At this limit, reading pauses. Closing the connection would be harsh to an honest server. The
# drawback: a server that never reads its answers is noticed only by the deadline of its calls.
_MAX_OPEN_REQUESTS: Final = 8
"""The most unanswered requests of a server; an honest server asks one question at a time."""
_POLL_SECONDS: Final = 0.2


class OpenSession:
    """A session over the two streams of a transport.

    Args:
        name: The server's name in the log.

    Attributes:
        client: The SDK's client; it negotiates and listens.
        ended: Set once the connection has ended.
        failure: Why the connection was given up, or an empty string.
    """

    def __init__(
        self,
        name: str,
        streams: Any,
        on_notification: MessageHandlerFnT,
        on_elicitation: ElicitationFnT,
    ) -> None:
        version = metadata.version("standards-mcp")
        info = types.Implementation(name="standards-mcp", version=version)
        self._info = info.model_dump(by_alias=True, mode="json", exclude_none=True)
        self._param_headers: dict[str, Mapping[tuple[str, ...], str]] = {}
        self.ended = anyio.Event()
        self.failure = ""
        self._dispatcher = _Dispatcher(*streams, name=name, ended=self.ended)
        self.client = ClientSession(
            dispatcher=self._dispatcher,
            message_handler=on_notification,
            elicitation_callback=on_elicitation,
            client_info=info,
        )

    @property
    def version(self) -> str:
        """The negotiated version of the protocol."""
        return self.client.protocol_version or LATEST_HANDSHAKE_VERSION

    @property
    def is_handshake(self) -> bool:
        """True if the protocol has a handshake, in which the server learns callers' abilities."""
        return self.client.discover_result is None

    def abort(self, failure: str) -> None:
        """Give up the connection, with the reason."""
        self.failure = failure
        self.ended.set()

    async def initialize(self, *, can_ask: bool) -> None:
        """Do the handshake; the SDK's handshake would declare more abilities than callers have.

        Raises:
            MCPError: The server refuses.
            RuntimeError: The server speaks an unknown version of the protocol.
            ValidationError: The answer does not follow the protocol.
        """
        params = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            # One declaration is for all callers of the process. If it promised forms, which most
            # clients cannot show, tools with a fallback would break.
            "capabilities": _capabilities({"elicitation"} if can_ask else ()),
            "clientInfo": self._info,
        }
        options: CallOptions = {"cancel_on_abandon": False}
        raw = await self._dispatcher.send_raw_request("initialize", params, options)
        result = types.InitializeResult.model_validate(raw, by_name=False)
        if result.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise RuntimeError(f"it speaks version {result.protocol_version!r} of the protocol")
        self.client.adopt(result)
        await self.client.send_notification(types.InitializedNotification())

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        abilities: Collection[Ability] = (),
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Return the raw, unchecked result of a request.

        Args:
            abilities: The abilities of the caller. They are ignored after a handshake.

        Raises:
            InvalidInputError: The parameters cannot be sent: they have half a surrogate pair.
            MCPError: The server refuses, or the connection is closed.
        """
        try:  # a message that cannot be written would end the connection for all callers
            pydantic_core.to_json(params)
        except ValueError as exc:
            raise InvalidInputError(f"the parameters of {method} cannot be sent: {exc}") from None
        params, headers = dict(params or {}), {MCP_PROTOCOL_VERSION_HEADER: self.version}
        if not self.is_handshake:
            headers |= self._routing_headers(method, params)
            params["_meta"] = {
                **params.get("_meta", {}),
                PROTOCOL_VERSION_META_KEY: self.version,
                CLIENT_INFO_META_KEY: self._info,
                CLIENT_CAPABILITIES_META_KEY: _capabilities(abilities),
            }
        options: CallOptions = {"headers": headers}
        if on_progress:
            options["on_progress"] = on_progress
        return await self._dispatcher.send_raw_request(method, params, options)

    def note_tools(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Note the arguments of the listed tools that are also sent as HTTP headers."""
        schemas = {str(tool.get("name")): tool.get("inputSchema") for tool in tools}
        self._param_headers = {
            name: x_mcp_header_map(schema)
            for name, schema in schemas.items()
            if find_invalid_x_mcp_header(schema) is None
        }

    def _routing_headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return the HTTP headers that repeat parts of a request, required since 2026-07-28."""
        headers = {MCP_METHOD_HEADER: method}
        if key := NAME_BEARING_METHODS.get(method):
            headers[MCP_NAME_HEADER] = encode_header_value(params[key])
        if method == "tools/call":
            header_map = self._param_headers.get(params["name"], {})
            headers |= mcp_param_headers(header_map, params["arguments"])
        return headers


class _Dispatcher(JSONRPCDispatcher[Any]):
    """The SDK's dispatcher, with an event for the end of its connection, and with limits.

    A message on which the SDK fails, such as a number of 400 digits, does not end the connection.
    Reading pauses while `_MAX_OPEN_REQUESTS` requests are unanswered: the SDK would keep any number
    of them in memory for a server that never reads its answers.
    """

    def __init__(self, reader: Any, writer: Any, *, name: str, ended: anyio.Event) -> None:
        super().__init__(reader, writer)
        self._name = name
        self._ended = ended
        self._has_warned = False
        self._open_requests = anyio.Semaphore(_MAX_OPEN_REQUESTS)

    async def _dispatch(self, item: Any, *args: Any, **kwargs: Any) -> None:
        try:
            await super()._dispatch(item, *args, **kwargs)
        except (ArithmeticError, TypeError, ValueError) as exc:
            if not self._has_warned:
                fields = {"plugin": self._name, "reason": describe_exception(exc)}
                log.warning("an unreadable message was dropped", extra=fields)
            self._has_warned = True

    async def _dispatch_request(self, *args: Any, **kwargs: Any) -> None:
        await super()._dispatch_request(*args, **kwargs)
        async with self._open_requests:
            pass  # there is room for one more

    async def _handle_request(self, *args: Any, **kwargs: Any) -> None:
        async with self._open_requests:
            await super()._handle_request(*args, **kwargs)

    async def run(self, *args: Any, **kwargs: Any) -> None:
        """Run until the connection ends."""
        try:
            await super().run(*args, **kwargs)
        finally:
            self._ended.set()


async def negotiate(session: OpenSession, *, can_ask: bool) -> None:
    """Agree on a version of the protocol, the newest first.

    Args:
        can_ask: True to declare in a handshake that callers can be asked.
    """
    try:
        await session.client.discover()
    except (MCPError, ValidationError, RuntimeError) as exc:
        if isinstance(exc, MCPError) and is_closed(exc):
            raise
        try:
            await session.initialize(can_ask=can_ask)
        except MCPError as refusal:
            was_slow = isinstance(exc, MCPError) and exc.code == REQUEST_TIMEOUT
            if is_closed(refusal) or not was_slow:
                raise
            # The server was still starting. It has read the first request meanwhile, and expects
            # that version now.
            await session.client.discover()


def is_closed(error: MCPError) -> bool:
    """Return True if the connection ended. The code alone is used for other errors, too."""
    return error.code == CONNECTION_CLOSED and error.message == _CLOSED


def missing_ability(error: MCPError) -> Ability | None:
    """Return the ability that the client lacks, if the request was refused for this reason."""
    if error.code != types.MISSING_REQUIRED_CLIENT_CAPABILITY:
        return None
    needed = object_of(object_of(error.error.data).get("requiredCapabilities"))
    return next((each for each in ABILITIES if each in needed), None)


def _capabilities(abilities: Collection[Ability]) -> dict[str, Any]:
    return {each: {"form": {}} if each == "elicitation" else {} for each in sorted(abilities)}


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """A running call, and its unanswered questions."""

    caller: HostContext
    questions: set[anyio.CancelScope] = field(default_factory=set[anyio.CancelScope])


class ActiveCallers:
    """The callers of the running calls. A question of the server may be for any of them."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._call_ended = anyio.Event()

    @contextmanager
    def calling(self, caller: HostContext) -> Generator[None]:
        """Let the server ask *caller* during the body; then cancel its unanswered questions."""
        call = _Call(caller)
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            self._call_ended.set()
            for question in call.questions:
                question.cancel()

    async def wait_idle(self) -> None:
        """Wait until no call runs."""
        while self._calls:
            self._call_ended = anyio.Event()
            await self._call_ended.wait()

    async def on_elicitation(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Return the caller's reply to an ``elicitation/create``, or an error."""
        del context
        if not isinstance(params, types.ElicitRequestFormParams):
            return _refusal("Only forms can be shown to the user.")
        if not self._calls:
            return _refusal("No call is running, so no user can be asked. Ask during a call.")
        if len(self._calls) > 1:
            # The request does not name its call, and a guess might ask the wrong person.
            return _refusal(
                f"{len(self._calls)} calls are running, and the question does not name its call. "
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
        return _refusal("The call has ended, so the user cannot be asked.")


async def next_responses(
    answer: Mapping[str, Any], caller: HostContext, title: str
) -> InputResponses | None:
    """Return the replies to the questions in an answer; None if it has no questions.

    Args:
        title: The server's name in errors.

    Raises:
        ApiError: A question cannot be passed on.
        CannotAskError: The caller cannot be asked.
        InputRequiredError: The caller's client must ask its user, and send the call again.
    """
    if answer.get("resultType") != "input_required":
        return None
    try:
        required = types.InputRequiredResult.model_validate(answer, by_name=False)
    except ValidationError:
        raise ApiError(
            f"{title} asks in a way that does not follow the protocol. Tell its maintainer."
        ) from None
    requests: dict[str, ClientRequest] = {}
    for key, question in (required.input_requests or {}).items():
        if not (request := _request(question)):
            raise ApiError(
                f"{title} sent a question that cannot be passed on ({question.method}), though "
                "this client does not declare support for it. Tell its maintainer."
            )
        requests[key] = request
    if requests:
        return await caller.next_responses(requests, required.request_state)
    await anyio.sleep(_POLL_SECONDS)  # the server asks for the same call a little later
    return InputResponses(None, required.request_state)


def _request(sent: types.InputRequest) -> ClientRequest | None:
    """Return the request for the client; None for other requests, such as a page to visit."""
    match sent:
        case types.ElicitRequest(params=types.ElicitRequestFormParams() as form):
            return _question(form)
        case types.CreateMessageRequest():
            return ClientRequest("sampling", _as_json(sent.params))
        case types.ListRootsRequest():
            return ClientRequest("roots")
        case _:
            return None


def _question(params: types.ElicitRequestFormParams) -> ClientRequest:
    return ClientRequest("elicitation", _as_json(params) | {"message": readable(params.message)})


def _as_json(params: BaseModel) -> dict[str, Any]:
    return params.model_dump(by_alias=True, mode="json", exclude_none=True)


def _refusal(message: str) -> types.ErrorData:
    return types.ErrorData(code=types.INVALID_REQUEST, message=message)


def response_params(responses: InputResponses) -> dict[str, Any]:
    """Return the additional parameters of a repeated call."""
    params: dict[str, Any] = {}
    if responses.replies is not None:
        replies = responses.replies.items()
        params["inputResponses"] = {key: _as_json(reply) for key, reply in replies}
    if responses.state is not None:
        params["requestState"] = responses.state
    return params
