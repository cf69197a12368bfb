"""The host's configuration: command line over environment over ``.env`` over a TOML file."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from .catalog_settings import (
    EMBEDDING_KEY_VARIABLE,
    SECRET_KEYS,
    VARIABLES,
    CatalogSettings,
    named_values,
)
from .errors import ConfigError, did_you_mean
from .server_settings import ServerSection, read_servers_file, shared_servers
from .setting_paths import in_home, with_whole_paths
from .tables import Documented
from .toml_lines import line_of
from .tool_settings import ContributionSettings, Profile, ToolSettings

FILE_NAME: Final = "standards-mcp.toml"
ENV_PREFIX: Final = "STANDARDS_MCP_"
_CONFIG_VARIABLE: Final = "STANDARDS_MCP_CONFIG"
_OTHER_VARIABLES: Final = frozenset({_CONFIG_VARIABLE, EMBEDDING_KEY_VARIABLE})
_SERVER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_FROM_VARIABLES: Final = ("environment", ".env")
# What clients put where their user left an optional field of a bundle empty.
_PLACEHOLDER: Final = "${user_config."
_MESSAGES: Final = {
    "dict_type": "input should be a table",
    "model_type": "input should be a table",
    "tuple_type": """input should be a list, for example '["a", "b"]'""",
    "list_type": """input should be a list, for example '["a", "b"]'""",
}


class _AsText:
    """Reads lists and tables in variables as JSON and leaves all else to validation, as text.

    So a plugin gets ``123`` as text where it asks for text, and a mistake is reported with its key.
    """

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        del field_name, field
        if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
            with suppress(ValueError, RecursionError):
                return json.loads(value)
        return value


class _Environment(_AsText, EnvSettingsSource):
    pass


class _DotEnv(_AsText, DotEnvSettingsSource):
    pass


class PluginSection(Documented):
    """What the host reads of ``[plugins.<name>]``; every other key is the plugin's own.

    Attributes:
        enabled: Whether to import it; without this key, as ``autoload`` says.
        required: Whether the host refuses to start without it.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    enabled: bool | None = None
    required: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """The plugin's own keys, not yet validated."""
        return dict(self.model_extra or {})


class Settings(Documented, BaseSettings):
    """Settings of the host.

    Constructing it reads nothing but its arguments; `load_settings` reads files and environment.

    Attributes:
        autoload: Whether plugins are loaded that do not say ``enabled = true``.
        strict: Whether any plugin that fails keeps the host from starting.
        tool_names: ``portable`` publishes ``a.b`` as ``a_b``, for clients that refuse dots.
        state_dir: Where plugins keep state; the user's state folder by default.
        trusted: Globs over names of distributions; plugins of others are not imported.
        profile: Which of ``profiles`` applies.
        servers: Other MCP servers, by names of your choice.
        servers_file: A JSON file with ``mcpServers``, as other clients have; its servers are added.
    """

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    autoload: bool = True
    strict: bool = False
    tool_names: Literal["portable", "declared"] = "portable"
    state_dir: Path | None = None
    trusted: tuple[str, ...] = ("*",)
    catalog: CatalogSettings = CatalogSettings()
    tools: ToolSettings = ToolSettings()
    prompts: ContributionSettings = ContributionSettings()
    resources: ContributionSettings = ContributionSettings()
    profiles: dict[str, Profile] = Field(default_factory=dict[str, Profile])
    profile: str | None = None
    plugins: dict[str, PluginSection] = Field(default_factory=dict[str, PluginSection])

    servers: dict[str, ServerSection] = Field(default_factory=dict[str, ServerSection])
    servers_file: Path | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read nothing but the arguments, see the class."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @field_validator("profile")
    @classmethod
    def _check_profile(cls, profile: str | None, info: ValidationInfo) -> str | None:
        profiles: dict[str, Profile] = info.data.get("profiles", {})
        if profile is not None and profile not in profiles:
            known = f"; there are: {', '.join(profiles) or 'none'}"
            hint = did_you_mean(profile, profiles) or known
            raise ValueError(f"there is no [profiles.{profile}]{hint}")
        return profile

    @field_validator("servers")
    @classmethod
    def _check_servers(cls, servers: dict[str, ServerSection]) -> dict[str, ServerSection]:
        if odd := next((name for name in servers if not _SERVER_NAME.fullmatch(name)), None):
            raise ValueError(f"{odd!r} is no name of a server; use letters, digits, '_' and '-'")
        return servers

    def section(self, plugin: str) -> PluginSection:
        """Return the table of a plugin or a server, or the defaults."""
        if server := self.servers.get(plugin):
            return PluginSection(enabled=server.enabled, required=server.required)
        return self.plugins.get(plugin) or PluginSection()

    def table(self, plugin: str) -> str:
        """Return what the table of a plugin or a server is called."""
        return f"{'servers' if plugin in self.servers else 'plugins'}.{plugin}"


