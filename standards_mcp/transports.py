"""The public API for transports: other ways than stdin and stdout to reach the server.

A package announces a `Transport` in the entry-point group ``standards_mcp.transports``, and
``serve --transport NAME`` finds it by the name of its entry point. The other names are the types
and functions of the host that a transport uses, imported on first use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from ._utils.full_disk import reason_of
    from ._utils.logs import PlainFormatter
    from ._utils.secrets import MASK, looks_secret, mask, masked_data
    from .calls.call import NO_ERRORS, NOT_SERVED, CallRecord, Observer
    from .calls.context import HostContext, Principal
    from .commands import Finding
    from .config.edits import (
        change_config,
        file_to_change,
        settings_without_profile,
        with_checked_values,
        with_tool_switched,
    )
    from .config.models.http import (
        ADMIN,
        ALL,
        BUILT_IN,
        METRICS,
        AuthSettings,
        HttpSettings,
        JwtSettings,
        OidcSettings,
        Scope,
        TokenSection,
    )
    from .config.models.settings import Settings
    from .config.models.sign_in import ServerAuth
    from .contributions.results import error_result
    from .contributions.schemas import plain_object
    from .contributions.selection import EVERYTHING, Access, Selection, gained
    from .contributions.tools import RegisteredTool, definition_tokens
    from .host import Host
    from .loading.discovery import disabled_reason
    from .loading.health import check_health, services_health
    from .loading.providers import provider_of
    from .loading.records import PluginKind, PluginRecord, Status
    from .loading.switching import newly_loaded, with_plugin_switched
    from .remote.approvals import Change, difference
    from .remote.external import ServerPlugin, server_of
    from .remote.sign_in import Account
    from .server.answers import (
        CLIENT_LEFT,
        Answer,
        json_response,
        refused,
        tool_failure,
        while_connected,
        with_body,
    )
    from .server.auditing import audited
    from .server.context import Context
    from .server.handlers import wire_result, wire_tool
    from .server.reload import ReloadOptions, reload_from_sources
    from .server.routes import PluginRoutes
    from .server.server import HostServer
    from .server.tracing import traced

__all__ = [
    "ADMIN",
    "ALL",
    "BUILT_IN",
    "CLIENT_LEFT",
    "EVERYTHING",
    "MASK",
    "METRICS",
    "NOT_SERVED",
    "NO_ERRORS",
    "Access",
    "Account",
    "Answer",
    "AuthSettings",
    "CallRecord",
    "Change",
    "Context",
    "Host",
    "HostContext",
    "HostServer",
    "HttpSettings",
    "JwtSettings",
    "Observer",
    "OidcSettings",
    "PlainFormatter",
    "PluginKind",
    "PluginRecord",
    "PluginRoutes",
    "Principal",
    "RegisteredTool",
    "ReloadOptions",
    "Scope",
    "Selection",
    "ServerAuth",
    "ServerPlugin",
    "Settings",
    "Start",
    "Status",
    "TokenSection",
    "Transport",
    "audited",
    "change_config",
    "check_health",
    "definition_tokens",
    "difference",
    "disabled_reason",
    "error_result",
    "file_to_change",
    "gained",
    "json_response",
    "looks_secret",
    "mask",
    "masked_data",
    "newly_loaded",
    "plain_object",
    "provider_of",
    "reason_of",
    "refused",
    "reload_from_sources",
    "server_of",
    "services_health",
    "settings_without_profile",
    "tool_failure",
    "traced",
    "while_connected",
    "wire_result",
    "wire_tool",
    "with_body",
    "with_checked_values",
    "with_plugin_switched",
    "with_tool_switched",
]


class Start(Protocol):
    """A start of ``serve`` with a transport, before any plugin is imported.

    The values are read in this order: check the settings, override some, load the host, and run.
    """

    @property
    def is_insecure(self) -> bool:
        """True with ``--insecure``: serve everybody, even if no token is needed."""
        ...

    def read_settings(self) -> Settings:
        """Read the configuration with the options of the command line.

        Raises:
            ConfigError: The configuration is invalid.
        """
        ...

    def is_set(self, *path: str) -> bool:
        """True if a file, a variable or an option sets the key at *path*, such as server, port."""
        ...

    def override(self, values: Mapping[str, str]) -> None:
        """Set more keys for this process, as ``--set KEY=VALUE`` does."""
        ...

    def load_host(self) -> Host:
        """Import the plugins; return the same host each time.

        Raises:
            PluginError: A required plugin failed, or any plugin under ``strict``.
        """
        ...

    def reload_options(self, tell_others: Callable[[], None] | None = None) -> ReloadOptions:
        """Return the options for reloads of the configuration, to share with `run`.

        Args:
            tell_others: Asks other processes that serve the same clients to reload.
        """
        ...

    def run(
        self,
        serve: Callable[[HostServer], Awaitable[None]],
        *,
        principal_of: Callable[[Context], Principal],
        reloading: ReloadOptions,
        began: float | None = None,
        drain: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Start the plugins, and serve until *serve* ends or a signal ends the process.

        Args:
            serve: Carries messages between the server and its clients. It is cancelled at a signal.
            principal_of: Returns the caller of a request.
            reloading: See `reload_options`.
            began: The start by `time.perf_counter`, for the log; by default that of the process.
            drain: Called at each signal; returns the seconds for which calls may still run.

        Raises:
            PluginError: A required plugin did not start.
            StandardsMcpError: The transport failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Transport:
    """A way for clients to reach the server.

    Attributes:
        serve: Serves until the end of the process; returns its exit code.
        check: Yields what is wrong with the settings, for ``config check`` and ``doctor``: errors
            that would prevent a start, and warnings.
    """

    serve: Callable[[Start], int]
    check: Callable[[Settings], Iterable[Finding]] = lambda _: ()


# From light to heavy: a command that needs a few settings does not import the server.
_MODULES: Final = (
    "._utils.full_disk",
    "._utils.logs",
    "._utils.secrets",
    ".config.models.http",
    ".config.models.settings",
    ".config.models.sign_in",
    ".config.edits",
    ".contributions.selection",
    ".contributions.schemas",
    ".contributions.results",
    ".contributions.tools",
    ".calls.call",
    ".calls.context",
    ".loading.records",
    ".loading.discovery",
    ".loading.switching",
    ".loading.providers",
    ".loading.health",
    ".host",
    ".remote.approvals",
    ".remote.external",
    ".remote.sign_in",
    ".server.answers",
    ".server.routes",
    ".server.auditing",
    ".server.context",
    ".server.handlers",
    ".server.reload",
    ".server.server",
    ".server.tracing",
)


if not TYPE_CHECKING:  # it would hide misspelt names from type checkers

    def __getattr__(name: str) -> object:
        if name in __all__:
            for module in (import_module(item, __package__) for item in _MODULES):
                if name in vars(module):
                    return vars(module)[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
