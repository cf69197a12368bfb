"""The classes that plugin authors subclass and return.

A plugin never gets the server object. It returns tools, prompts, resources, skills, filters and
commands as data, and the host serves them.
"""

from .base import (
    MissingServiceError,
    Plugin,
    PluginContext,
    Service,
    SettingsT,
    service_name,
)
from .calls import (
    AnswerT,
    CallContext,
    Health,
    LogLevel,
    Message,
    ToolCall,
    ToolCaller,
    ToolHandler,
    ToolResult,
)
from .declared import Completer, Filter, Prompt, Resource, Route, Skill, Tool
from .settings import (
    ApiKey,
    PluginSettings,
    ServiceUrl,
    Variable,
    is_loopback,
    is_unencrypted,
    may_use_proxy,
)

__all__ = [
    "AnswerT",
    "ApiKey",
    "CallContext",
    "Completer",
    "Filter",
    "Health",
    "LogLevel",
    "Message",
    "MissingServiceError",
    "Plugin",
    "PluginContext",
    "PluginSettings",
    "Prompt",
    "Resource",
    "Route",
    "Service",
    "ServiceUrl",
    "SettingsT",
    "Skill",
    "Tool",
    "ToolCall",
    "ToolCaller",
    "ToolHandler",
    "ToolResult",
    "Variable",
    "is_loopback",
    "is_unencrypted",
    "may_use_proxy",
    "service_name",
]
