"""One session with another MCP server, on the SDK's client.

The SDK's client negotiates, follows changes, and takes questions and notifications. Requests go
past it, straight to its dispatcher, for two reasons: it says the same of every caller, where one
can be asked and the next cannot; and it refuses a whole list for one malformed tool in it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import anyio
import importlib_metadata
import mcp_types as types
import pydantic_core
from mcp import ClientSession, MCPError
from mcp.client.session import ElicitationFnT, MessageHandlerFnT
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
from pydantic import ValidationError

from standards_mcp._utils.text import describe_exception
from standards_mcp.errors import ABILITIES, Ability, InvalidInputError

from .definitions import object_of

log = logging.getLogger(__name__)

# It warns of each malformed notification with a traceback, and a server may send any number.
logging.getLogger("client").setLevel(logging.ERROR)

_CLOSED: Final = "Connection closed"  # how the SDK says it, whatever the transport
_MOST_OPEN: Final = 8
"""Requests of a server that may wait for their answers; honest ones ask one thing at a time."""


class OpenSession:
    """A session over the two streams of a transport.

    Args:
        name: What the log calls the server.

    Attributes:
        client: The SDK's client; it negotiates and listens.
        ended: Set once nothing comes over the connection any more.
        failure: Why the connection was given up, or an empty string.
    """

    def __init__(
        self,
        name: str,
        streams: Any,
        on_notification: MessageHandlerFnT,
        on_elicitation: ElicitationFnT,
    ) -> None:
        version = importlib_metadata.version("standards-mcp")
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
        """The version of the protocol that was agreed upon."""
        return self.client.protocol_version or LATEST_HANDSHAKE_VERSION

    @property
    def is_handshake(self) -> bool:
        """Whether the server was told at its start, and not with each call, what callers can."""
        return self.client.discover_result is None

    def abort(self, failure: str) -> None:
        """Let the connection be ended, since nothing comes over it any more."""
        self.failure = failure
        self.ended.set()

    async def initialize(self, *, can_ask: bool) -> None:
        """Do the handshake; that of the SDK's client would promise more than callers can do.

        Raises:
            MCPError: The server refuses.
            RuntimeError: It speaks no version that is known here.
            ValidationError: Its answer is not of the protocol.
        """
        params = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
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
        """Return the result of a request as the server spelt it, unchecked.

        Args:
            abilities: What the caller can be asked. Servers of an earlier generation do not learn
                it here: they were told in the handshake.

        Raises:
            InvalidInputError: The parameters cannot be sent, such as half a character.
            MCPError: The server refuses, or the connection is closed.
        """
        _check_writable(method, params)
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
        """Note which arguments of the listed tools go into HTTP headers, too."""
        schemas = {str(tool.get("name")): tool.get("inputSchema") for tool in tools}
        self._param_headers = {
            name: x_mcp_header_map(schema)
            for name, schema in schemas.items()
            if find_invalid_x_mcp_header(schema) is None
        }

    def _routing_headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        """Return the HTTP headers that a server of 2026-07-28 compares with the request."""
        headers = {MCP_METHOD_HEADER: method}
        if key := NAME_BEARING_METHODS.get(method):
            headers[MCP_NAME_HEADER] = encode_header_value(params[key])
        if method == "tools/call":
            header_map = self._param_headers.get(params["name"], {})
            headers |= mcp_param_headers(header_map, params["arguments"])
        return headers


class _Dispatcher(JSONRPCDispatcher[Any]):
    """Tells when its connection has ended, which the SDK tells only those who wait for answers.

    A message that the SDK fails at, such as a number of 400 digits, ends no connection. Nothing
    more is read while `_MOST_OPEN` requests wait: the SDK would keep any number of them in memory
    for a server that never reads its answers.
    """

    def __init__(self, reader: Any, writer: Any, *, name: str, ended: anyio.Event) -> None:
        super().__init__(reader, writer)
        self._name = name
        self._ended = ended
        self._has_dropped = False
        self._open = anyio.Semaphore(_MOST_OPEN)

    async def _dispatch(self, item: Any, *args: Any, **kwargs: Any) -> None:
        try:
            await super()._dispatch(item, *args, **kwargs)
        except (ArithmeticError, TypeError, ValueError) as exc:
            if not self._has_dropped:
                fields = {"plugin": self._name, "reason": describe_exception(exc)}
                log.warning("a message was dropped that cannot be read", extra=fields)
            self._has_dropped = True

    async def _dispatch_request(self, *args: Any, **kwargs: Any) -> None:
        await super()._dispatch_request(*args, **kwargs)
        async with self._open:
            pass  # there is room for one more

    async def _handle_request(self, *args: Any, **kwargs: Any) -> None:
        async with self._open:
            await super()._handle_request(*args, **kwargs)

    async def run(self, *args: Any, **kwargs: Any) -> None:
        """Run until the connection ends."""
        try:
            await super().run(*args, **kwargs)
        finally:
            self._ended.set()


async def negotiate(session: OpenSession, *, can_ask: bool) -> None:
    """Agree on a generation of the protocol, the newest first.

    Args:
        can_ask: What a server of an earlier generation is told of all callers.
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
            # It was still starting, has read the first request by now, and holds us to that.
            await session.client.discover()


def is_closed(error: MCPError) -> bool:
    """Tell whether the connection ended; servers use the same code for errors of theirs."""
    return error.code == CONNECTION_CLOSED and error.message == _CLOSED


def missing_ability(error: MCPError) -> Ability | None:
    """Return what a client would need for a request that was refused for that, if it was."""
    if error.code != types.MISSING_REQUIRED_CLIENT_CAPABILITY:
        return None
    needed = object_of(object_of(error.error.data).get("requiredCapabilities"))
    return next((each for each in ABILITIES if each in needed), None)


def _check_writable(method: str, params: object) -> None:
    # What the transports cannot write would end the connection for all.
    try:
        pydantic_core.to_json(params)
    except ValueError as exc:
        raise InvalidInputError(f"what {method} is asked with cannot be sent: {exc}") from None


def _capabilities(abilities: Collection[Ability]) -> dict[str, Any]:
    return {each: {"form": {}} if each == "elicitation" else {} for each in sorted(abilities)}
