"""The supported MCP clients, with the paths and formats of their files.

The clients' documentation describes the files, except for Claude Desktop on Linux, which has only
unofficial builds.

Four of the clients also have a command to add a server (`claude mcp add`, `codex mcp add`, `gemini
mcp add`, `code --add-mcp`). The commands are not used: a user may not have them on PATH, `code`
cannot remove a server, none shows the change before it is made or keeps the variables of an
existing entry, and the files must be read anyway for `clients list`, `doctor` and the check of lost
options.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

Entry = dict[str, Any]
DEFAULT_NAME: Final = "standards"
"""The name of this server in a client, if its user chooses no other."""


@dataclass(frozen=True, slots=True)
class System:
    """The folders and variables of a user.

    Attributes:
        platform: A value of `sys.platform`; all but ``darwin`` and ``win32`` count as Linux.
        project: The folder of the project, for a project's own configuration.
    """

    platform: str
    home: Path
    environment: Mapping[str, str]
    project: Path

    @classmethod
    def current(cls) -> System:
        """Return the current user's system, with the working directory as the project."""
        return cls(sys.platform, Path.home(), os.environ, Path.cwd())

    @property
    def applications(self) -> Path:
        """The folder in which applications store their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData/Roaming")
        return self.unix_config

    @property
    def unix_config(self) -> Path:
        """The settings folder of programs that use Unix paths even on macOS."""
        return self.folder("XDG_CONFIG_HOME", ".config")

    def folder(self, variable: str, name: str) -> Path:
        """Return the folder that *variable* names, or the one called *name* in the home."""
        value = self.environment.get(variable)
        return Path(value) if value else self.home / name


@dataclass(frozen=True, slots=True)
class Launch:
    """The command with which a client starts this server.

    Attributes:
        command: An absolute path, since clients search few folders or none for programs.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])


def _plain_entry(name: str, launch: Launch) -> Entry:
    del name
    entry: Entry = {"command": launch.command, "args": list(launch.args)}
    return entry | ({"env": dict(launch.env)} if launch.env else {})


def _typed_entry(name: str, launch: Launch) -> Entry:
    return {"type": "stdio"} | _plain_entry(name, launch)


def _goose_entry(name: str, launch: Launch) -> Entry:
    return {
        "name": name,
        "type": "stdio",
        "enabled": True,
        "cmd": launch.command,
        "args": list(launch.args),
        "envs": dict(launch.env),
        "timeout": 300,
    }


ServiceEntry = Callable[[str, str, str], Entry | None]
"""Returns the entry for a service, from a name, an address, and the variable with the token or "".

None if the client cannot read the token from a variable.
"""


def _at(address: str, reference: str = "", **constants: str) -> ServiceEntry:
    """Return a function that builds the service entry of a client.

    Args:
        address: The key of the address.
        reference: The client's way to name a variable in a header, with ``NAME`` for its name.
    """

    def entry(name: str, url: str, variable: str) -> Entry | None:
        del name
        if variable and not reference:
            return None
        token = f"Bearer {reference.replace('NAME', variable)}"
        headers = {"headers": {"Authorization": token}} if variable else {}
        return {**constants, address: url, **headers}

    return entry


def _codex_service(name: str, url: str, variable: str) -> Entry:
    del name
    return {"url": url} | ({"bearer_token_env_var": variable} if variable else {})