@dataclass(frozen=True, slots=True)
class _Layer:
    """One source of values and what to call it in an error; of a file, its text too."""

    name: str
    values: dict[str, Any]
    text: str = ""

    def place(self, keys: Sequence[str]) -> str:
        line = line_of(self.text, keys) if self.text else None
        return self.name if line is None else f"{self.name}:{line}"


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings and the layers they came from, highest first, so that an error can name one."""

    settings: Settings
    file: Path | None
    layers: tuple[_Layer, ...] = ()

    def is_current(self) -> bool:
        """Tell whether the file still says what was read from it."""
        with suppress(OSError, UnicodeDecodeError):
            if self.file and self.layers:
                text = next(layer.text for layer in self.layers if layer.name == str(self.file))
                return _file_text(self.file) == text
        return True

    def origin(self, path: Iterable[str | int]) -> str:
        """Return the highest layer that sets the key at *path*, a file with the line."""
        keys = tuple(map(str, path))
        return next((layer.place(keys) for layer in self.layers if _has(layer.values, keys)), "")

    def where(self, path: Iterable[str | int]) -> str:
        """Return the layer that sets the key at *path* and what the key is called there."""
        keys = tuple(path)
        origin = self.origin(keys)
        return f"{origin}: {_key_name(keys, origin)}" if origin else _key_name(keys, origin)


def load_settings(
    config: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> LoadedSettings:
    """Return the effective settings.

    Args:
        config: The file to read; without it ``STANDARDS_MCP_CONFIG``, the working directory and
            the user's configuration folder are tried.
        overrides: Nested values of the command line.

    Raises:
        ConfigError: One line for each mistake: the file or variable, the key, and the nearest
            valid key.
    """
    file = find_config(config)
    here = Path()
    layers: tuple[_Layer, ...] = (
        _layer("command line", dict(overrides or {}), here),
        _layer("environment", _environment(), here),
        _layer(".env", _dot_env(), here),
        _file_layer(file) if file else _Layer("", {}),
    )
    for layer in layers:
        _refuse_secrets(layer)
    layers = (*layers, *_servers_layers(layers))
    values: dict[str, Any] = {}
    for layer in reversed(layers):
        values = _merged(values, layer.values)
        # Names that pydantic-settings takes for options of its own.
        if key := next((key for key in values if key.startswith("_")), None):
            raise ConfigError(f"{layer.name}: {key}: unknown key")
    try:
        return LoadedSettings(Settings(**values), file, layers)
    except ValidationError as exc:
        unknown = LoadedSettings(Settings(), file, layers)
        raise ConfigError("\n".join(describe_errors(exc, Settings, unknown))) from None


def _refuse_secrets(layer: _Layer) -> None:
    if layer.name in _FROM_VARIABLES:
        return
    for path in SECRET_KEYS:
        if _has(layer.values, path):
            raise ConfigError(
                f"{layer.name}: {_key_name(path, layer.name)}: a secret does not belong here; set "
                f"{VARIABLES[path]} in the environment or in .env"
            )


def find_config(config: Path | None = None) -> Path | None:
    """Return the configuration file in force, or None.

    Raises:
        ConfigError: The file that was named does not exist.
    """
    value = os.environ.get(_CONFIG_VARIABLE, "")
    named = config or (Path(value) if _is_given(_CONFIG_VARIABLE, value) else None)
    if named is not None:
        named = in_home(named, "--config or STANDARDS_MCP_CONFIG")
        if not named.is_file():
            raise ConfigError(f"{named}: no such file; check --config or STANDARDS_MCP_CONFIG")
        return named
    return next((path for path in (Path(FILE_NAME), user_config_file()) if path.is_file()), None)


def user_config_file() -> Path:
    """Return where the user's own configuration file is, or would be."""
    from platformdirs import user_config_path  # noqa: PLC0415  - only where no file is named

    return user_config_path("standards-mcp", appauthor=False) / FILE_NAME


def describe_errors(
    error: ValidationError,
    model: type[BaseModel],
    loaded: LoadedSettings,
    prefix: tuple[str, ...] = (),
) -> list[str]:
    """Return one line for each mistake in *error*: origin, key, what is wrong, nearest key."""
    lines: list[str] = []
    for item in error.errors(include_url=False, include_input=False):
        path = (*prefix, *item["loc"])
        table, where = item["loc"][:-1], loaded.where(path)
        if item["type"] == "extra_forbidden":
            known = _keys_at(model, table)
            if prefix and not table:
                known |= PluginSection.model_fields.keys()
            hint = did_you_mean(str(path[-1]), known)
            known_list = ", ".join(sorted(known)) or "none"
            lines.append(f"{where}: unknown key{hint or f'; known keys: {known_list}'}")
        else:
            message = _MESSAGES.get(item["type"]) or item["msg"].removeprefix("Value error, ")
            lines.append(" ".join(f"{where}: {message[:1].lower()}{message[1:]}".split()))
    return lines


