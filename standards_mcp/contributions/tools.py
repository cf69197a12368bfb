"""What a plugin declares, read and checked before any client sees it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from standards_mcp.errors import PluginError
from standards_mcp.plugin import Filter, Tool

from .arguments import Arguments, context_argument, read_arguments
from .base import Contribution, check_texts, common_fields, describe
from .results import Result, read_result
from .schemas import SchemaError

_TOOL_FLAGS: Final = ("read_only", "destructive", "idempotent", "open_world", "accepts_filters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Within what a tool is called.

    Attributes:
        timeout: Seconds for one call.
        rate_limit: How often it may be called, such as ``60/minute``; None: as often as it is.
        cache_ttl: Seconds for which an answer is given again; 0: never.
        concurrency: How many calls of it run at a time; None: as many as its plugin's.
        plugin_concurrency: How many calls of all tools of its plugin do.
        max_output_tokens: About how long an answer may be.
    """

    timeout: float = 30.0
    rate_limit: str | None = None
    cache_ttl: float = 0
    concurrency: int | None = None
    plugin_concurrency: int = 16
    max_output_tokens: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool(Contribution):
    """A tool with what the host read from its function.

    Attributes:
        error: Why it can be served to nobody, or an empty string.
        conflict: Whose name it has; another name in its override solves that. Empty without one.
        filters: Those among its arguments; None where that is not settled.
        extend: Returns its arguments with filters, where they are not those of its function.
        context: The name of the argument that takes the `CallContext`, or an empty string.
    """

    kind = "tool"
    tool: Tool
    result: Result
    context: str = ""
    limits: Limits = Limits()
    error: str = ""
    conflict: str = ""
    filters: tuple[Filter, ...] | None = None
    extend: Callable[[tuple[Filter, ...]], Arguments] | None = field(default=None, repr=False)

    def with_filters(self, filters: tuple[Filter, ...]) -> RegisteredTool:
        """Return the tool with filters as arguments, if it accepts any.

        Raises:
            SchemaError: They do not fit it.
        """
        if not self.tool.accepts_filters or filters == self.filters:
            return self
        read = self.extend or partial(read_arguments, self.tool)
        return replace(self, arguments=read(filters), filters=filters)

    def with_filters_or_error(self, filters: tuple[Filter, ...]) -> RegisteredTool:
        """Return the tool with filters, or with the reason why they do not fit it."""
        try:
            return self.with_filters(filters)
        except SchemaError as exc:
            return replace(self, error=str(exc))

    @property
    def definition(self) -> dict[str, Any]:
        """What a model reads of it."""
        return {
            "name": self.published,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.arguments.schema,
        }


def read_tool(plugin: str, tool: object) -> RegisteredTool:
    """Return a tool that a plugin declared with all that the host needs of it.

    It is published under a name without dots, which every client accepts.

    Raises:
        PluginError: The tool cannot be published to every client.
    """
    if not isinstance(tool, Tool):
        raise PluginError(plugin, f"register_tools returned a {type(tool).__name__}")
    what = describe(plugin, "tool", tool.name)
    if why := _tool_fault(tool):
        raise PluginError(plugin, f"{what}: {why}")
    description = check_texts(plugin, what, tool)
    try:
        arguments, result = read_arguments(tool), read_result(tool.function)
        context = context_argument(tool.function)
    except SchemaError as exc:
        raise PluginError(plugin, f"{what}: {exc}") from exc
    return RegisteredTool(
        **common_fields(plugin, tool, description),
        tool=tool,
        arguments=arguments,
        result=result,
        context=context,
        filters=(),
    )


def _tool_fault(tool: Tool) -> str:
    """Return what is wrong with the plain fields of a tool, or an empty string.

    A type checker would find it, but what it misses would break the list of all plugins' tools.
    """
    given: Any = tool
    if odd := [name for name in _TOOL_FLAGS if not isinstance(getattr(tool, name), bool)]:
        return f"its {odd[0]} must be true or false"
    timeout = given.timeout
    if timeout is not None and not _is_time(timeout):
        return "its timeout must be a positive number of seconds"
    if given.cache_ttl and not (given.read_only and given.cache_ttl > 0):
        return "its cache_ttl must be a number of seconds, and needs read_only = True"
    try:
        json.dumps(dict(tool.meta))
    except (TypeError, ValueError, RecursionError) as exc:
        return f"its meta is not a JSON object: {exc}"
    return ""


def _is_time(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value < math.inf