def _goose_service(name: str, url: str, variable: str) -> Entry:
    entry = {"name": name, "type": "streamable_http", "enabled": True, "uri": url, "timeout": 300}
    headers = {"Authorization": f"Bearer ${{{variable}}}"}
    return entry | ({"headers": headers, "env_keys": [variable]} if variable else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An MCP client.

    Attributes:
        key: The name on the command line.
        table: The keys that lead to the servers in the client's file.
        settings: Returns the file of a user's servers; its suffix selects the format. None if the
            client has no such file and the user imports JSON.
        project: The file of a project's servers, relative to the project's folder, or "".
        entry: Returns the client's entry for a server with a name.
        command: The key of the command in the entry.
        environment: The key of the variables in the entry.
        service: Returns the client's entry for a service; None if it only starts programs.
        address: The key of the address in this entry.
        sign_in: The next step for a user who signs in to a service.
        after: The next step for the user.
    """

    key: str
    title: str
    table: tuple[str, ...] = ("mcpServers",)
    settings: Callable[[System], Path] | None = None
    project: str = ""
    entry: Callable[[str, Launch], Entry] = _plain_entry
    command: str = "command"
    environment: str = "env"
    service: ServiceEntry | None = None
    address: str = "url"
    sign_in: str = "It asks you to sign in when it connects."
    after: str

    def file(self, system: System, *, project: bool = False) -> Path:
        """Return the file that holds the user's servers, or the project's.

        Raises:
            LookupError: The client has no configuration for projects, or no file at all.
        """
        if self.settings is None:
            raise LookupError(f"{self.title} has no file of servers. {self.after}")
        if not project:
            return self.settings(system)
        if not self.project:
            raise LookupError(f"{self.title} has no project configuration; leave out --project")
        return system.project / self.project

    def command_line(self, entry: Mapping[str, Any]) -> list[str]:
        """Return the command and the arguments of an entry; invalid ones are left out."""
        args = entry.get("args")
        rest = cast("list[object]", args) if isinstance(args, list) else []
        return [str(entry.get(self.command, "")), *map(str, rest)]


def _vscode_folder(system: System) -> Path:
    return system.applications / "Code" / "User"


def _zed_file(system: System) -> Path:
    if system.platform == "win32":
        return system.applications / "Zed" / "settings.json"
    return system.unix_config / "zed" / "settings.json"


def _goose_file(system: System) -> Path:
    if system.platform == "win32":
        return system.applications / "Block" / "goose" / "config" / "config.yaml"
    return system.unix_config / "goose" / "config.yaml"


CLIENTS: Final = (
    Client(
        key="claude-desktop",
        title="Claude Desktop",
        settings=lambda system: system.applications / "Claude" / "claude_desktop_config.json",
        after="Quit Claude Desktop completely and open it again.",
        sign_in=(
            "Claude Desktop signs in to services that are added in its own settings: Connectors, "
            "Add custom connector, with this address."
        ),
    ),
    Client(
        key="claude-code",
        title="Claude Code",
        settings=lambda system: system.folder("CLAUDE_CONFIG_DIR", "") / ".claude.json",
        project=".mcp.json",
        entry=_typed_entry,
        service=_at("url", "${NAME}", type="http"),
        after="Start a new Claude Code session; /mcp lists the server.",
        sign_in="Choose it in /mcp and then Authenticate.",
    ),
    Client(
        key="cursor",
        title="Cursor",
        settings=lambda system: system.home / ".cursor" / "mcp.json",
        project=".cursor/mcp.json",
        service=_at("url", "${env:NAME}"),
        after="Open Cursor's settings, MCP, and switch the server on.",
    ),
    Client(
        key="vscode",
        title="VS Code",
        table=("servers",),
        settings=lambda system: _vscode_folder(system) / "mcp.json",
        project=".vscode/mcp.json",
        entry=_typed_entry,
        service=_at("url", type="http"),
        after="Run `MCP: List Servers` in VS Code and start it.",
    ),
    Client(
        key="windsurf",
        title="Windsurf",
        settings=lambda system: system.home / ".codeium" / "windsurf" / "mcp_config.json",
        service=_at("serverUrl", "${env:NAME}"),
        address="serverUrl",
        after="Refresh the MCP servers in Windsurf's settings.",
    ),
    Client(
        key="zed",
        title="Zed",
        table=("context_servers",),
        settings=_zed_file,
        project=".zed/settings.json",
        service=_at("url"),
        after="Zed reads its settings at once; its agent panel lists the server.",
    ),
    Client(
        key="codex",
        title="Codex",
        table=("mcp_servers",),
        settings=lambda system: system.folder("CODEX_HOME", ".codex") / "config.toml",
        project=".codex/config.toml",
        service=_codex_service,
        sign_in="Run `codex mcp login` with its name.",
        after="Start a new Codex session.",
    ),
    Client(
        key="gemini",
        title="Gemini CLI",
        settings=lambda system: system.home / ".gemini" / "settings.json",
        project=".gemini/settings.json",
        service=_at("httpUrl", "${NAME}"),
        address="httpUrl",
        after="Start Gemini CLI again; /mcp lists the server.",
    ),
    Client(
        key="cline",
        title="Cline",
        settings=lambda system: (
            _vscode_folder(system)
            / "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
        ),
        service=_at("url", type="streamableHttp"),
        after="Open Cline's MCP servers in VS Code; it reads the file at once.",
    ),
    Client(
        key="goose",
        title="Goose",
        table=("extensions",),
        settings=_goose_file,
        entry=_goose_entry,
        command="cmd",
        environment="envs",
        service=_goose_service,
        address="uri",
        after="Start a new Goose session.",
    ),
)
"""The clients with a file of servers, which `install` edits."""
IMPORTING: Final = (
    Client(
        key="cherry-studio",
        title="Cherry Studio",
        after=(
            "Its servers are in its own settings: MCP Servers, Add, Import from JSON; remove them "
            "there, too."
        ),
        sign_in="Cherry Studio cannot sign in with an imported entry; use --token-env.",
    ),
)
"""The clients whose users import JSON in the settings."""
