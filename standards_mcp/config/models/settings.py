"""Models of the host's settings, with ``[plugins.*]`` and ``[servers.*]``."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, cast
from urllib.parse import unquote

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from standards_mcp._utils.secrets import SHORTEST_SECRET, looks_secret, query_secrets
from standards_mcp._utils.text import did_you_mean
from standards_mcp.plugin import PluginSettings
from standards_mcp.plugin.settings import Documented

from . import AtStart, Seconds, Table, TextFormat
from .http import HttpSettings, Scope
from .sign_in import ServerAuth
from .tools import ContributionSettings, Kind, Profile, Rules, ToolSettings

_SIZE: Final = re.compile(r"([1-9][0-9]*) ?([KMGkmg])[Bb]")
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SERVER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
ENV_PREFIX: Final = "STANDARDS_MCP_"
_NAME_AND_VALUE: Final = re.compile(r"-*(?P<name>[\w-]+)\s*[=:]\s*(?P<value>.+)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def _hide_secret(value: object) -> object:
    """Treat a value as a secret unless it is short, an absolute path, or names a variable."""
    if not isinstance(value, str) or len(value) < SHORTEST_SECRET:
        return value
    return value if _VARIABLE.search(value) or Path(value).is_absolute() else SecretStr(value)


def _hide_arguments(value: object) -> object:
    """Hide an argument after a flag such as ``--api-key``, and one such as ``--api-key=...``."""
    if not isinstance(value, list | tuple):
        return value
    arguments = cast("Sequence[object]", value)
    hidden: list[object] = []
    for previous, argument in pairwise(("", *arguments)):
        flag = str(previous)
        is_value = flag.startswith("-") and looks_secret(flag.lstrip("-"))
        hidden.append(_hide_secret(argument) if is_value or _named_secret(argument) else argument)
    return hidden


def _named_secret(argument: object) -> str:
    """Return the value of an argument such as ``--token=abc`` or ``X-Api-Key: abc``, or ``""``."""
    match = _NAME_AND_VALUE.fullmatch(argument) if isinstance(argument, str) else None
    return match["value"] if match and looks_secret(match["name"]) else ""


_Text: TypeAlias = Annotated[str | SecretStr, Field(union_mode="left_to_right")]
HiddenText: TypeAlias = Annotated[_Text, BeforeValidator(_hide_secret)]
HiddenArguments: TypeAlias = Annotated[tuple[_Text, ...], BeforeValidator(_hide_arguments)]


class ServerSettings(PluginSettings):
    """How an MCP server is reached, and how its tools are served.

    In ``args``, ``url`` and the values of ``env`` and ``headers``, ``${NAME}`` is replaced by a
    variable of the environment, and ``${NAME:-text}`` by *text* if the variable is not set.

    Attributes:
        type: It has no effect: ``command`` or ``url`` decides. It is accepted because the files of
            other clients have it.
        command: This program is started. It speaks MCP over stdin and stdout.
        args: The program gets these arguments.
        env: The program gets these variables in addition to PATH, HOME and similar ones.
        cwd: The program runs in this folder. By default it is the host's own.
        url: The address of a server for streamable HTTP, in place of a command.
        headers: These headers are sent with every request to the server.
        auth: The host signs in at the server, and sends a token with every request.
        prefix: The names of the server's tools begin with this text. By default it is the server's
            name and a dot.
        start_timeout: The server may take this many seconds to start and to list its tools.
        timeout: One call of a tool may take this many seconds, in place of ``tools.timeout``.
        approve: With ``"first"``, the definitions of the first start are approved. A tool, prompt
            or resource template that is changed or added later is not served until
            ``servers approve`` approves it. With ``"always"``, all are served without approval.
    """

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: Annotated[str, Field(min_length=1)] | None = None
    args: HiddenArguments = ()
    env: dict[str, HiddenText] = Field(default_factory=dict[str, HiddenText])
    cwd: Path | None = None
    url: Annotated[str | None, Field(min_length=1, repr=False)] = None
    headers: dict[str, HiddenText] = Field(default_factory=dict[str, HiddenText])
    auth: ServerAuth | None = None
    prefix: Annotated[str, Field(pattern=r"^([A-Za-z][A-Za-z0-9_.-]{0,31})?$")] | None = None
    start_timeout: Seconds = 20.0
    timeout: Seconds | None = None
    approve: Literal["first", "always"] = "first"


class ServerSection(ServerSettings):
    """``[servers.<name>]``: another MCP server.

    Attributes:
        enabled: If true, the tools, prompts and resources of the server are served.
        required: If true, the host refuses to start without the server.
    """

    enabled: bool = True
    required: bool = False

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.enabled and self.command is None and self.url is None:
            raise ValueError("needs either command (a program) or url (an address)")
        if self.enabled and self.command is not None and self.url is not None:
            raise ValueError("has both command (a program) and url (an address); keep one of them")
        if self.auth and (self.url is None or "authorization" in map(str.lower, self.headers)):
            raise ValueError("auth needs a url, and no header Authorization")
        return self


class VariableError(ValueError):
    """A variable of the environment that a server needs is not set.

    Attributes:
        variable: The name of the variable.
    """

    def __init__(self, variable: str) -> None:
        super().__init__(f"${{{variable}}} is not set; set {variable} in the environment")
        self.variable = variable


class Expansion:
    """Replaces variables in texts, and collects the secrets among the values."""

    def __init__(self) -> None:
        self.secrets: set[str] = set()

    def text(self, value: SecretStr | str) -> str:
        """Return *value* with its variables replaced by their values.

        Raises:
            VariableError: A variable is not set.
        """
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if secret := _named_secret(text):
            self.secrets.add(secret)
        for secret in query_secrets(text):
            self.secrets |= {secret, unquote(secret)}
        return _VARIABLE.sub(self._variable, text)

    def _variable(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        value = os.environ.get(name) or default
        if value is None:
            raise VariableError(name)
        if len(value) >= SHORTEST_SECRET and not Path(value).is_absolute():
            self.secrets.add(value)
        return value


class PluginSection(Documented):
    """The host's keys in ``[plugins.<name>]``; every other key belongs to the plugin.

    Attributes:
        enabled: If true, the plugin is imported, and if false, it is not. Without this key,
            ``autoload`` decides.
        required: If true, the host refuses to start without the plugin.
        isolate: If true, the plugin runs in a process of its own, so that its failures cost only
            its own calls.
        python: This interpreter runs the plugin, for example one of another environment. It
            implies ``isolate``.
        memory: An isolated plugin may have this much address space, such as ``512MB``. It has an
            effect on Linux only.
        processes: An isolated plugin may have this many processes at a time. It has an effect on
            Linux only.
        env: An isolated plugin gets these variables, too. ``${NAME}`` is replaced by a variable of
            the environment.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    enabled: bool | None = None
    required: bool = False
    isolate: bool = False
    python: str | None = None
    memory: Annotated[str, TextFormat(_SIZE.pattern, "a size such as '512MB' or '2GB'")] | None = (
        None
    )
    processes: Annotated[int, Field(gt=0)] = 32
    # Described as plain text: a value may be a secret, and need not be one.
    env: Annotated[
        dict[str, HiddenText],
        WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
    ] = Field(default_factory=dict[str, HiddenText])

    @property
    def is_isolated(self) -> bool:
        """True if the plugin runs in a process of its own."""
        return self.isolate or self.python is not None

    @property
    def memory_bytes(self) -> int | None:
        """The limit of memory in bytes, or None."""
        match = _SIZE.fullmatch(self.memory or "")
        return int(match[1]) * _UNITS[match[2].upper()] if match else None

    @property
    def options(self) -> dict[str, Any]:
        """The plugin's own keys, not yet validated."""
        return dict(self.model_extra or {})


