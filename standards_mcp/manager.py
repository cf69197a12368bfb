"""Finds plugins and takes them from an installed entry point to registered tools.

A plugin passes these steps in order, and fails whole, with a reason, at the first that it does not:
discover, filter, check its requirements, import, configure, register, validate. `lifecycle` does
the rest: start and stop. Whatever a plugin does, the others go on.
"""

from __future__ import annotations

import functools
import inspect
import json
import logging
import re
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
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
from .logs import mask
from .plugin import Filter, Plugin, PluginContext, Tool
from .schemas import ARGUMENT_NAME, SchemaError
from .settings import LoadedSettings, PluginSection, describe_errors, secrets_of
from .signatures import Arguments, Result, read_arguments, read_result

log = logging.getLogger(__name__)

DISTRIBUTION: Final = "standards-mcp"
ENTRY_POINT_GROUP: Final = "standards_mcp.plugins"
_PLUGIN_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_TOOL_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_FILTER_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_MAX_TOOL_NAME: Final = 64
_HOST_KEYS: Final = frozenset({"enabled", "required", "isolate"})
_TOOL_FLAGS: Final = ("read_only", "destructive", "idempotent", "open_world", "accepts_filters")


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
        secrets: Those of its settings.
    """

    name: str
    load: Callable[[], object] = field(repr=False)
    distribution: str = ""
    version: str = ""
    requires: tuple[str, ...] = ()
    status: Status = Status.DISCOVERED
    reason: str = ""
    plugin: Plugin[Any] | None = field(default=None, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
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
        for record in self.records.values():
            self._attempt(record, Status.REGISTERED, self._validate_tools)
        for record in self.records.values():
            self._attempt(record, Status.REGISTERED, self._add_filters)
        self._extend_tools()

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
        filters, reason = record.filters, mask(" ".join(reason.split()), record.secrets)
        record.fail(reason)
        if filters:
            self._extend_tools()
        error = PluginError(record.name, reason)
        if self.settings.strict or self.settings.section(record.name).required:
            raise error from cause
        log.error(str(error), extra={"plugin": record.name, "reason": reason})
        if cause is not None:
            details = mask("".join(traceback.format_exception(cause)), record.secrets)
            log.debug("details of the failure", extra={"plugin": record.name, "details": details})

    def _discover(self, installed: Iterable[PluginRecord]) -> None:
        """Read metadata and configuration; import nothing."""
        for record in sorted(installed, key=_order):
            twin = self.records.setdefault(record.name, record)
            if twin is not record:
                twin.reason = f"{twin.distribution} and {record.distribution} share this name"
        self._refuse_unknown_sections()
        for record in self.records.values():
            section = self.settings.section(record.name)
            if not _is_enabled(section, autoload=self.settings.autoload):
                record.status = Status.DISABLED
                record.reason = _disabled_reason(record.name, section)
            elif why := _unloadable(record):
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
        except KeyboardInterrupt:
            raise
        except PluginError as exc:
            self._withdraw(record, str(getattr(exc, "reason", exc)), exc)
        except SystemExit as exc:
            self._withdraw(record, f"it called sys.exit({exc.code!r})", exc)
        except BaseException as exc:  # noqa: BLE001  - its failure, also a panic in native code
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
        record.status = Status.REGISTERED

    def _construct(self, record: PluginRecord, plugin_type: type[Plugin[Any]]) -> Plugin[Any]:
        model = plugin_type.settings_type
        if taken := _HOST_KEYS & model.model_fields.keys():
            raise PluginError(record.name, f"its setting {min(taken)!r} bears a name of the host's")
        try:
            settings = model.model_validate(self.settings.section(record.name).options)
        except ValidationError as exc:
            prefix = ("plugins", record.name)
            lines = describe_errors(exc, model, self._loaded, prefix)
            # Without the cause: it holds the values, and the secrets among them.
            raise PluginError(record.name, "; ".join(lines)) from None
        record.secrets = secrets_of(settings)
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
        names = [item.name for item in found]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise _conflict(record.name, record.name, f"command {twice!r}")
        if len(found) == 1 and found[0].name == record.name:
            return {record.name: found[0]}
        return {record.name: click.Group(record.name, commands=found)} if found else {}

    def _add_filters(self, record: PluginRecord) -> None:
        filters: list[Filter] = []
        owners = {
            item.name: other.name for other in self.records.values() for item in other.filters
        }
        for items in self.call(record, "register_filters"):
            for item in items:
                if why := _filter_fault(item):
                    raise PluginError(record.name, why)
                if owner := owners.get(item.name):
                    raise _conflict(record.name, owner, f"filter {item.name!r}")
                owners[item.name] = record.name
                filters.append(item)
        self._try_filters(record, (*self.filters(), *filters))
        record.filters = tuple(filters)

    def _try_filters(self, record: PluginRecord, filters: tuple[Filter, ...]) -> None:
        """See that other plugins' tools can take the filters: who adds one must not break them."""
        for item in self.tools():
            if item.tool.accepts_filters:
                try:
                    read_arguments(item.tool, filters)
                except SchemaError as exc:
                    what = f"its filters do not fit tool {item.tool.name!r} of {item.plugin!r}"
                    raise PluginError(record.name, f"{what}: {exc}") from exc

    def _extend_tools(self) -> None:
        """Give every tool that accepts filters those of the plugins that have not failed."""
        filters = self.filters()
        for record in self.records.values():
            record.tools = tuple(
                replace(item, arguments=read_arguments(item.tool, filters))
                if item.tool.accepts_filters
                else item
                for item in record.tools
            )

    def _validate_tools(self, record: PluginRecord) -> None:
        owners: dict[str, str] = {}
        for other in self.tools():
            owners |= dict.fromkeys((other.tool.name, other.published), other.plugin)
        registered: list[RegisteredTool] = []
        for tools in self.call(record, "register_tools"):
            for tool in tools:
                item = self._read_tool(record, tool)
                for name in (tool.name, item.published):
                    if owner := owners.get(name):
                        raise _conflict(record.name, owner, f"tool {tool.name!r}")
                owners |= dict.fromkeys((tool.name, item.published), record.name)
                registered.append(item)
        record.tools = tuple(registered)

    def _read_tool(self, record: PluginRecord, tool: object) -> RegisteredTool:
        if not isinstance(tool, Tool):
            raise PluginError(record.name, f"register_tools returned a {type(tool).__name__}")
        if not _TOOL_NAME.fullmatch(tool.name) or len(tool.name) > _MAX_TOOL_NAME:
            allowed = f"letters, digits, '_', '-' and '.', at most {_MAX_TOOL_NAME}"
            raise PluginError(record.name, f"{tool.name!r} is not a valid tool name; use {allowed}")
        if why := _tool_fault(tool):
            raise PluginError(record.name, f"tool {tool.name!r}: {why}")
        description = _description(tool)
        if not description:
            raise PluginError(record.name, f"tool {tool.name!r} has no description")
        published = tool.name
        if self.settings.tool_names == "portable":
            published = published.replace(".", "_")
        try:
            arguments, result = read_arguments(tool), read_result(tool.function)
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
    try:
        points: list[Any] = list(found.entry_points(group=ENTRY_POINT_GROUP))
    except Exception:  # noqa: BLE001  - one distribution's metadata, which may be of any kind
        points = _readable_entry_points()
    return [_record_of(point) for point in points if point.dist is not None]


