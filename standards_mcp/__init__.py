"""The public API for plugin authors.

A plugin is a subclass of `Plugin`, announced in the entry-point group ``standards_mcp.plugins``;
its methods marked with `hookimpl` implement the hooks of `standards_mcp.hookspecs`.
"""

from .catalog import (
    Catalog,
    CatalogError,
    Facets,
    FilterError,
    FilterExpression,
    SearchHit,
    SearchResult,
    StandardRecord,
)
from .errors import (
    ApiError,
    ConfigError,
    InvalidInputError,
    NotFoundError,
    PluginConflictError,
    PluginError,
    StandardsMcpError,
    ToolError,
)
from .hookspecs import hookimpl
from .plugin import (
    Filter,
    Health,
    Plugin,
    PluginContext,
    PluginSettings,
    Tool,
    ToolCaller,
    ToolResult,
)

__all__ = [
    "ApiError",
    "Catalog",
    "CatalogError",
    "ConfigError",
    "Facets",
    "Filter",
    "FilterError",
    "FilterExpression",
    "Health",
    "InvalidInputError",
    "NotFoundError",
    "Plugin",
    "PluginConflictError",
    "PluginContext",
    "PluginError",
    "PluginSettings",
    "SearchHit",
    "SearchResult",
    "StandardRecord",
    "StandardsMcpError",
    "Tool",
    "ToolCaller",
    "ToolError",
    "ToolResult",
    "hookimpl",
]
