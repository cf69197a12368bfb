"""The tools of another MCP server, listed again whenever it says that they changed."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Final

import anyio
import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from pydantic import ValidationError

from standards_mcp._utils.text import describe_exception

from .session import Live, RawTool, list_tools

log = logging.getLogger(__name__)


LISTEN_AGAIN_SECONDS: Final = 10.0
"""How long after the end of a stream of changes another one is opened."""

_SETTLE_SECONDS: Final = 0.2


class ToolList:
    """What one server lists.

    Args:
        name: What the log calls the server.
        on_tools: Told the tools whenever they were listed: all that it has, as it spells them.
    """

    def __init__(self, name: str, on_tools: Callable[[list[RawTool]], None]) -> None:
        self._name = name
        self._on_tools = on_tools
        self._changed = anyio.Event()

    async def learn(self, live: Live) -> None:
        """List the tools and tell of them."""
        tools, is_all = await list_tools(live)
        if not is_all:
            fields = {"plugin": self._name, "kept": len(tools)}
            log.warning("a server has more tools than are taken", extra=fields)
        self._on_tools(tools)

    async def follow(self, live: Live) -> None:
        """List the tools again whenever they change, until the connection ends."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, live.session)
            group.start_soon(self._learn_changes, live)
            await live.dispatcher.ended.wait()
            group.cancel_scope.cancel()

    async def hear(self, message: object) -> None:
        """Take note of a change that a server of an earlier generation tells."""
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()

    async def _listen(self, session: ClientSession) -> None:
        """Hear of changes as the 2026-07-28 generation tells them."""
        for attempt in itertools.count():
            try:
                async with listen(session, tools_list_changed=True) as events:
                    if attempt:
                        self._changed.set()  # nobody told what changed meanwhile
                    async for _ in events:
                        self._changed.set()
            except (ListenNotSupportedError, MCPError) as exc:
                log.debug("no changes are told", extra={"plugin": self._name, "reason": str(exc)})
                return
            except (SubscriptionLost, TimeoutError) as exc:
                log.debug("a stream ended", extra={"plugin": self._name, "reason": str(exc)})
            await anyio.sleep(LISTEN_AGAIN_SECONDS)

    async def _learn_changes(self, live: Live) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                await self.learn(live)
            except (MCPError, ValidationError) as exc:
                fields = {"plugin": self._name, "reason": describe_exception(exc)}
                log.warning("changed tools cannot be listed", extra=fields)
            await anyio.sleep(_SETTLE_SECONDS)