class Settings(Table):
    """Settings of the host.

    `load_settings` reads files and the environment, and passes the values.

    Attributes:
        autoload: If true, plugins without ``enabled = true`` are loaded, too.
        strict: If true, any plugin that fails keeps the host from starting.
        tool_names: With ``portable``, ``a.b`` is published as ``a_b``, because some clients refuse
            dots.
        state_dir: Plugins keep state in this folder. By default it is the user's state folder.
        trusted: Only plugins of distributions with a name that matches one of these globs are
            imported.
        profile: The name of the profile that applies, one of ``profiles``.
        services: The plugin that provides a service, if several do: ``Catalog = "acme"``.
        server: The service over HTTP, for ``serve --transport http``.
        servers: Each table is another MCP server, with a name of your choice.
        servers_file: The servers in this JSON file are added. It has ``mcpServers``, like the files
            of other clients.
        sign_in_key: This key encrypts the tokens of users at other servers. It has 32 characters or
            more. By default, a file in the state folder has a key.
    """

    autoload: Annotated[bool, AtStart()] = True
    strict: Annotated[bool, AtStart()] = False
    tool_names: Literal["portable", "declared"] = "portable"
    state_dir: Annotated[Path | None, AtStart()] = None
    trusted: Annotated[tuple[str, ...], AtStart()] = ("*",)
    tools: ToolSettings = Table.empty
    prompts: ContributionSettings = Table.empty
    resources: ContributionSettings = Table.empty
    skills: Rules = Table.empty
    profiles: dict[str, Profile] = Field(default_factory=dict[str, Profile])
    profile: str | None = None
    plugins: dict[str, PluginSection] = Field(default_factory=dict[str, PluginSection])
    services: Annotated[dict[str, str], AtStart()] = Field(default_factory=dict[str, str])
    server: HttpSettings = Table.empty
    servers: dict[str, ServerSection] = Field(default_factory=dict[str, ServerSection])
    servers_file: Path | None = None
    sign_in_key: Annotated[SecretStr | None, Field(min_length=32), AtStart()] = None

    @field_validator("profile")
    @classmethod
    def _check_profile(cls, profile: str | None, info: ValidationInfo) -> str | None:
        profiles: dict[str, Profile] = info.data.get("profiles", {})
        if profile is not None and profile not in profiles:
            listed = f"; known profiles: {', '.join(profiles) or 'none'}"
            hint = did_you_mean(profile, profiles) or listed
            raise ValueError(f"no table [profiles.{profile}]{hint}")
        return profile

    @field_validator("server")
    @classmethod
    def _check_scopes(cls, server: HttpSettings, info: ValidationInfo) -> HttpSettings:
        profiles: dict[str, Profile] = info.data.get("profiles", {})
        for name, scope in server.auth.scopes.items():
            if isinstance(scope, Scope) and scope.profile and scope.profile not in profiles:
                hint = did_you_mean(scope.profile, profiles)
                raise ValueError(f"scope {name!r}: no table [profiles.{scope.profile}]{hint}")
        return server

    @property
    def profiles_in_force(self) -> tuple[str, ...]:
        """The profile that applies, as a tuple with one name or none."""
        return (self.profile,) if self.profile else ()

    def rules(self, kind: Kind, profiles: Iterable[str]) -> Iterator[tuple[tuple[str, ...], Rules]]:
        """Yield the general rules and the rules of *profiles*, each with the keys of its table."""
        yield (kind,), getattr(self, kind)
        for name in profiles:
            profile = self.profiles[name]
            if kind == "tools":
                yield ("profiles", name), profile
            else:
                yield ("profiles", name, kind), getattr(profile, kind)

    @field_validator("servers")
    @classmethod
    def _check_servers(cls, servers: dict[str, ServerSection]) -> dict[str, ServerSection]:
        if invalid := next((name for name in servers if not _SERVER_NAME.fullmatch(name)), None):
            raise ValueError(
                f"{invalid!r} is not a valid server name; use letters, digits, '_' and '-'"
            )
        return servers

    def section(self, plugin: str) -> PluginSection:
        """Return the table of a plugin or a server, or the defaults."""
        if server := self.servers.get(plugin):
            return PluginSection(enabled=server.enabled, required=server.required)
        return self.plugins.get(plugin) or PluginSection()

    def table(self, plugin: str) -> str:
        """Return the name of the table of a plugin or a server."""
        return f"{'servers' if plugin in self.servers else 'plugins'}.{plugin}"
