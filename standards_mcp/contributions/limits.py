"""The limits of calls, of those that authors and the admin set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from standards_mcp.config.models.tools import (
    ContributionSettings,
    Override,
    ToolOverride,
    ToolSettings,
)
from standards_mcp.plugin import Route, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of the calls of a tool, a prompt or a resource.

    Attributes:
        timeout: Seconds for one call.
        rate_limits: How often one caller may call it, such as ``60/minute``; all of them count.
        cache_ttl: Seconds for which the answer of a tool is kept; 0: never.
        cache_scope: See `standards_mcp.Tool`.
        concurrency: How many calls of it may run at a time; None: no limit of its own.
        plugin_concurrency: How many calls of its plugin may run at a time.
        max_output_tokens: About how long an answer may be; None: any length.
        max_argument_values: How many values the arguments may have, with all that they contain.
    """

    timeout: float = 30.0
    rate_limits: tuple[str, ...] = ()
    cache_ttl: float = 0
    cache_scope: Literal["private", "public"] = "private"
    concurrency: int | None = None
    plugin_concurrency: int = 16
    max_output_tokens: int | None = None
    max_argument_values: int = 10_000


def tool_limits(tool: Tool, override: ToolOverride, tools: ToolSettings) -> Limits:
    """Return the limits of a tool: the admin's for it, else its author's, else those of all tools.

    An author can make the admin's limits of rate and length for all tools stricter, and not wider.
    """
    rates = (override.rate_limit,) if override.rate_limit else (tool.rate_limit, tools.rate_limit)
    most = min(tool.max_output_tokens or tools.max_output_tokens, tools.max_output_tokens)
    ttl = tool.cache_ttl if override.cache_ttl is None else override.cache_ttl
    return Limits(
        timeout=override.timeout or tool.timeout or tools.timeout,
        rate_limits=tuple(dict.fromkeys(filter(None, rates))),
        cache_ttl=ttl,
        cache_scope=tool.cache_scope,
        concurrency=override.concurrency,
        plugin_concurrency=tools.concurrency,
        max_output_tokens=override.max_output_tokens or most,
        max_argument_values=tools.max_argument_values,
    )


def route_limits(route: Route, tools: ToolSettings) -> Limits:
    """Return the limits of a route: its author's and those of all tools."""
    return Limits(
        timeout=route.timeout or tools.timeout,
        rate_limits=tuple(dict.fromkeys(filter(None, (route.rate_limit, tools.rate_limit)))),
        plugin_concurrency=tools.concurrency,
    )


def content_limits(
    timeout: float | None, override: Override, table: ContributionSettings, tools: ToolSettings
) -> Limits:
    """Return the limits of a prompt or a resource: the admin's for it, else those of its kind.

    Args:
        timeout: Its own, in seconds.
    """
    rate = override.rate_limit or table.rate_limit
    return Limits(
        timeout=override.timeout or timeout or tools.timeout,
        rate_limits=(rate,) if rate else (),
        concurrency=override.concurrency,
        plugin_concurrency=tools.concurrency,
        max_output_tokens=override.max_output_tokens or table.max_output_tokens,
        max_argument_values=tools.max_argument_values,
    )
