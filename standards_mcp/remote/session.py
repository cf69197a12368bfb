"""One session with another MCP server, on the SDK's client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import anyio
import importlib_metadata
import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.client.session import ElicitationFnT, MessageHandlerFnT
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CONNECTION_CLOSED,
    PROTOCOL_VERSION_META_KEY,
    REQUEST_TIMEOUT,
)
from mcp_types.methods import parse_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

RawTool: TypeAlias = dict[str, Any]
"""A tool as its server lists it."""

ASKS: Final = "standards-mcp/asks"
"""In the ``_meta`` of a call, which it does not leave with: its caller can be asked."""

MAX_TOOLS: Final = 1000

_MAX_PAGES: Final = 100

_CLOSED: Final = "Connection closed"  # how the SDK says it, whatever the transport


@dataclass(frozen=True, slots=True)
class Live:
    """A session that is open, and what carries its messages."""

    session: ClientSession
    dispatcher: Dispatcher

    @property
    def is_told_once(self) -> bool:
        """Whether the server was told at its start, and not with each call, what clients can."""
        return self.session.discover_result is None


@asynccontextmanager
async def open_session(
    streams: Any, hear: MessageHandlerFnT, ask: ElicitationFnT, *, asks: bool
) -> AsyncGenerator[Live]:
    """Yield a session over the two streams of a transport; nothing is agreed upon yet.

    Args:
        hear: Gets the notifications of the server.
        ask: Gets its questions during calls.
        asks: Whether a server of an earlier generation is told that it may ask.
    """
    dispatcher = Dispatcher(*streams, asks=asks)
    version = importlib_metadata.version("standards-mcp")
    client = types.Implementation(name="standards-mcp", version=version)
    async with ClientSession(
        dispatcher=dispatcher,
        message_handler=hear,
        elicitation_callback=ask,
        client_info=client,
    ) as session:
        yield Live(session, dispatcher)


async def negotiate(session: ClientSession) -> None:
    """Agree on a generation of the protocol, the newest first."""
    try:
        await session.discover()
    except (MCPError, ValidationError, RuntimeError) as exc:
        if isinstance(exc, MCPError) and is_closed(exc):
            raise
        try:
            await session.initialize()
        except MCPError as refusal:
            was_slow = isinstance(exc, MCPError) and exc.code == REQUEST_TIMEOUT
            if is_closed(refusal) or not was_slow:
                raise
            await session.discover()  # it refuses since it has read the first question by now


async def list_tools(live: Live) -> tuple[list[RawTool], bool]:
    """Return the tools of a server, as it spells them, and whether those are all."""
    tools: list[RawTool] = []
    cursors: list[str] = []
    while len(cursors) < _MAX_PAGES and len(tools) <= MAX_TOOLS:
        params = types.PaginatedRequestParams(cursor=cursors[-1] if cursors else None)
        page = await live.session.list_tools(params=params)
        tools += live.dispatcher.listed
        if page.next_cursor is None:
            return tools[:MAX_TOOLS], len(tools) <= MAX_TOOLS
        if page.next_cursor in cursors:
            break  # it goes round in circles
        cursors.append(page.next_cursor)
    return tools[:MAX_TOOLS], False


def is_closed(error: MCPError) -> bool:
    """Tell whether the connection ended; servers use the same code for errors of theirs."""
    return error.code == CONNECTION_CLOSED and error.message == _CLOSED


class Dispatcher(JSONRPCDispatcher[Any]):
    """Tells of the end of its connection, and keeps listed tools from being held to one standard.

    The SDK refuses a list for one malformed tool in it, and with it all tools of the server. It
    would also tell every server that all callers can be asked, in every way.
    """

    def __init__(self, reader: Any, writer: Any, *, asks: bool) -> None:
        super().__init__(reader, writer)
        self._asks = asks
        self.ended = anyio.Event()
        self.failure = ""
        self.listed: list[RawTool] = []

    def give_up(self, failure: str) -> None:
        """Let the connection be ended, over which nothing comes any more."""
        self.failure = failure
        self.ended.set()

    async def run(self, *args: Any, **kwargs: Any) -> None:
        """Run until the connection ends, and tell."""
        try:
            await super().run(*args, **kwargs)
        finally:
            self.ended.set()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Send a request; of a list of tools, all are kept aside and the well-formed returned."""
        if params:
            params = self._with_what_clients_can(method, params)
        result = await super().send_raw_request(method, params, opts, **kwargs)
        if method != "tools/list" or not isinstance(result.get("tools"), list):
            return result
        found = cast("list[object]", result["tools"])
        self.listed = [cast("RawTool", tool) for tool in found if isinstance(tool, dict)]
        meta: Mapping[str, Any] = (params or {}).get("_meta", {})
        version = meta.get(PROTOCOL_VERSION_META_KEY, LATEST_HANDSHAKE_VERSION)
        return {**result, "tools": [each for each in self.listed if _is_well_formed(each, version)]}

    def _with_what_clients_can(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if method == "initialize":
            return {**params, "capabilities": _able(params["capabilities"], asks=self._asks)}
        if not (meta := dict(params.get("_meta", {}))):
            return params
        asks = meta.pop(ASKS, False)
        if CLIENT_CAPABILITIES_META_KEY in meta:
            able = _able(meta[CLIENT_CAPABILITIES_META_KEY], asks=asks)
            meta[CLIENT_CAPABILITIES_META_KEY] = able
        rest = {key: value for key, value in params.items() if key != "_meta"}
        return rest | ({"_meta": meta} if meta else {})


def _able(capabilities: Mapping[str, Any], *, asks: bool) -> dict[str, Any]:
    others = {key: value for key, value in capabilities.items() if key != "elicitation"}
    return others | ({"elicitation": {"form": {}}} if asks else {})


def _is_well_formed(tool: RawTool, version: str) -> bool:
    """Tell whether the SDK would take a list with this tool in it."""
    page = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
    try:
        parse_server_result("tools/list", version, page)
    except ValidationError:
        return False
    return True


def why_not_valid(error: ValidationError) -> str:
    """Return the first thing that is wrong with an answer, without what else it holds."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'answer'}: {first['msg']}"
