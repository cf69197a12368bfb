"""Finds plugins and takes them from an installed entry point to registered tools.

A plugin passes these steps in order, and fails whole, with a reason, at the first that it does not:
discover, filter, check its requirements, import, configure, register, validate. `lifecycle` does
the rest: start and stop. Whatever a plugin does, the others go on.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeGuard

import click
import importlib_metadata
import pluggy
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import ValidationError

from . import hookspecs
from ._stdout import divert_stdout
from .catalog import Catalog
from .errors import ConfigError, PluginConflictError, PluginError, did_you_mean
from .plugin import Filter, Plugin, PluginContext, Tool
from .schemas import ARGUMENT_NAME, SchemaError
from .settings import LoadedSettings, PluginSection, describe_errors
from .signatures import Arguments, Result, read_arguments, read_result

log = logging.getLogger(__name__)

DISTRIBUTION: Final = "standards-mcp"
ENTRY_POINT_GROUP: Final = "standards_mcp.plugins"
_PLUGIN_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_TOOL_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_FILTER_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_MAX_TOOL_NAME: Final = 64


class Status(StrEnum):
    """How far a plugin got."""

    DISCOVERED = "discovered"
    DISABLED = "disabled"
    FAILED = "failed"
    REGISTERED = "registered"
    STARTED = "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredTool:
    """A tool with what the host read from its function.

    Attributes:
        published: The name that clients see.
        refusal: Why the configuration keeps it from being served, or an empty string.
    """

    plugin: str
    tool: Tool
    published: str
    description: str
    arguments: Arguments
    result: Result
    refusal: str = ""


@dataclass(slots=True, kw_only=True)
class PluginRecord:
    """What the host knows of one installed plugin.

    Attributes:
        load: Imports the plugin and returns its class.
        requires: The distribution's requirements, as its metadata spells them.
        reason: Why the status is what it is, where that needs saying.
    """

    name: str
    load: Callable[[], object] = field(repr=False)
    distribution: str = ""
    version: str = ""
    requires: tuple[str, ...] = ()
    status: Status = Status.DISCOVERED
    reason: str = ""
    plugin: Plugin[Any] | None = field(default=None, repr=False)
    filters: tuple[Filter, ...] = ()
    tools: tuple[RegisteredTool, ...] = ()

    def fail(self, reason: str) -> None:
        """Mark the plugin as failed and withdraw what it contributed."""
        self.status, self.reason = Status.FAILED, reason
        self.tools, self.filters = (), ()


class PluginManager:
    """Holds the record of every installed plugin.

    Args:
        state_dir: The folder under which each plugin gets one of its own.
        installed: The plugins to choose from; by default those of this environment.

    Raises:
        ConfigError: A table names a plugin that is not installed.
        PluginError: A plugin failed that is required, or any under ``strict``.
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        catalog: Catalog,
        state_dir: Path,
        installed: Iterable[PluginRecord] | None = None,
    ) -> None:
        self.settings = loaded.settings
        self.records: dict[str, PluginRecord] = {}
        self._loaded = loaded
        self._catalog = catalog
        self._state_dir = state_dir
        self._pm = pluggy.PluginManager(hookspecs.PROJECT)
        self._pm.add_hookspecs(hookspecs)
        self._discover(installed_plugins() if installed is None else installed)

    def load(self) -> None:
        """Import, configure and register the enabled plugins, then validate their tools.

        Raises:
            PluginError: A plugin failed that is required, or any under ``strict``.
        """
        for record in self.records.values():
            self._attempt(record, Status.DISCOVERED, self._register)
        filters = self.filters()
        for record in self.records.values():
            self._attempt(record, Status.REGISTERED, lambda r: self._validate_tools(r, filters))

    def filters(self) -> tuple[Filter, ...]:
        """Return the filters of all plugins, in the order of their plugins' names."""
        return tuple(item for record in self.records.values() for item in record.filters)

    def tools(self) -> list[RegisteredTool]:
        """Return every registered tool, served or not, in a stable order."""
        return [tool for record in self.records.values() for tool in record.tools]

    def commands(self) -> dict[str, click.Command]:
        """Return what plugins add to the command line, by the plugins' names."""
        commands: dict[str, click.Command] = {}
        for record in self.records.values():
            self._attempt(
                record, Status.REGISTERED, lambda r: commands.update(self._read_commands(r))
            )
        return commands

    def call(self, record: PluginRecord, hook: str) -> list[Any]:
        """Call one hook of one plugin, so that its failure is its own."""
        others = [plugin for plugin in self._pm.get_plugins() if plugin is not record.plugin]
        results: list[Any] = self._pm.subset_hook_caller(hook, others)()
        return results

    def fail(self, record: PluginRecord, reason: str, cause: BaseException | None = None) -> None:
        """Record a plugin's failure.

        Raises:
            PluginError: The plugin is required, or ``strict`` is set.
        """
        record.fail(reason)
        error = PluginError(record.name, reason)
        if self.settings.strict or self.settings.section(record.name).required:
            raise error from cause
        log.error(str(error), extra={"plugin": record.name, "reason": reason})
        log.debug("details of the failure", exc_info=cause)

    def _discover(self, installed: Iterable[PluginRecord]) -> None:
        """Read metadata and configuration; import nothing."""
        for record in sorted(installed, key=_order):
            twin = self.records.setdefault(record.name, record)
            if twin is not record:
                self.fail(twin, f"{twin.distribution} and {record.distribution} share this name")
        self._refuse_unknown_sections()
        for record in self.records.values():
            section = self.settings.section(record.name)
            if not _PLUGIN_NAME.fullmatch(record.name):
                self.fail(record, "its entry-point name is not lower_snake_case")
            elif not _is_enabled(section, autoload=self.settings.autoload):
                record.status = Status.DISABLED
                record.reason = _disabled_reason(record.name, section)
            elif record.status is Status.DISCOVERED and (why := incompatibility(record.requires)):
                self.fail(record, why)

    def _refuse_unknown_sections(self) -> None:
        for name in self.settings.plugins:
            if name not in self.records:
                where = self._loaded.origin(("plugins", name)) or "settings"
                known = ", ".join(self.records) or "none"
                hint = did_you_mean(name, self.records) or f"; installed: {known}"
                raise ConfigError(f"{where}: [plugins.{name}]: no such plugin is installed{hint}")

    def _attempt(
        self, record: PluginRecord, status: Status, step: Callable[[PluginRecord], None]
    ) -> None:
        """Take a plugin of this status through a step, and let nothing it does escape."""
        if record.status is not status:
            return
        try:
            with divert_stdout():
                step(record)
        except PluginError as exc:
            self._withdraw(record, exc.reason, exc)
        except SystemExit as exc:
            self._withdraw(record, f"it called sys.exit({exc.code!r})", exc)
        except Exception as exc:  # noqa: BLE001  - the plugin's failure, whatever it is
            self._withdraw(record, describe_exception(exc), exc)

    def _withdraw(self, record: PluginRecord, reason: str, cause: BaseException) -> None:
        if record.plugin is not None and self._pm.is_registered(record.plugin):
            self._pm.unregister(record.plugin)
        self.fail(record, reason, cause)

    def _register(self, record: PluginRecord) -> None:
        plugin_type = record.load()
        if not _is_plugin_type(plugin_type):
            raise PluginError(record.name, "its entry point is not a subclass of Plugin")
        record.plugin = self._construct(record, plugin_type)
        self._pm.register(record.plugin, name=record.name)
        try:
            self._pm.check_pending()
        except pluggy.PluginValidationError as exc:
            raise PluginError(record.name, _unknown_hook(exc, self._pm)) from exc
        filters: list[Filter] = [
            item for items in self.call(record, "register_filters") for item in items
        ]
        self._check_filters(record, filters)
        record.filters, record.status = tuple(filters), Status.REGISTERED

    def _construct(self, record: PluginRecord, plugin_type: type[Plugin[Any]]) -> Plugin[Any]:
        model = plugin_type.settings_type
        try:
            settings = model.model_validate(self.settings.section(record.name).options)
        except ValidationError as exc:
            prefix = ("plugins", record.name)
            lines = describe_errors(exc, model, self._loaded, prefix)
            raise PluginError(record.name, "; ".join(lines)) from exc
        context = PluginContext(
            name=record.name,
            state_dir=self._state_dir / "plugins" / record.name,
            catalog=self._catalog,
        )
        return plugin_type(settings, context)

    def _read_commands(self, record: PluginRecord) -> dict[str, click.Command]:
        found = [item for items in self.call(record, "register_commands") for item in items]
        for item in found:
            if not isinstance(item, click.Command):
                kind = type(item).__name__
                raise PluginError(record.name, f"register_commands returned a {kind}")
        if len(found) == 1 and found[0].name == record.name:
            return {record.name: found[0]}
        return {record.name: click.Group(record.name, commands=found)} if found else {}

    def _check_filters(self, record: PluginRecord, filters: Iterable[object]) -> None:
        owners = {
            item.name: other.name for other in self.records.values() for item in other.filters
        }
        for item in filters:
            if not isinstance(item, Filter):
                raise PluginError(record.name, f"register_filters returned a {type(item).__name__}")
            if not _FILTER_NAME.fullmatch(item.name) or not ARGUMENT_NAME.fullmatch(item.name):
                raise PluginError(record.name, f"{item.name!r} is not a valid filter name")
            if owner := owners.get(item.name):
                raise _conflict(record.name, owner, f"filter {item.name!r}")
            if not item.description.strip():
                raise PluginError(record.name, f"filter {item.name!r} has no description")
            owners[item.name] = record.name

    def _validate_tools(self, record: PluginRecord, filters: tuple[Filter, ...]) -> None:
        owners: dict[str, str] = {}
        for other in self.tools():
            owners |= dict.fromkeys((other.tool.name, other.published), other.plugin)
        registered: list[RegisteredTool] = []
        for tools in self.call(record, "register_tools"):
            for tool in tools:
                item = self._read_tool(record, tool, filters)
                for name in (tool.name, item.published):
                    if owner := owners.get(name):
                        raise _conflict(record.name, owner, f"tool {tool.name!r}")
                owners |= dict.fromkeys((tool.name, item.published), record.name)
                registered.append(item)
        record.tools = tuple(registered)

    def _read_tool(
        self, record: PluginRecord, tool: object, filters: tuple[Filter, ...]
    ) -> RegisteredTool:
        if not isinstance(tool, Tool):
            raise PluginError(record.name, f"register_tools returned a {type(tool).__name__}")
        if not _TOOL_NAME.fullmatch(tool.name) or len(tool.name) > _MAX_TOOL_NAME:
            allowed = f"letters, digits, '_', '-' and '.', at most {_MAX_TOOL_NAME}"
            raise PluginError(record.name, f"{tool.name!r} is not a valid tool name; use {allowed}")
        description = (tool.description or tool.function.__doc__ or "").strip()
        if not description:
            raise PluginError(record.name, f"tool {tool.name!r} has no description")
        published = tool.name
        if self.settings.tool_names == "portable":
            published = published.replace(".", "_")
        try:
            arguments, result = read_arguments(tool, filters), read_result(tool.function)
        except SchemaError as exc:
            raise PluginError(record.name, f"tool {tool.name!r}: {exc}") from exc
        names = (tool.name, published)
        return RegisteredTool(
            plugin=record.name,
            tool=tool,
            published=published,
            description=description,
            arguments=arguments,
            result=result,
            refusal=self.settings.tools.refusal(names, read_only=tool.read_only),
        )


