"""Read and edit the entries of this server in clients' files; the rest stays unchanged.

The caller reads and writes files: all functions but `own_servers` and `read_servers` map text to
text.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Final, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from standards_mcp.commands import MASK, looks_secret
from standards_mcp.errors import StandardsMcpError
from standards_mcp.files import (
    BYTE_ORDER_MARK,
    Edit,
    describe_decoding,
    diff,
    keeping_style,
    read_text,
)

from . import jsonc
from .clients import Client, Entry, Launch

_RUNNERS: Final = frozenset({"pipx", "uv", "uvx"})

IMPORTED_FILE: Final = Path("servers.json")
"""The format of entries for clients without a file: the suffix selects it."""
_T = TypeVar("_T")

Options: TypeAlias = tuple[tuple[str, str], ...]
"""The options of an entry that limit its server, with their values, in order."""

_CONFIG_VARIABLE: Final = "STANDARDS_MCP_CONFIG"
_LIMITING_OPTIONS: Final = ("--config", "--profile", "--set")
_HEADERS: Final = "headers"
_TOKEN_KEYS: Final = (_HEADERS, "bearer_token_env_var", "env_keys")
"""The keys of entries for services through which the clients get a token."""
_PACKAGE: Final = re.compile(r"standards-mcp($|[@=\[])")


class ClientFileError(StandardsMcpError):
    """A client's configuration file cannot be edited; the file is unchanged."""


@dataclass(frozen=True, slots=True)
class _Format:
    """The functions to parse a text, to set a value in it, and to remove a value."""

    name: str
    read: Callable[[str], Any]
    write: Callable[[str, Sequence[str], Any], str]
    remove: Callable[[str, Sequence[str]], str]


def own_servers(client: Client, file: Path) -> dict[str, Entry]:
    """Return the entries of a client's file that start this server, by name.

    Raises:
        ClientFileError: The file cannot be read, or is malformed.
    """
    entries = read_servers(client, file).items()
    return {name: entry for name, entry in entries if is_ours(client, entry)}


def read_servers(client: Client, file: Path) -> dict[str, Entry]:
    """Return the entries of a client's file, by name.

    Raises:
        ClientFileError: The file cannot be read, or is malformed.
    """
    try:
        text = read_text(file) or ""
    except UnicodeDecodeError as exc:
        raise ClientFileError(f"{file}: {describe_decoding(exc)}") from None
    except OSError as exc:
        raise ClientFileError(f"{file} cannot be read: {exc}; correct it") from None
    return servers(client, file, text)


def servers(client: Client, file: Path, text: str) -> dict[str, Entry]:
    """Return the entries of a client's file, by name.

    Raises:
        ClientFileError: The file is malformed.
    """
    entries = _entries(client, file, text).items()
    return {name: dict(cast("Entry", each)) for name, each in entries if isinstance(each, Mapping)}


def is_ours(client: Client, entry: Mapping[str, Any]) -> bool:
    """Return True if an entry starts this server."""
    command, *args = client.command_line(entry)
    # A Windows path, because it splits at both kinds of slashes.
    program = PureWindowsPath(command).name.removesuffix(".exe")
    if program == "standards-mcp" or args[:2] == ["-m", "standards_mcp"]:
        return True
    return program in _RUNNERS and any(_PACKAGE.match(arg) for arg in args)


def origin_of_service(client: Client, entry: Mapping[str, Any]) -> str:
    """Return the scheme and the host of the service of an entry, or "" if it starts a program."""
    try:
        parts = urlsplit(str(entry.get(client.address, "")))
    except ValueError:
        return ""
    # The rest of the address may hold a password or a key.
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}" if host and parts.scheme in {"http", "https"} else ""


