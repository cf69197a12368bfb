"""Adds servers to clients' configuration files and takes them out again, leaving all else alone.

The caller reads and writes; all but `own_servers` map text to text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any, Final, TypeAlias, TypeVar, cast

from standards_mcp._utils.files import read_text
from standards_mcp._utils.secrets import MASK, secret_paths
from standards_mcp._utils.text import BYTE_ORDER_MARK, describe_decoding, keeping_style
from standards_mcp.errors import ClientFileError

from . import jsonc
from .known import Client, Entry, Launch

_RUNNERS: Final = frozenset({"pipx", "uv", "uvx"})

_T = TypeVar("_T")

_Change: TypeAlias = Callable[[Any, Callable[[], Any]], None]
"""Changes a parsed document, given a function that makes an empty table for it."""

_PACKAGE: Final = re.compile(r"standards-mcp($|[@=\[])")


@dataclass(frozen=True, slots=True)
class _Format:
    """How to read a text, set a value in it, and take one out."""

    name: str
    read: Callable[[str], Any]
    write: Callable[[str, Sequence[str], Any], str]
    remove: Callable[[str, Sequence[str]], str]


def own_servers(client: Client, file: Path) -> dict[str, Entry]:
    """Return the entries of a client's file that start this server, by name.

    Raises:
        ClientFileError: The file cannot be read, or is malformed.
    """
    try:
        text = read_text(file) or ""
    except UnicodeDecodeError as exc:
        raise ClientFileError(f"{file}: {describe_decoding(exc)}") from None
    except OSError as exc:
        raise ClientFileError(f"{file} cannot be read: {exc}; correct it") from None
    entries = servers(client, file, text).items()
    return {name: entry for name, entry in entries if is_ours(client, entry)}


def servers(client: Client, file: Path, text: str) -> dict[str, Entry]:
    """Return the entries of a client's file, by name.

    Raises:
        ClientFileError: The file is malformed.
    """
    entries = _entries(client, file, text).items()
    return {name: dict(cast("Entry", each)) for name, each in entries if isinstance(each, Mapping)}


def is_ours(client: Client, entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry starts this server."""
    command, *args = client.command_line(entry)
    program = PureWindowsPath(command).name.removesuffix(".exe")  # it knows both kinds of slashes
    if program == "standards-mcp" or args[:2] == ["-m", "standards_mcp"]:
        return True
    return program in _RUNNERS and any(_PACKAGE.match(arg) for arg in args)


def variables_of(client: Client, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment variables that an entry gives to its server."""
    found = entry.get(client.environment)
    return dict(cast("dict[str, Any]", found)) if isinstance(found, dict) else {}


def missing_variables(
    client: Client, entry: Mapping[str, Any], variables: Iterable[str]
) -> list[str]:
    """Return those of *variables* that an entry does not give: clients pass on next to none."""
    given = {name.upper() for name in variables_of(client, entry)}
    return sorted({*variables} - given)


def with_server(client: Client, file: Path, text: str, name: str, launch: Launch) -> str:
    """Return the text of a client's file with this server under *name*.

    What an entry of that name says beside the command stays, its environment variables too.

    Raises:
        ClientFileError: The file is malformed, or another server has the name.
    """
    found = _entries(client, file, text).get(name)
    if not isinstance(found, Mapping | None):
        raise ClientFileError(f"{file}: {name!r} holds no server there; correct it")
    old = cast("Entry", found or {})
    if old and not is_ours(client, old):
        command = client.command_line(old)[0]  # its arguments may hold keys
        raise ClientFileError(
            f"{file}: {name!r} is another server there ({command}); choose a name with --name"
        )
    new = client.entry(name, launch)
    entry = {**new, **old, **{key: new[key] for key in (client.command, "args")}}
    if variables := variables_of(client, old) | variables_of(client, new):
        entry[client.environment] = variables
    path = (*client.table, name)
    return _using(file, lambda form: form.write(text, path, entry))


def without_server(client: Client, file: Path, text: str, name: str) -> str:
    """Return the text of a client's file without the entry *name*.

    Raises:
        ClientFileError: The file is malformed, or the entry is another server's.
    """
    entry = servers(client, file, text).get(name)
    if entry is None:
        return text
    if not is_ours(client, entry):
        raise ClientFileError(f"{file}: {name!r} does not start standards-mcp; left as it is")
    path = (*client.table, name)
    return _using(file, lambda form: form.remove(text, path))


def without_secrets(client: Client, file: Path, text: str) -> str:
    """Return the text of a client's file for showing, since a file of one line is shown whole.

    Other servers are masked, and so are all values under keys that look like secrets.

    Raises:
        ClientFileError: The file is malformed.
    """
    entries = servers(client, file, text).items()
    others = [(*client.table, name) for name, entry in entries if not is_ours(client, entry)]

    def masked(form: _Format) -> str:
        shown = text
        for path in others:
            shown = form.write(shown, path, MASK)
        for path in secret_paths(form.read(shown)):
            shown = form.write(shown, path, MASK)
        return shown

    return _using(file, masked)


def snippet(client: Client, file: Path, name: str, launch: Launch) -> str:
    """Return an entry as the text of a file that holds nothing else."""
    form = _FORMATS[file.suffix]
    return form.write("", (*client.table, name), client.entry(name, launch))


def _entries(client: Client, file: Path, text: str) -> Mapping[str, object]:
    found: Mapping[str, Any] = {"": _using(file, lambda form: form.read(text))}
    for key in ("", *client.table):
        inner: object = found.get(key)
        if inner is None:
            return {}
        if not isinstance(inner, Mapping):
            where = ".".join(client.table)
            raise ClientFileError(f"{file}: {where} does not hold servers; correct it")
        found = cast("Mapping[str, Any]", inner)
    return found


def _using(file: Path, use: Callable[[_Format], _T]) -> _T:
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
def _edit_toml(text: str, change: _Change) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    change(document, lambda: tomlkit.table(is_super_table=True))
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
def _edit_yaml(text: str, change: _Change) -> str:
    yaml, loaded = _load_yaml(text)
    document: Any = {} if loaded is None else loaded
    change(document, dict)
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _format_of(
    name: str, read: Callable[[str], Any], edit: Callable[[str, _Change], str]
) -> _Format:
    """Return the format of a parser that keeps comments and gives a document to be changed."""

    def write(text: str, path: Sequence[str], value: Any) -> str:
        def change(document: Any, new_table: Callable[[], Any]) -> None:
            for key in path[:-1]:
                if document.get(key) is None:
                    document[key] = new_table()
                document = document[key]
            document[path[-1]] = value

        return edit(text, change)

    def remove(text: str, path: Sequence[str]) -> str:
        def change(document: Any, _: object) -> None:
            for key in path[:-1]:
                document = document.get(key) or {}
            document.pop(path[-1], None)

        return edit(text, change)

    return _Format(name, read, write, remove)


_FORMATS: Final = {
    ".json": _Format("JSON", jsonc.loads, jsonc.set_value, jsonc.remove_value),
    ".toml": _format_of("TOML", _read_toml, _edit_toml),
    ".yaml": _format_of("YAML", lambda text: _load_yaml(text)[1], _edit_yaml),
}