def _readable_entry_points() -> list[Any]:
    """Return what can be read where the metadata of some distribution is broken."""
    points: dict[str, Iterable[Any]] = {}
    found: Any = importlib_metadata
    for distribution in found.distributions():
        try:
            name = canonicalize_name(distribution.name)
            points.setdefault(name, distribution.entry_points.select(group=ENTRY_POINT_GROUP))
        except Exception as exc:  # noqa: BLE001  - see `installed_plugins`
            where = getattr(distribution, "_path", "a distribution")
            log.warning("%s is ignored: its metadata cannot be read (%s)", where, exc)
    return [point for group in points.values() for point in group]


def _record_of(point: Any) -> PluginRecord:
    record = PluginRecord(name=point.name, load=point.load)
    try:
        record.distribution, record.version = point.dist.name, point.dist.version
        record.requires = tuple(point.dist.requires or ())
    except Exception as exc:  # noqa: BLE001  - see `installed_plugins`
        record.reason = f"its metadata cannot be read: {describe_exception(exc)}"
    return record


def incompatibility(requires: Iterable[str]) -> str:
    """Return why a plugin with these requirements cannot run in this host, or an empty string."""
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) != DISTRIBUTION:
            continue
        if requirement.marker and not requirement.marker.evaluate():
            continue
        host = importlib_metadata.version(DISTRIBUTION)
        if not requirement.specifier.contains(host, prereleases=True):
            return f"it needs {DISTRIBUTION}{requirement.specifier}, this is {host}"
    return ""


def describe_exception(exc: BaseException) -> str:
    """Return an exception as one line."""
    try:
        text = " ".join(str(exc).split())
    except Exception:  # noqa: BLE001  - an exception that cannot describe itself
        text = ""
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def _order(record: PluginRecord) -> tuple[bool, str, str]:
    """Sort by name, after the host's own plugins: nobody takes over the names of their tools."""
    foreign = canonicalize_name(record.distribution) != DISTRIBUTION
    return foreign, record.name, record.distribution


def _is_plugin_type(value: object) -> TypeGuard[type[Plugin[Any]]]:
    return isinstance(value, type) and issubclass(value, Plugin)


def _unloadable(record: PluginRecord) -> str:
    """Return why a plugin cannot be imported, as far as metadata tell, or an empty string."""
    if not _PLUGIN_NAME.fullmatch(record.name):
        return "its entry-point name is not lower_snake_case"
    return record.reason or incompatibility(record.requires)


def _filter_fault(item: object) -> str:
    """Return what is wrong with a filter, or an empty string."""
    if not isinstance(item, Filter):
        return f"register_filters returned a {type(item).__name__}"
    if not _FILTER_NAME.fullmatch(item.name) or not ARGUMENT_NAME.fullmatch(item.name):
        return f"{item.name!r} is not a valid filter name"
    if not item.description.strip():
        return f"filter {item.name!r} has no description"
    if not callable(item.to_expression):
        return f"filter {item.name!r}: its to_expression is not a function"
    return ""


def _tool_fault(tool: Tool) -> str:
    """Return what is wrong with the plain fields of a tool, or an empty string.

    A type checker would find it, but what it misses would break the list of all plugins' tools.
    """
    given: Any = tool
    if not all(isinstance(text, str | None) for text in (given.title, given.description)):
        return "its title and its description must be text"
    if odd := [name for name in _TOOL_FLAGS if not isinstance(getattr(tool, name), bool)]:
        return f"its {odd[0]} must be true or false"
    timeout = given.timeout
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        return "its timeout must be a positive number of seconds"
    try:
        json.dumps(dict(tool.meta))
    except (TypeError, ValueError, RecursionError) as exc:
        return f"its meta is not a JSON object: {exc}"
    return ""


def _description(tool: Tool) -> str:
    function = tool.function
    while isinstance(function, functools.partial):
        function = function.func
    return (tool.description or inspect.getdoc(function) or "").strip()


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
    known = [hook for hook, caller in vars(pm.hook).items() if getattr(caller, "spec", None)]
    return f"it implements an unknown hook {name!r}{did_you_mean(name, known)}"
