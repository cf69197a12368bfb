"""Lines for the log of a client, which says which ones it wants.

Before 2026-07-28 a client says so for its session, by ``logging/setLevel``. Since then it says so
with each request. One that has not said so gets none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

import anyio.lowlevel
import mcp_types as types
import pydantic_core
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from standards_mcp._utils.text import readable
from standards_mcp.plugin import LogLevel

if TYPE_CHECKING:
    from mcp.server.connection import Connection

    from .context import Context

SET_LEVEL: Final = "logging/setLevel"
_LEVELS: Final[tuple[LogLevel, ...]] = get_args(LogLevel)
_STATE: Final = "standards-mcp/log-level"


def connection_of(ctx: Context) -> Connection:
    """Return what lasts as long as a client is connected."""
    # The SDK gives handlers no other way to it.
    return ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    """Answer ``logging/setLevel``."""
    connection_of(ctx).state[_STATE] = params.level
    return types.EmptyResult()


async def send_line(ctx: Context, message: str, level: LogLevel) -> None:
    """Send a line about a request to its client, if it wants lines of this level.

    Raises:
        ValueError: There is no such level, or the line cannot be sent.
    """
    severity = _LEVELS.index(level)
    pydantic_core.to_json(message)
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    wanted: Any = (
        (ctx.meta or {}).get(LOG_LEVEL_META_KEY)
        if is_modern
        else connection_of(ctx).state.get(_STATE)
    )
    if wanted in _LEVELS and severity >= _LEVELS.index(wanted):
        line = types.LoggingMessageNotificationParams(level=level, data=readable(message))
        notice = types.LoggingMessageNotification(params=line)
        await ctx.session.send_notification(notice, ctx.request_id)
    # A tool that does nothing else would keep the loop, and could not be cancelled.
    await anyio.lowlevel.checkpoint()
