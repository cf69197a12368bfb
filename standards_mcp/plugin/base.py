"""The base class of plugins, and the context that the host passes to an instance."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic

from pydantic import ConfigDict
from typing_extensions import TypeVar

from standards_mcp._utils.documented import Documented
from standards_mcp._utils.logs import PLUGIN_LOGGERS
from standards_mcp_catalog.base import Catalog


class PluginSettings(Documented):
    """Base class for the model of a plugin's own keys in its table ``[plugins.<name>]``.

    The host reserves ``enabled``, ``required``, ``isolate``, ``python``, ``memory``,
    ``processes`` and ``env``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable of its own for a key of a plugin, as metadata of its field.

    ``api_key: Annotated[SecretStr | None, Variable("SEARCH_API_KEY")] = None`` is set by that
    variable of the environment or of ``.env``, which counts more than the configuration file.
    """

    name: str


def _ignored(*_: object) -> None:
    """Ignore the notification, outside a server."""


SettingsT = TypeVar("SettingsT", bound=PluginSettings, default=PluginSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """The context of a plugin in the host.

    Attributes:
        name: The plugin's name, as in its entry point, its table and its variables.
        state_dir: A folder for this plugin alone. It may not exist yet.
        catalog: The standards that the admin configured. It is opened at its first use.
        contributions_changed: Call it after your tools, prompts, resources or filters have changed:
            the host reads the register hooks and the decorated methods again, soon and in its event
            loop, and notifies clients of the changed lists. Any thread may call it.
        resource_updated: Call it with a URI after its contents have changed, to notify the clients
            that have subscribed to the resource. Any thread may call it.
    """

    name: str
    state_dir: Path
    catalog: Catalog
    contributions_changed: Callable[[], None] = field(default=_ignored, repr=False, compare=False)
    resource_updated: Callable[[str], None] = field(default=_ignored, repr=False, compare=False)

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
            Clients get published names, and no line with a hidden tool.
    """

    settings_type: ClassVar[type[PluginSettings]] = PluginSettings
    title: str = ""
    instructions: str = ""

    def __init__(self, settings: SettingsT, context: PluginContext) -> None:
        self.settings = settings
        self.context = context
