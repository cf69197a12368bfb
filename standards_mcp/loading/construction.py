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
    """Import a plugin, build it with its settings, and put its secrets into the record.

    Raises:
        PluginError: The entry point is not a subclass of `Plugin`, its settings are invalid, or its
            title or instructions are not valid text.
        BaseException: An exception of the plugin's own code.
    """
    # The plugin class declares which settings are secret. Until it is imported, treat every value
    # from an environment variable as a secret.
    record.secrets = _values_from_environment(record.name, loaded)
    plugin_type = _plugin_type(record.info.load())
    if plugin_type is None:
        raise PluginError(record.name, "its entry point is not a subclass of Plugin")
    record.provides_services = callable(getattr(plugin_type, "register_services", None))
    try:
        settings = record.info.settings or _validate(record, plugin_type.settings_type, loaded)
        record.secrets |= secrets_of(settings)
        plugin = plugin_type(settings, context)
    except InvalidSettingsError as exc:
        # The constructor of an MCP server's plugin raises this, too, if a variable is not set.
        record.problems = exc.problems
        lines = (problem.line(record.layers(loaded.layers)) for problem in exc.problems)
        # Without the cause: it holds the values, and the secrets among them.
        raise PluginError(record.name, "; ".join(lines)) from None
    record.title = _checked_text(record.name, "title", plugin.title)
    record.instructions = _checked_text(record.name, "instructions", plugin.instructions)
    return plugin


def _plugin_type(value: object) -> type[Plugin[Any]] | None:
    is_plugin = isinstance(value, type) and issubclass(value, Plugin)
    return cast("type[Plugin[Any]]", value) if is_plugin else None


def _checked_text(name: str, attribute: str, value: object) -> str:
    """Check that a plugin's title or instructions can be sent as JSON.

    Return a plain `str` copy, which the plugin cannot change later.
    """
    if not isinstance(value, str):
        raise PluginError(name, f"its {attribute} must be text")
    try:
        return str(json_copy(value))
    except ValueError as exc:
        raise PluginError(name, f"its {attribute} cannot be sent: {exc}") from None


def check_hooks(pm: pluggy.PluginManager, record: PluginRecord) -> None:
    """Check that a registered plugin marks its hooks, and implements no unknown ones.

    Raises:
        PluginError: A hook is unknown, or a hook method lacks `@hookimpl`.
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
        is_defined = callable(getattr(type(record.plugin), name, None))
        if is_defined and pm.parse_hookimpl_opts(record.plugin, name) is None:
            raise PluginError(record.name, f"its method {name!r} is not marked with @hookimpl")


def _values_from_environment(name: str, loaded: LoadedSettings) -> frozenset[str]:
    """Return the option values that were set by environment variables or ``.env``.

    Only values that are long enough to be secrets are included.
    """
    return frozenset(
        value
        for key, value in loaded.settings.section(name).options.items()
        if isinstance(value, str)
        and len(value) >= SHORTEST_SECRET
        and loaded.layers.origin(("plugins", name, key)) in (ENVIRONMENT, DOT_ENV)
    )


def _validate(
    record: PluginRecord, model: type[PluginSettings], loaded: LoadedSettings
) -> PluginSettings:
    """Return the validated settings of a plugin."""
    if not isinstance(model, type) or not issubclass(model, PluginSettings):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise PluginError(record.name, "its settings_type is not a subclass of PluginSettings")
    record.settings_type = model
    section = loaded.settings.section(record.name)
    options = plugin_options(record.layers(loaded.layers), record.name, model, section.options)
    # Collect the secrets before validation: a validator's error may quote one, and only known
    # secrets can be masked.
    record.secrets = declared_secrets(model, options)
    misplaced = [
        misplaced_secret(layer, ("plugins", record.name, *path), variable.name)
        for layer in loaded.layers.ordered
        for path, variable in own_variables(model).items()
        if variable.only and not layer.has_variables and layer.sets(("plugins", record.name, *path))
    ]
    if misplaced:
        raise InvalidSettingsError(*misplaced)
    if reserved := _HOST_KEYS & model.model_fields.keys():
        raise PluginError(record.name, f"its setting {min(reserved)!r} is reserved for the host")
    try:
        return model.model_validate(options)
    except ValidationError as exc:
        problems = find_problems(exc, model, options, ("plugins", record.name))
        raise InvalidSettingsError(*problems) from None


def shown_values(
    settings: Settings, records: Iterable[PluginRecord], secrets: Iterable[str]
) -> dict[tuple[str, ...], Any]:
    """Return all effective settings that are not None, by key path, with secrets masked.

    A value is masked if its model declares it secret, if it contains a known secret, or if a key on
    its path looks secret.
    """
    values = settings.model_dump(mode="json", exclude={"plugins"})
    plugins: dict[str, Any] = {}
    for record in records:
        if record.info.kind is PluginKind.SERVER:
            continue  # its settings are in `values`, under `servers`
        section = settings.section(record.name)
        host_options = section.model_dump(mode="json", include=set(PluginSection.model_fields))
        if record.plugin is not None and record.info.kind is not PluginKind.ISOLATED:
            own_options = record.plugin.settings.model_dump(mode="json", fallback=str)
        else:  # only the plugin knows its secret keys
            own_options = dict.fromkeys(section.options, MASK)
        plugins[record.name] = host_options | own_options
    masked = masked_data(values | {"plugins": plugins}, secrets)
    return {
        path: MASK if value and any(map(looks_secret, path)) else value
        for path, value in leaves(masked)
        if value is not None
    }
