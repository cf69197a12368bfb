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
    """An object that a plugin provides to others, by its type; see ``register_services``.

    Attributes:
        type: The class or the protocol by which plugins ask for it. Its name is the name of the
            service in the configuration and for operators.
        factory: Returns the object. It is called once, at the first use, from any thread, and does
            no I/O.
        health: Returns how the service is, with facts for operators. It is asked often, so it has
            to be cheap; the hook ``check_health`` is the place for a thorough check.
        close: Releases what the object holds open. The object may be used again afterwards.
        facts: Facts that are known without asking the object.
        is_remote: True if its health is asked over a network. It is not asked at the start then.
    """

    # Not `type[T]`: type checkers refuse an abstract class there.
    type: Callable[..., T]
    factory: Callable[[], T]
    health: Callable[[T], Awaitable[Health]] | None = None
    close: Callable[[T], Awaitable[None]] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_remote: bool = False

    @property
    def name(self) -> str:
        """The name of its type."""
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
        name: The plugin's name, as in its entry point, its table and its variables.
        state_dir: A folder for this plugin alone. It may not exist yet.
        contributions_changed: Call it after your tools, prompts, resources or filters have changed:
            the host reads the register hooks and the decorated methods again, soon and in its event
            loop, and tells clients which lists have changed. Any thread may call it.
        open_service: Returns a service, for `service`. In a unit test, give the ``__getitem__`` of
            a mapping.
        resource_updated: Call it with a URI after what it holds has changed: clients that have
            subscribed to the resource are told. Any thread may call it.
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
        """Return the service of a type that the plugin's `Plugin.needs` or `Plugin.uses` has.

        It is opened at its first use in the process. Ask for it when you need it: in ``__init__``
        and in ``register_services``, it is not known yet which services there are.

        Args:
            wanted: The type, as its provider registers it.
            default: Returned if no plugin provides the service.

        Raises:
            PluginError: No plugin provides it, or the plugin does not declare that it uses it.
        """
        try:
            return self.open_service(wanted)
        except LookupError as exc:
            if default is not _REQUIRED:
                return default
            reason = str(exc) if isinstance(exc, MissingServiceError) else ""
            reason = reason or f"the service {service_name(wanted)} is not here"
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
            The server's title joins the titles of all plugins that serve something.
        instructions: Advice that a model needs before any call, one thought in each line.
            Write declared names of tools in braces, such as ``Call {find_books} with a title.``
            Clients get published names, and no line with a tool that is not served.
        needs: The services without which the plugin is disabled, by their types.
        uses: The services that it uses where there is a provider.
    """

    settings_type: ClassVar[type[PluginSettings]] = PluginSettings
    title: str = ""
    instructions: str = ""
    needs: ClassVar[tuple[Callable[..., Any], ...]] = ()
    uses: ClassVar[tuple[Callable[..., Any], ...]] = ()

    def __init__(self, settings: SettingsT, context: PluginContext) -> None:
        self.settings = settings
        self.context = context
