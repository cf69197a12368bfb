"""The base class of plugins, the context that the host passes to them, and their services."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, overload

from typing_extensions import TypeVar

from standards_mcp._utils.logs import PLUGIN_LOGGERS
from standards_mcp.errors import PluginError

from .calls import Health
from .settings import PluginSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service(Generic[T]):
    """An object that a plugin provides to other plugins, by its type; see ``register_services``.

    Attributes:
        type: The class or the protocol by which plugins request the object. The name of the type is
            the name of the service in the configuration and for operators.
        factory: Returns the object. The host calls it once, at the first use, from any thread. It
            must do no I/O.
        health: Returns the health of the service, with facts for operators. The host calls it
            often, so it must be cheap; do thorough checks in the hook ``check_health``.
        close: Releases the resources of the object, which may be used again afterwards.
        facts: Facts for operators that are known without a call of *health*.
        is_remote: True if *health* needs a network. The host then does not call it at the start.
        warm_up: Does the slow part of the first use, such as opening files. A server over stdio
            calls it in the background once its client has the list of tools.
    """

    # Not `type[T]`: type checkers refuse an abstract class there.
    type: Callable[..., T]
    factory: Callable[[], T]
    health: Callable[[T], Awaitable[Health]] | None = None
    close: Callable[[T], Awaitable[None]] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_remote: bool = False
    warm_up: Callable[[T], Awaitable[object]] | None = None

    @property
    def name(self) -> str:
        """The name of the type."""
        return service_name(self.type)


def service_name(wanted: Callable[..., Any]) -> str:
    """Return the name of a service in the configuration and in messages."""
    return str(getattr(wanted, "__name__", wanted))


class MissingServiceError(LookupError):
    """No plugin provides a service; the message says why, with the remedy."""


def _no_service(wanted: Callable[..., Any]) -> Any:
    raise LookupError(wanted)


_REQUIRED: Final[Any] = object()
D = TypeVar("D")
SettingsT = TypeVar("SettingsT", bound=PluginSettings, default=PluginSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """The context of a plugin in the host.

    Attributes:
        name: The plugin's name, as in its entry point, configuration table and variables.
        state_dir: A folder for this plugin alone. It may not exist yet.
        contributions_changed: Call it after your tools, prompts, resources or filters have changed:
            the host reads the register hooks and the decorated methods again, soon and in its event
            loop, and tells clients which lists have changed. Any thread may call it.
        open_service: Returns the service of a type; `service` calls it. In a unit test, pass the
            ``__getitem__`` of a mapping.
        resource_updated: Call it with the URI of a resource whose contents have changed, to notify
            the clients that have subscribed to it. Any thread may call it.
    """

    name: str
    state_dir: Path
    open_service: Callable[[Callable[..., Any]], Any] = field(
        default=_no_service, repr=False, compare=False
    )
    contributions_changed: Callable[[], None] = field(
        default=lambda: None, repr=False, compare=False
    )
    resource_updated: Callable[[str], None] = field(
        default=lambda _: None, repr=False, compare=False
    )

    @overload
    def service(self, wanted: Callable[..., T], /) -> T: ...
    @overload
    def service(self, wanted: Callable[..., T], default: D, /) -> T | D: ...
    def service(self, wanted: Callable[..., Any], default: Any = _REQUIRED, /) -> Any:
        """Return the service of a type that the plugin lists in `Plugin.needs` or `Plugin.uses`.

        The service is opened at its first use in the process. Do not call this in ``__init__`` or
        in ``register_services``: other plugins may not have registered their services yet.

        Args:
            wanted: The type under which the provider registers the service.
            default: Returned if no plugin provides the service.

        Raises:
            PluginError: No plugin provides the service, or this plugin does not list its type.
        """
        try:
            return self.open_service(wanted)
        except LookupError as exc:
            if default is not _REQUIRED:
                return default
            reason = str(exc) if isinstance(exc, MissingServiceError) else ""
            reason = reason or f"the service {service_name(wanted)} is not available"
            raise PluginError(self.name, reason) from None

    @property
    def log(self) -> logging.Logger:
        """The plugin's logger. Lines from info on reach the server's log, with the plugin's name.

        Pass fields of a line as ``extra={"dataset": "x"}``; secrets in them are masked.
        """
        return logging.getLogger(f"{PLUGIN_LOGGERS}.{self.name}")


class Plugin(Generic[SettingsT]):
    """Base class of every plugin. The host builds one instance in a process.

    Attributes:
        settings_type: The model of the plugin's own configuration keys.
        title: The subject in a few words, such as ``Lesson plans``, by default the plugin's name.
            The server's title joins the titles of all plugins with visible contributions.
        instructions: Advice that a model needs before any call, one thought in each line.
            Write declared names of tools in braces, such as ``Call {find_books} with a title.``
            Clients get published names. A line with a tool that is not served is left out.
        needs: The services without which the plugin is disabled, by their types.
        uses: The optional services, by their types.
    """

    settings_type: ClassVar[type[PluginSettings]] = PluginSettings
    title: str = ""
    instructions: str = ""
    needs: ClassVar[tuple[Callable[..., Any], ...]] = ()
    uses: ClassVar[tuple[Callable[..., Any], ...]] = ()

    def __init__(self, settings: SettingsT, context: PluginContext) -> None:
        self.settings = settings
        self.context = context
