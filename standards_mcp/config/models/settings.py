"""The models of the host's configuration; they read nothing but what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

from pydantic import ConfigDict, Field, ValidationInfo, WithJsonSchema, field_validator

from standards_mcp._utils.documented import Documented
from standards_mcp._utils.text import did_you_mean

from .base import AtStart, Like, Table
from .external import HiddenText, ServerSection
from .http import HttpSettings, Scope
from .tools import ContributionSettings, Kind, Profile, Rules, ToolSettings

_SIZE: Final = re.compile(r"([1-9][0-9]*) ?([KMGkmg])[Bb]")
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SERVER_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
ENV_PREFIX: Final = "STANDARDS_MCP_"


class PluginSection(Documented):
    """What the host reads of ``[plugins.<name>]``; every other key is the plugin's own.

    Attributes:
        enabled: If true, the plugin is imported, and if false, it is not. Without this key,
            ``autoload`` decides.
        required: If true, the host refuses to start without the plugin.
        isolate: If true, the plugin runs in a process of its own, so that whatever it does costs
            only its own calls.
        python: This interpreter runs the plugin, such as that of another environment. It implies
            ``isolate``.
        memory: An isolated plugin may have this much address space, such as ``512MB``. It has an
            effect on Linux only.
        processes: An isolated plugin may have this many processes at a time. It has an effect on
            Linux only.
        env: An isolated plugin gets these variables, too. ``${NAME}`` stands for a variable of the
            environment.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    enabled: bool | None = None
    required: bool = False
    isolate: bool = False
    python: str | None = None
    memory: Annotated[str, Like(_SIZE.pattern, "a size such as '512MB' or '2GB'")] | None = None
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
        """The limit of memory in bytes."""
        match = _SIZE.fullmatch(self.memory or "")
        return int(match[1]) * _UNITS[match[2].upper()] if match else None

    @property
    def options(self) -> dict[str, Any]:
        """The plugin's own keys, not yet validated."""
        return dict(self.model_extra or {})


class Settings(Table):
    """Settings of the host.

    It holds what it is given; `load_settings` reads files and the environment.

    Attributes:
        autoload: If true, plugins are loaded that do not say ``enabled = true``, too.
        strict: If true, any plugin that fails keeps the host from starting.
        tool_names: With ``portable``, ``a.b`` is published as ``a_b``, because some clients refuse
            dots.
        state_dir: Plugins keep state in this folder. By default it is the user's state folder.
        trusted: Only plugins of distributions with a name that matches one of these globs are
            imported.
        profile: This one of the ``profiles`` applies.
        services: Of two plugins that provide one service, the named one is used: ``Catalog =
            "acme"``.
        server: The service over HTTP, for ``serve --transport http``.
        servers: Each table is another MCP server, with a name of your choice.
        servers_file: The servers in this JSON file are added. It has ``mcpServers``, as those of
            other clients have.
    """

    autoload: Annotated[bool, AtStart()] = True
    strict: Annotated[bool, AtStart()] = False
    tool_names: Literal["portable", "declared"] = "portable"
    state_dir: Annotated[Path | None, AtStart()] = None
    trusted: Annotated[tuple[str, ...], AtStart()] = ("*",)
    tools: ToolSettings = Field(default_factory=ToolSettings)
    prompts: ContributionSettings = Field(default_factory=ContributionSettings)
    resources: ContributionSettings = Field(default_factory=ContributionSettings)
    profiles: dict[str, Profile] = Field(default_factory=dict[str, Profile])
    profile: str | None = None
    plugins: dict[str, PluginSection] = Field(default_factory=dict[str, PluginSection])
    services: Annotated[dict[str, str], AtStart()] = Field(default_factory=dict[str, str])
    server: HttpSettings = Field(default_factory=HttpSettings)
    servers: dict[str, ServerSection] = Field(default_factory=dict[str, ServerSection])
    servers_file: Path | None = None

    @field_validator("profile", mode="before")
    @classmethod
    def _check_is_name(cls, profile: object) -> object:
        if isinstance(profile, dict):  # [profile.x]
            table = cast("dict[str, object]", profile)
            name = next((key for key, value in table.items() if isinstance(value, dict)), "NAME")
            raise ValueError(f"it names one of the profiles; for the table write [profiles.{name}]")  # noqa: TRY004  for pydantic
        return profile

    @field_validator("profile")
    @classmethod
    def _check_profile(cls, profile: str | None, info: ValidationInfo) -> str | None:
        profiles: dict[str, Profile] = info.data.get("profiles", {})
        if profile is not None and profile not in profiles:
            known = f"; there are: {', '.join(profiles) or 'none'}"
            hint = did_you_mean(profile, profiles) or known
            raise ValueError(f"there is no [profiles.{profile}]{hint}")
        return profile

    @field_validator("server")
    @classmethod
    def _check_scopes(cls, server: HttpSettings, info: ValidationInfo) -> HttpSettings:
        profiles: dict[str, Profile] = info.data.get("profiles", {})
        for name, scope in server.auth.scopes.items():
            if isinstance(scope, Scope) and scope.profile and scope.profile not in profiles:
                hint = did_you_mean(scope.profile, profiles)
                raise ValueError(f"scope {name!r}: there is no [profiles.{scope.profile}]{hint}")
        return server

    @property
    def profiles_in_force(self) -> tuple[str, ...]:
        """The profile that applies, if any does."""
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
        if odd := next((name for name in servers if not _SERVER_NAME.fullmatch(name)), None):
            raise ValueError(f"{odd!r} is no name of a server; use letters, digits, '_' and '-'")
        return servers

    def section(self, plugin: str) -> PluginSection:
        """Return the table of a plugin or a server, or the defaults."""
        if server := self.servers.get(plugin):
            return PluginSection(enabled=server.enabled, required=server.required)
        return self.plugins.get(plugin) or PluginSection()

    def table(self, plugin: str) -> str:
        """Return the name of the table of a plugin or a server."""
        return f"{'servers' if plugin in self.servers else 'plugins'}.{plugin}"
