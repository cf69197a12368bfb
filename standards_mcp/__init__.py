"""The public API for plugin authors.

A plugin is a subclass of `Plugin`, announced in the entry-point group ``standards_mcp.plugins``;
its methods declare tools, prompts, resources and skills with `tool`, `prompt`, `resource` and
`skill`. Methods with `hookimpl` implement the hooks of `standards_mcp.hookspecs`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .decorators import prompt, resource, skill, tool
    from .errors import (
        ApiError,
        CannotAskError,
        ConfigError,
        FilterError,
        InvalidInputError,
        NotFoundError,
        PluginConflictError,
        PluginDeprecationWarning,
        PluginError,
        ServiceError,
        StandardsMcpError,
        TimedOutError,
        ToolError,
    )
    from .filters import FilterExpression
    from .hookspecs import hookimpl
    from .plugin import (
        ApiKey,
        CallContext,
        Completer,
        Filter,
        Health,
        Message,
        Plugin,
        PluginContext,
        PluginSettings,
        Prompt,
        Resource,
        Route,
        Service,
        ServiceUrl,
        Skill,
        Tool,
        ToolCall,
        ToolCaller,
        ToolHandler,
        ToolResult,
        Variable,
        is_loopback,
        is_unencrypted,
        may_use_proxy,
    )

__all__ = [
    "ApiError",
    "ApiKey",
    "CallContext",
    "CannotAskError",
    "Completer",
    "ConfigError",
    "Filter",
    "FilterError",
    "FilterExpression",
    "Health",
    "InvalidInputError",
    "Message",
    "NotFoundError",
    "Plugin",
    "PluginConflictError",
    "PluginContext",
    "PluginDeprecationWarning",
    "PluginError",
    "PluginSettings",
    "Prompt",
    "Resource",
    "Route",
    "Service",
    "ServiceError",
    "ServiceUrl",
    "Skill",
    "StandardsMcpError",
    "TimedOutError",
    "Tool",
    "ToolCall",
    "ToolCaller",
    "ToolError",
    "ToolHandler",
    "ToolResult",
    "Variable",
    "hookimpl",
    "is_loopback",
    "is_unencrypted",
    "may_use_proxy",
    "prompt",
    "resource",
    "skill",
    "tool",
]


_MODULES: Final = (".errors", ".filters", ".hookspecs", ".plugin", ".decorators")


if not TYPE_CHECKING:  # it would hide misspelt names from type checkers

    def __getattr__(name: str) -> object:
        # On first use: the command line imports this package, and must handle Ctrl-C first.
        if name in __all__:
            for module in (import_module(item, __name__) for item in _MODULES):
                if name in vars(module):
                    return vars(module)[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