def installed_plugins() -> list[PluginRecord]:
    """Return a record of every plugin entry point in this environment, from metadata alone."""
    found: Any = importlib_metadata
    points: Iterable[Any] = found.entry_points(group=ENTRY_POINT_GROUP)
    return [
        PluginRecord(
            name=point.name,
            load=point.load,
            distribution=point.dist.name,
            version=point.dist.version,
            requires=tuple(point.dist.requires or ()),
        )
        for point in points
        if point.dist is not None
    ]


def incompatibility(requires: Iterable[str]) -> str:
    """Return why a plugin with these requirements cannot run in this host, or an empty string."""
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) != DISTRIBUTION:
            continue
        host = importlib_metadata.version(DISTRIBUTION)
        if not requirement.specifier.contains(host, prereleases=True):
            return f"it needs {DISTRIBUTION}{requirement.specifier}, this is {host}"
    return ""


def describe_exception(exc: BaseException) -> str:
    """Return an exception as one line."""
    text = " ".join(str(exc).split())
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def _order(record: PluginRecord) -> tuple[bool, str, str]:
    """Sort by name, after the host's own plugins: nobody takes over the names of their tools."""
    foreign = canonicalize_name(record.distribution) != DISTRIBUTION
    return foreign, record.name, record.distribution


def _is_plugin_type(value: object) -> TypeGuard[type[Plugin[Any]]]:
    return isinstance(value, type) and issubclass(value, Plugin)


def _is_enabled(section: PluginSection, *, autoload: bool) -> bool:
    return autoload if section.enabled is None else section.enabled


def _disabled_reason(name: str, section: PluginSection) -> str:
    if section.enabled is None:
        return f"autoload = false; set [plugins.{name}] enabled = true"
    return f"[plugins.{name}] enabled = false"


def _conflict(plugin: str, owner: str, what: str) -> PluginConflictError:
    if plugin == owner:
        return PluginConflictError(plugin, f"it declares {what} twice")
    return PluginConflictError(plugin, f"{what} already belongs to plugin {owner!r}")


def _unknown_hook(error: pluggy.PluginValidationError, pm: pluggy.PluginManager) -> str:
    match = re.search(r"unknown hook '(\w+)'", str(error))
    name = match[1] if match else str(error)
    known = sorted(hook for hook in vars(pm.hook) if not hook.startswith("_"))
    return f"it implements an unknown hook {name!r}{did_you_mean(name, known)}"
