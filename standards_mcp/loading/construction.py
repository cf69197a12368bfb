"""Import the class of an entry point, build the plugin with its settings, and show settings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, cast

import pluggy
from pydantic import ValidationError

from standards_mcp._utils.secrets import (
    MASK,
    SHORTEST_SECRET,
    declared_secrets,
    looks_secret,
    masked_data,
    secrets_of,
)
from standards_mcp._utils.text import did_you_mean, json_copy
from standards_mcp.config.layers import DOT_ENV, ENVIRONMENT, leaves, own_variables, plugin_options
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import PluginSection, Settings
from standards_mcp.config.problems import InvalidSettingsError, find_problems, misplaced_secret
from standards_mcp.errors import PluginError
from standards_mcp.plugin import Plugin, PluginContext, PluginSettings

from .records import PluginKind, PluginRecord

_HOST_KEYS: Final = frozenset(PluginSection.model_fields)


def construct(record: PluginRecord, context: PluginContext, loaded: LoadedSettings) -> Plugin[Any]:
    """Import a plugin and return it, built with its settings; its secrets go to the record.

    Raises:
        PluginError: It is not a plugin, or its settings have problems.
        BaseException: Whatever its code raises.
    """
    # Only its class declares secrets. Before the import, values of variables count as secrets.
    record.secrets = _set_by_variables(record.name, loaded)
    plugin_type = _plugin_type(record.info.load())
    if plugin_type is None:
        raise PluginError(record.name, "its entry point is not a subclass of Plugin")
    record.provides = callable(getattr(plugin_type, "register_services", None))
    try:
        settings = record.info.settings or _validated(record, plugin_type.settings_type, loaded)
        record.secrets |= secrets_of(settings)
        plugin = plugin_type(settings, context)
    except InvalidSettingsError as exc:  # also one of a server, which checks its variables here
        record.problems = exc.problems
        lines = (problem.line(record.layers(loaded.layers)) for problem in exc.problems)
        # Without the cause: it holds the values, and the secrets among them.
        raise PluginError(record.name, "; ".join(lines)) from None
    record.title = _text(record.name, "title", plugin.title)
    record.instructions = _text(record.name, "instructions", plugin.instructions)
    return plugin


def _plugin_type(value: object) -> type[Plugin[Any]] | None:
    is_plugin = isinstance(value, type) and issubclass(value, Plugin)
    return cast("type[Plugin[Any]]", value) if is_plugin else None


def _text(name: str, attribute: str, given: object) -> str:
    """Return a copy of a text for all clients, which stays as it was checked."""
    if not isinstance(given, str):
        raise PluginError(name, f"its {attribute} must be text")
    try:
        return str(json_copy(given))
    except ValueError as exc:
        raise PluginError(name, f"its {attribute} cannot be sent: {exc}") from None


def check_hooks(pm: pluggy.PluginManager, record: PluginRecord) -> None:
    """Check that a registered plugin marks its hooks, and implements no unknown ones.

    Raises:
        PluginError: One of its methods would never be called.
    """
    hook_names = [name for name, caller in vars(pm.hook).items() if getattr(caller, "spec", None)]
    try:
        pm.check_pending()
    except pluggy.PluginValidationError as exc:
        match = re.search(r"unknown hook '(\w+)'", str(exc))
        name = match[1] if match else str(exc)
        hint = did_you_mean(name, hook_names)
        raise PluginError(record.name, f"it implements an unknown hook {name!r}{hint}") from exc
    for name in hook_names:
        is_there = callable(getattr(type(record.plugin), name, None))
        if is_there and pm.parse_hookimpl_opts(record.plugin, name) is None:
            raise PluginError(record.name, f"its method {name!r} is not marked with @hookimpl")


def _set_by_variables(name: str, loaded: LoadedSettings) -> frozenset[str]:
    """Return the texts in a plugin's table that come from variables, where secrets belong."""
    return frozenset(
        value
        for key, value in loaded.settings.section(name).options.items()
        if isinstance(value, str)
        and len(value) >= SHORTEST_SECRET
        and loaded.layers.origin(("plugins", name, key)) in (ENVIRONMENT, DOT_ENV)
    )


def _validated(
    record: PluginRecord, model: type[PluginSettings], loaded: LoadedSettings
) -> PluginSettings:
    """Return the validated settings of a plugin."""
    if not isinstance(model, type) or not issubclass(model, PluginSettings):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise PluginError(record.name, "its settings_type is not a subclass of PluginSettings")
    record.settings_type = model
    section = loaded.settings.section(record.name)
    options = plugin_options(record.layers(loaded.layers), record.name, model, section.options)
    # Before validation, because the error of a validator may quote a secret, and is masked.
    record.secrets = declared_secrets(model, options)
    misplaced = [
        misplaced_secret(layer, ("plugins", record.name, *path), variable.name)
        for layer in loaded.layers.ordered
        for path, variable in own_variables(model).items()
        if variable.only and not layer.has_variables and layer.sets(("plugins", record.name, *path))
    ]
    if misplaced:
        raise InvalidSettingsError(*misplaced)
    if taken := _HOST_KEYS & model.model_fields.keys():
        raise PluginError(record.name, f"its setting {min(taken)!r} is reserved for the host")
    try:
        return model.model_validate(options)
    except ValidationError as exc:
        problems = find_problems(exc, model, options, ("plugins", record.name))
        raise InvalidSettingsError(*problems) from None


def shown_values(
    settings: Settings, records: Iterable[PluginRecord], secrets: Iterable[str]
) -> dict[tuple[str, ...], Any]:
    """Return every value that is set, by the keys that lead to it; secrets are masked.

    A model declares its secrets; other keys count as secret by their names.
    """
    values = settings.model_dump(mode="json", exclude={"plugins"})
    plugins: dict[str, Any] = {}
    for record in records:
        if record.info.kind is PluginKind.SERVER:
            continue  # its table is one of the host's own
        section = settings.section(record.name)
        keys = section.model_dump(mode="json", include=set(PluginSection.model_fields))
        if record.plugin is not None and record.info.kind is not PluginKind.ISOLATED:
            own = record.plugin.settings.model_dump(mode="json", fallback=str)
        else:  # only the plugin knows its secret keys
            own = dict.fromkeys(section.options, MASK)
        plugins[record.name] = keys | own
    masked = masked_data(values | {"plugins": plugins}, secrets)
    return {
        path: MASK if value and any(map(looks_secret, path)) else value
        for path, value in leaves(masked)
        if value is not None
    }