def _layer(name: str, values: Mapping[str, Any], folder: Path) -> _Layer:
    return _Layer(name, with_whole_paths(values, folder, name))


def _environment() -> dict[str, Any]:
    source = _Environment(Settings)
    source.env_vars = _given(source.env_vars)
    values = source()
    known = {ENV_PREFIX + str(name).upper() for name in Settings.model_fields}
    for name, value in os.environ.items():
        upper = name.upper()
        if not upper.startswith(ENV_PREFIX) or upper in _OTHER_VARIABLES:
            continue
        base = upper.split("__", 1)[0]
        is_read = base.removeprefix(ENV_PREFIX).lower() in values or not _is_given(name, value)
        if base not in known or not is_read:
            hint = did_you_mean(upper, known | _OTHER_VARIABLES)
            raise ConfigError(f"environment: {name}: unknown setting{hint}")
    return _merged(values, named_values(source.env_vars))


def _dot_env() -> dict[str, Any]:
    try:
        source = _DotEnv(Settings, ".env", dotenv_filtering="match_prefix")
        source.env_vars = _given(source.env_vars)
        values = source()
    except UnicodeDecodeError as exc:
        raise ConfigError(f".env: is not UTF-8 text: {exc}") from None
    except OSError as exc:
        raise ConfigError(f".env: cannot be read: {exc.strerror}") from None
    if _CONFIG_VARIABLE.lower() in source.env_vars:
        raise ConfigError(
            f".env: {_CONFIG_VARIABLE}: it is read from the environment only; set it there, or "
            "use --config"
        )
    values.pop(EMBEDDING_KEY_VARIABLE.removeprefix(ENV_PREFIX).lower(), None)
    return _merged(values, named_values(source.env_vars))


def _given(variables: Mapping[str, str | None]) -> dict[str, str | None]:
    """Leave out the variables that say nothing."""
    return {name: value for name, value in variables.items() if _is_given(name, value)}


def _is_given(name: str, value: str | None) -> bool:
    """Tell whether a variable says anything; only a plugin may have a use for an empty one."""
    value = value or ""
    if not value.strip():
        return name.upper().startswith(f"{ENV_PREFIX}PLUGINS__")
    return not value.startswith(_PLACEHOLDER)


def _file_layer(file: Path) -> _Layer:
    try:
        text = _file_text(file)
        values = tomllib.loads(text)
        if "mcpServers" in values:  # pasted as other clients spell it
            shared = {"servers": shared_servers(values.pop("mcpServers"))}
            values = _merged(shared, values)
        return _Layer(str(file), with_whole_paths(values, file.parent, str(file)), text)
    except (ValueError, RecursionError) as exc:  # also of a number or a nesting without end
        raise ConfigError(f"{file}: not valid TOML: {exc}") from None
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from None


def _servers_layers(layers: Iterable[_Layer]) -> Iterator[_Layer]:
    """Yield what the file of servers says that the other sources name, if any."""
    named = next((layer for layer in layers if "servers_file" in layer.values), None)
    if named and isinstance(path := named.values["servers_file"], str):
        yield _Layer(path, {"servers": read_servers_file(Path(path))})


def _file_text(file: Path) -> str:
    return file.read_text(encoding="utf-8-sig")


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            value = _merged(cast("dict[str, Any]", below), cast("Mapping[str, Any]", value))  # noqa: PLW2901
        result[key] = value
    return result


def _has(values: Any, keys: tuple[str, ...]) -> bool:
    for key in keys:
        if isinstance(values, list):
            return True
        if not isinstance(values, Mapping) or key not in values:
            return False
        values = cast("Any", values[key])
    return True


def _key_name(path: tuple[str | int, ...], origin: str) -> str:
    if origin in _FROM_VARIABLES:
        if name := VARIABLES.get(tuple(map(str, path))):
            return name
        return ENV_PREFIX + "__".join(str(part).upper() for part in path)
    table = ".".join(str(part) for part in path[:-1])
    return f"[{table}] {path[-1]}" if table else str(path[-1])


def _keys_at(model: type[BaseModel], path: Iterable[str | int]) -> set[str]:
    parts = iter(path)
    for part in parts:
        field = model.model_fields.get(str(part))
        annotation: Any = field.annotation if field else None
        if get_origin(annotation) is dict:  # tables by name: the next part is one
            annotation = get_args(annotation)[1]
            next(parts, None)
        if not isinstance(annotation, type) or not issubclass(annotation, BaseModel):
            return set()
        model = annotation
    return set(model.model_fields)