def variables_of(client: Client, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment variables that an entry sets for its server."""
    return _table(entry, client.environment)


def missing_variables(
    client: Client, entry: Mapping[str, Any], variables: Iterable[str]
) -> list[str]:
    """Return the *variables* that an entry does not set; clients pass on few others."""
    return sorted({*variables} - {name.upper() for name in variables_of(client, entry)})


def options_of(command_line: Sequence[str]) -> Options:
    """Return the options of a command line that limit the server, with their values."""
    options: list[tuple[str, str]] = []
    rest = iter(command_line)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in _LIMITING_OPTIONS:
            options.append((option, value if equals else next(rest, "")))
    return tuple(options)


def service_options(command_line: Sequence[str]) -> list[str]:
    """Return the options of `install` for an entry that starts `connect`, or an empty list."""
    if "connect" not in command_line[1:]:
        return []
    at = command_line.index("connect", 1)
    return ["--url", *command_line[at + 1 :]]


def options_in_force(client: Client, entry: Entry) -> Options:
    """Return the options of an entry that limit its server.

    A configuration file may also come from a variable of the entry; the option wins over it.
    """
    options = options_of(client.command_line(entry))
    variable = str(variables_of(client, entry).get(_CONFIG_VARIABLE, ""))
    if "--config" not in dict(options) and variable.strip():
        return (("--config", variable), *options)
    return options


def configuration_of(client: Client, entry: Entry) -> Path | None:
    """Return the configuration file of an entry, from its option or its variable."""
    config_option = dict(options_in_force(client, entry)).get("--config")
    return None if config_option is None else Path(os.path.expanduser(config_option))  # noqa: PTH111  - never raises


def lost_options(before: Options, after: Options) -> list[str]:
    """Return the options of *before* that *after* does not have, as command-line text."""
    missing_options = [pair for pair in before if pair not in after]
    return [f"{option} {_masked_value(option, value)}" for option, value in missing_options]


def lost_settings(client: Client, before: Entry, after: Entry) -> list[str]:
    """Return the names of the variables and the headers of *before* that *after* does not have."""
    keys = (client.environment, _HEADERS)
    return [name for key in keys for name in _table(before, key) if name not in _table(after, key)]


def _table(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = entry.get(key)
    return dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else {}


def install_command(
    client: Client,
    name: str,
    options: Options,
    variables: Iterable[str] = (),
    after: Sequence[str] = (),
) -> str:
    """Return the command that writes an entry again with all its options.

    The command need not repeat the entry's variables, since `install` keeps them.

    Args:
        variables: The names of additional variables to pass on.
        after: More options of `install`.
    """
    words = ["standards-mcp"]
    for option, value in options:
        words += [option, _masked_value(option, value)]
    words += ["install", client.key, "--name", name]
    words += [word for variable in variables for word in ("--env", variable)]
    words += after
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def _masked_value(option: str, value: str) -> str:
    """Return a value for display, masked if it looks secret: the user must fill it in."""
    key, equals, _ = value.partition("=")
    is_secret = option == "--set" and equals and looks_secret(key.rpartition(".")[2])
    return f"{key}={MASK}" if is_secret else value


def with_server(client: Client, file: Path, text: str, name: str, launch: Launch) -> str:
    """Return the text of a client's file with this server under *name*.

    Other keys of an existing entry stay, and so do its environment variables.

    Raises:
        ClientFileError: The file is malformed, or another server has the name.
    """
    old = _existing(client, file, text, name)
    if old and not is_ours(client, old):
        if origin_of_service(client, old):
            advice = f"remove it with `uninstall {client.key} --name {name} --url URL`"
            raise ClientFileError(f"{file}: {name!r} is a service; {advice}, or choose --name")
        command = client.command_line(old)[0]  # its arguments may hold secrets
        raise ClientFileError(
            f"{file}: {name!r} is another server ({command}); choose a name with --name"
        )
    entry = _started(client, old, client.entry(name, launch))
    return _with_format(file, lambda form: form.write(text, (*client.table, name), entry))


def with_service(client: Client, file: Path, text: str, name: str, entry: Entry) -> str:
    """Return the text of a client's file with the entry of a service under *name*.

    Other keys of an existing entry stay, but what starts a program goes if the client connects to
    the service by itself.

    Raises:
        ClientFileError: The file is malformed, or another server has the name.
    """
    old = _existing(client, file, text, name)
    address = entry.get(client.address)
    is_same_service = isinstance(address, str) and old.get(client.address) == address
    if old and not is_ours(client, old) and not is_same_service:
        raise ClientFileError(f"{file}: {name!r} is another server; choose a name with --name")
    merge = _started if client.command in entry else _connected
    new = merge(client, old, entry)
    return _with_format(file, lambda form: form.write(text, (*client.table, name), new))


def _existing(client: Client, file: Path, text: str, name: str) -> Entry:
    """Return the entry *name*, or an empty one if there is none."""
    existing = _entries(client, file, text).get(name)
    if not isinstance(existing, Mapping | None):
        raise ClientFileError(f"{file}: {name!r} is not a server; correct it")
    return dict(cast("Entry", existing or {}))


def _started(client: Client, old: Entry, new: Entry) -> Entry:
    """Return an entry that starts the program of *new*, with the other keys of *old*."""
    entry = {**new, **old, **{key: new[key] for key in (client.command, "args")}}
    if variables := variables_of(client, old) | variables_of(client, new):
        entry[client.environment] = variables
    return entry


def _connected(client: Client, old: Entry, new: Entry) -> Entry:
    """Return an entry that connects to the service of *new*, with the other keys of *old*."""
    replaced = {client.command, "args", client.environment, "type", *_TOKEN_KEYS}
    own = {key: value for key, value in old.items() if key not in replaced}
    entry = {**new, **own, **new}  # in this order, so that a repetition changes nothing
    # An old token would take the place of a sign-in.
    own_headers = {
        name: value
        for name, value in _table(old, _HEADERS).items()
        if name.casefold() != "authorization"
    }
    if headers := own_headers | _table(new, _HEADERS):
        entry[_HEADERS] = headers
    return entry


def without_server(client: Client, file: Path, text: str, name: str, url: str = "") -> str:
    """Return the text of a client's file without the entry *name*.

    Args:
        url: The address of the service, if the entry has one.

    Raises:
        ClientFileError: The file is malformed, or the entry is another server's.
    """
    entry = servers(client, file, text).get(name)
    if entry is None:
        return text
    address = entry.get(client.address)
    if not is_ours(client, entry) and (not url or address != url):
        advice = "; repeat --url to remove a service" if isinstance(address, str) else ""
        reason = f"{name!r} does not start standards-mcp{advice}; left as it is"
        raise ClientFileError(f"{file}: {reason}")
    path = (*client.table, name)
    return _with_format(file, lambda form: form.remove(text, path))


def snippet(client: Client, file: Path, name: str, entry: Entry) -> str:
    """Return the text of a file with this entry only."""
    return _FORMATS[file.suffix].write("", (*client.table, name), entry)


# A file may be one line, so a diff of its lines would show all of it, with secrets of other
# programs.
def change_of_entry(client: Client, file: Path, edit: Edit, name: str) -> str:
    """Return the change of an entry as a diff, without other servers and secrets."""

    def masked_entry(text: str) -> str:
        entry = servers(client, file, text).get(name)
        return snippet(client, file, name, _masked(entry)) if entry else ""

    return diff(file, masked_entry(edit.before), masked_entry(edit.after))


def _masked(value: object, *, is_secret: bool = False) -> Any:
    if not isinstance(value, Mapping):
        return MASK if is_secret else value
    items = cast("Entry", value).items()
    return {key: _masked(item, is_secret=is_secret or looks_secret(key)) for key, item in items}


def _entries(client: Client, file: Path, text: str) -> Mapping[str, object]:
    table: Mapping[str, Any] = {"": _with_format(file, lambda form: form.read(text))}
    for key in ("", *client.table):
        inner: object = table.get(key)
        if inner is None:
            return {}
        if not isinstance(inner, Mapping):
            where = ".".join(client.table)
            raise ClientFileError(f"{file}: {where} is not a table of servers; correct it")
        table = cast("Mapping[str, Any]", inner)
    return table


def _with_format(file: Path, use: Callable[[_Format], _T]) -> _T:
    form = _FORMATS[file.suffix]
    try:
        return use(form)
    except Exception as exc:  # noqa: BLE001  - each parser has errors of its own
        reason = " ".join(str(exc).split())
        message = f"{file} cannot be edited as {form.name}: {reason}; correct it first"
        raise ClientFileError(message) from None


def _read_toml(text: str) -> Any:
    import tomlkit

    return tomlkit.parse(text.removeprefix(BYTE_ORDER_MARK)).unwrap()


@keeping_style
def _edit_toml(text: str, path: Sequence[str], value: Any = None) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    _edit(document, path, value, lambda: tomlkit.table(is_super_table=True))
    return tomlkit.dumps(document)


def _load_yaml(text: str) -> tuple[Any, Any]:
    from ruamel.yaml import YAML, util

    yaml: Any = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    guess: Any = cast("Any", util).load_yaml_guess_indent
    _, sequence, offset = guess(text, yaml=YAML()) if text else (None, None, None)
    yaml.indent(mapping=2, sequence=sequence or 2, offset=offset or 0)
    return yaml, yaml.load(text)


@keeping_style
def _edit_yaml(text: str, path: Sequence[str], value: Any = None) -> str:
    yaml, loaded = _load_yaml(text)
    document: Any = {} if loaded is None else loaded
    _edit(document, path, value, dict)
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _edit(document: Any, path: Sequence[str], value: Any, new_table: Callable[[], Any]) -> None:
    """Set a value of a parsed document, or remove its key if *value* is None."""
    for key in path[:-1]:
        if document.get(key) is None:
            document[key] = new_table()
        document = document[key]
    if value is None:
        document.pop(path[-1], None)
    else:
        document[path[-1]] = value


_FORMATS: Final = {
    ".json": _Format("JSON", jsonc.loads, jsonc.set_value, jsonc.remove_value),
    ".toml": _Format("TOML", _read_toml, _edit_toml, _edit_toml),
    ".yaml": _Format("YAML", lambda text: _load_yaml(text)[1], _edit_yaml, _edit_yaml),
}
