"""``[servers.<name>]``: other MCP servers, whose tools the host serves, too."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, cast
from urllib.parse import unquote

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from standards_mcp._utils.secrets import SHORTEST_SECRET, looks_secret, query_secrets
from standards_mcp._utils.text import describe_decoding, describe_exception
from standards_mcp.errors import ConfigError
from standards_mcp.plugin import PluginSettings

from .base import Seconds

_NAMED: Final = re.compile(r"-*(?P<name>[\w-]+)\s*[=:]\s*(?P<value>.+)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_TABLES: Final = ("mcpServers", "servers")
_KEYS: Final = ("type", "command", "args", "env", "cwd", "url", "headers")


def _hidden(value: object) -> object:
    """Treat a value as a secret unless it is short, an absolute path, or names a variable."""
    if not isinstance(value, str) or len(value) < SHORTEST_SECRET:
        return value
    return value if _VARIABLE.search(value) or Path(value).is_absolute() else SecretStr(value)


def _hidden_arguments(value: object) -> object:
    """Treat as a secret what follows a flag such as ``--api-key``, also after a ``=``."""
    if not isinstance(value, list | tuple):
        return value
    arguments = cast("Sequence[object]", value)
    hidden: list[object] = []
    for before, argument in pairwise(("", *arguments)):
        flag = str(before)
        is_value = flag.startswith("-") and looks_secret(flag.lstrip("-"))
        hidden.append(_hidden(argument) if is_value or _named_secret(argument) else argument)
    return hidden


def _named_secret(argument: object) -> str:
    """Return the value of an argument such as ``--token=abc`` or ``X-Api-Key: abc``, or ``""``."""
    match = _NAMED.fullmatch(argument) if isinstance(argument, str) else None
    return match["value"] if match and looks_secret(match["name"]) else ""


_Text: TypeAlias = Annotated[str | SecretStr, Field(union_mode="left_to_right")]
HiddenText: TypeAlias = Annotated[_Text, BeforeValidator(_hidden)]
HiddenArguments: TypeAlias = Annotated[tuple[_Text, ...], BeforeValidator(_hidden_arguments)]


class ServerSettings(PluginSettings):
    """How an MCP server is reached, and how its tools are served.

    In ``args``, ``url`` and the values of ``env`` and ``headers``, ``${NAME}`` stands for a
    variable of the environment, and ``${NAME:-text}`` for *text* where there is none.

    Attributes:
        type: It has no effect, because ``command`` or ``url`` decides. The files of other clients
            have it.
        command: This program is started. It speaks MCP over stdin and stdout.
        args: The program gets these arguments.
        env: The program gets these variables beside PATH, HOME and the like.
        cwd: The program runs in this folder. By default it is the host's own.
        url: The server is reached at this address by streamable HTTP, in place of a command.
        headers: These headers are sent with every request to the server.
        prefix: The names of its tools begin with this. By default it is the server's name and a
            dot.
        start_timeout: The server may take this many seconds to start and to list its tools.
        timeout: One call of its tools may take this many seconds, in place of ``tools.timeout``.
        approve: With ``"first"``, the definitions of the first start are approved, and a tool,
            prompt or resource template that changes or is new later is not served until
            ``servers approve`` approves it. With ``"always"``, all are served as they come.
    """

    type: Literal["stdio", "http", "streamable-http"] | None = None
    command: Annotated[str, Field(min_length=1)] | None = None
    args: HiddenArguments = ()
    env: dict[str, HiddenText] = Field(default_factory=dict[str, HiddenText])
    cwd: Path | None = None
    url: Annotated[str | None, Field(min_length=1, repr=False)] = None
    headers: dict[str, HiddenText] = Field(default_factory=dict[str, HiddenText])
    prefix: Annotated[str, Field(pattern=r"^([A-Za-z][A-Za-z0-9_.-]{0,31})?$")] | None = None
    start_timeout: Seconds = 20.0
    timeout: Seconds | None = None
    approve: Literal["first", "always"] = "first"


class ServerSection(ServerSettings):
    """``[servers.<name>]``: another MCP server.

    Attributes:
        enabled: If true, what the server has is served.
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
        return self


class VariableError(ValueError):
    """A variable of the environment that a server needs is not set.

    Attributes:
        variable: Its name.
    """

    def __init__(self, variable: str) -> None:
        super().__init__(f"${{{variable}}} is not set; set {variable} in the environment")
        self.variable = variable


class Expansion:
    """Replaces variables in texts; what came from a variable counts as a secret."""

    def __init__(self) -> None:
        self.secrets: set[str] = set()

    def text(self, value: SecretStr | str) -> str:
        """Return *value* with its variables replaced by their values.

        Raises:
            VariableError: One is not set.
        """
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if named := _named_secret(text):
            self.secrets.add(named)
        for found in query_secrets(text):
            self.secrets |= {found, unquote(found)}
        return _VARIABLE.sub(self._variable, text)

    def _variable(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        value = os.environ.get(name) or default
        if value is None:
            raise VariableError(name)
        if len(value) >= SHORTEST_SECRET and not Path(value).is_absolute():
            self.secrets.add(value)
        return value


def read_servers_file(file: Path) -> dict[str, Any]:
    """Return the servers of a JSON file with ``mcpServers``, as other clients keep them.

    Raises:
        ConfigError: It cannot be read, or holds no such table.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as exc:
        raise ConfigError(f"{file}: cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{file}: {describe_decoding(exc)}") from None
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{file}: not valid JSON: {describe_exception(exc)}") from None
    tables: Mapping[str, Any] = cast("Any", data) if isinstance(data, dict) else {}
    found = next((tables[name] for name in _TABLES if isinstance(tables.get(name), dict)), None)
    if found is None:
        raise ConfigError(f'{file}: it has no "mcpServers"')
    servers: dict[str, Any] = shared_servers(found)
    return servers


def shared_servers(tables: Any) -> Any:
    """Return servers from the spelling of other clients in that of ``[servers]``.

    Keys that only another client understands are left out.
    """
    if not isinstance(tables, Mapping):
        return tables  # for validation to report
    servers = cast("Mapping[str, Any]", tables)
    return {
        name: _shared_server(cast("Mapping[str, Any]", each)) if isinstance(each, dict) else each
        for name, each in servers.items()
    }


def _shared_server(entry: Mapping[str, Any]) -> dict[str, Any]:
    taken = {key: entry[key] for key in _KEYS if key in entry}
    return taken | ({"enabled": False} if entry.get("disabled") is True else {})
