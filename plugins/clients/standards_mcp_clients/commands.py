"""``standards-mcp install``, ``uninstall`` and ``clients list``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from standards_mcp.commands import (
    ServerCommand,
    ServerCommands,
    ask,
    examples,
    json_option,
    print_json,
    print_table,
    print_text,
)
from standards_mcp.files import Edit, describe_decoding, edit_text

from .clients import CLIENTS, DEFAULT_NAME, IMPORTING, Client, Entry, Launch, System
from .connect import service_address, token_of, token_option
from .entries import (
    IMPORTED_FILE,
    ClientFileError,
    Options,
    change_of_entry,
    is_ours,
    lost_options,
    lost_settings,
    missing_variables,
    options_in_force,
    origin_of_service,
    read_servers,
    servers,
    snippet,
    with_server,
    with_service,
    without_server,
)

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,30}")
_CLIENTS_BY_KEY: Final = {client.key: client for client in (*CLIENTS, *IMPORTING)}


def _client_of(_: click.Context, __: click.Parameter, key: str) -> Client:
    return _CLIENTS_BY_KEY[key]


_client = click.argument(
    "client", type=click.Choice(list(_CLIENTS_BY_KEY)), metavar="CLIENT", callback=_client_of
)
_name = click.option(
    "--name", default=DEFAULT_NAME, show_default=True, help="Name of the server in the client."
)
_project = click.option(
    "--project",
    is_flag=True,
    help="Use the project's configuration in this folder, not the user's own.",
)
_url = click.option(
    "--url",
    callback=service_address,
    metavar="URL",
    help="The address of a service over HTTP, in place of a server on this machine.",
)
_dry_run = click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
_yes = click.option(
    "--yes", is_flag=True, help="Skip the confirmation when the entry loses options."
)


@click.command(
    epilog=examples(
        "install claude-desktop",
        "install cursor --project",
        "install vscode --env PINECONE_API_KEY=... --dry-run",
        "install claude-desktop --env PINECONE_API_KEY",
        "--config school.toml install claude-code --name school",
        "install cursor --url https://mcp.example.org --token-env TOKEN",
        "install claude-code --url https://mcp.example.org --login",
    )
)
@_client
@_name
@_project
@click.option(
    "--env",
    "pairs",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="An environment variable that the client sets for the server; by default with its "
    "current value. May be repeated.",
)
@click.option("--profile", metavar="NAME", help="Use [profiles.NAME] of the configuration.")
@_url
@token_option
@click.option("--login", is_flag=True, help="With --url: the user signs in with the client.")
@click.option("--print", "only_print", is_flag=True, help="Print the entry, to paste it yourself.")
@_dry_run
@_yes
@click.pass_obj
def install(program: ServerCommands, /, client: Client, name: str, **options: Any) -> None:
    """Add this server to CLIENT; `clients list` names them.

    The client starts this installation with the current configuration file. The rest of the
    client's file stays unchanged, and a copy of the old file is kept. An entry that would lose its
    configuration, its profile or a setting needs confirmation. A client without a file, such as
    Cherry Studio, imports the printed entry in its own settings.

    With --url the client connects to a service. If the client can connect by itself, its entry
    names only the variable: set it where the client runs. Otherwise the entry starts
    `standards-mcp connect` and contains the token.
    """
    if not _NAME.fullmatch(name):
        raise click.UsageError(
            f"--name {name!r}: use letters, digits, '-' and '_', at most 30 of them"
        )
    make = _service_entry if options["url"] else _local_entry
    new = make(client, name, program, options)
    if client.settings is None and not options["project"]:
        if not options["only_print"]:
            print_text(f"Nothing was changed. {client.after} Paste this:", err=True)
        _print_entry(client, IMPORTED_FILE, name, new)
        return
    file = _file(client, project=options["project"])
    if options["only_print"]:
        _print_entry(client, file, name, new)
        return
    yes: bool = options["yes"] or options["dry_run"]
    entry = _add(client, file, name, new, yes=yes, dry_run=options["dry_run"])
    if options["login"]:
        print_text(client.sign_in)
    _warn_of_missing(client, entry, new.variables)


@click.command(epilog=examples("uninstall claude-desktop", "uninstall cursor --project"))
@_client
@_name
@_project
@_url
@_dry_run
@click.pass_context
def uninstall(
    ctx: click.Context, /, client: Client, name: str, *, project: bool, url: str, dry_run: bool
) -> None:
    """Remove this server from CLIENT.

    Exit code 1 if CLIENT does not have it.
    """
    file = _file(client, project=project)
    edit = _edit(file, lambda text: without_server(client, file, text, name, url), dry_run=dry_run)
    if not edit.changes:
        print_text(f"{client.title} has no server {name!r} in {file}", err=True)
        ctx.exit(1)
    if dry_run:
        _print_change(client, file, edit, name)
        return
    _print_file(file, edit)
    print_text(f"Removed {name!r} from {client.title}. Start it again if it is open.")


@click.group()
def clients() -> None:
    """Show the MCP clients that this server can be added to."""


@clients.command("list", epilog=examples("clients list", "clients list --json"))
@json_option
def list_clients(*, as_json: bool) -> None:
    """List the clients, and show which ones have this server in the user's configuration."""
    system = System.current()
    rows = [_as_data(client, system) for client in (*CLIENTS, *IMPORTING)]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print_table([(f"{row['client']:<14}", row["title"], _state(row))])
        print_text(f"  {row['file'] or 'Import the output of `install --print` in its settings.'}")


def _as_data(client: Client, system: System) -> dict[str, Any]:
    data: dict[str, Any] = {"client": client.key, "title": client.title, "file": None}
    if client.settings is None:
        return data | {"present": None, "names": [], "services": {}, "error": ""}
    file = client.file(system)
    data["file"] = str(file)
    try:
        entries = read_servers(client, file)
    except ClientFileError as exc:
        return data | {"present": True, "names": [], "services": {}, "error": str(exc)}
    names = [name for name, entry in entries.items() if is_ours(client, entry)]
    origins = {name: origin_of_service(client, entry) for name, entry in entries.items()}
    services = {name: origin for name, origin in origins.items() if origin and name not in names}
    present = file.parent.is_dir()
    return data | {"present": present, "names": names, "services": services, "error": ""}


def _state(data: dict[str, Any]) -> str:
    if data["error"]:
        return str(data["error"])
    states = ["added as " + ", ".join(map(repr, data["names"]))] if data["names"] else []
    # Which of the services are ours, their entries do not say.
    states += [f"{name!r} connects to {origin}" for name, origin in data["services"].items()]
    if states:
        return "; ".join(states)
    if data["present"] is None:
        return "unknown: its servers are in its own settings"
    return "not added" if data["present"] else "not found on this machine"


def _launch(server: ServerCommand, pairs: Iterable[str]) -> Launch:
    current = {**os.environ, **server.variables}
    variables: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key.isidentifier():
            raise click.UsageError("--env: write KEY=VALUE, for example PINECONE_API_KEY=...")
        if not equals and key not in current:
            raise click.UsageError(f"--env {key}: it is not set here; write KEY=VALUE")
        variables[key] = value if equals else current[key]
    command, *args = server.program
    return Launch(command, (*args, *server.options), variables)


@dataclass(frozen=True, slots=True)
class _NewEntry:
    """An entry to add.

    Attributes:
        write: Returns the text of a client's file with the entry, from the file and its text.
        variables: Environment variables that configure the server here and may be missing in the
            entry.
    """

    entry: Entry
    write: Callable[[Path, str], str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def _local_entry(
    client: Client, name: str, program: ServerCommands, options: Mapping[str, Any]
) -> _NewEntry:
    """Return the entry that starts this server on this machine."""
    if options["token_env"] or options["login"]:
        raise click.UsageError("--token-env and --login: use them together with --url")
    server = program.server_command(options["profile"])
    launch = _launch(server, options["pairs"])

    def write(file: Path, text: str) -> str:
        return with_server(client, file, text, name, launch)

    return _NewEntry(client.entry(name, launch), write, server.variables)


def _service_entry(
    client: Client, name: str, program: ServerCommands, options: Mapping[str, Any]
) -> _NewEntry:
    """Return the entry for a service: the client's own kind, or one that starts `connect`."""
    url, variable, login = options["url"], options["token_env"] or "", options["login"]
    if options["profile"] or options["pairs"]:
        raise click.UsageError("--profile and --env: leave them out; the service has its own")
    if login and variable:
        raise click.UsageError("--login: leave it out, since --token-env names a token")
    entry = client.service(name, url, variable) if client.service else None
    if entry is None:
        if login:
            raise click.UsageError(f"--login: {client.sign_in}")
        command, *args = program.server_command().program
        words = (*args, "connect", url, *(("--token-env", variable) if variable else ()))
        variables = {variable: token_of(variable)} if variable else {}
        entry = client.entry(name, Launch(command, words, variables))
    return _NewEntry(entry, lambda file, text: with_service(client, file, text, name, entry))


def _add(
    client: Client, file: Path, name: str, new: _NewEntry, *, yes: bool, dry_run: bool
) -> Entry:
    """Write the entry into a client's file, report it, and return it."""

    def change(text: str) -> str:
        after = new.write(file, text)
        for effect in _losses(client, file, name, text, after):
            if yes:
                print_text(effect)
            else:
                ask(f"{effect}.")
        return after

    edit = _edit(file, change, dry_run=dry_run)
    if not edit.changes:
        print_text(f"{client.title} already has it: {name!r} in {file}")
    elif dry_run:
        _print_change(client, file, edit, name)
    else:
        _print_file(file, edit)
        print_text(f"Added {name!r} to {client.title}. {client.after}")
    return servers(client, file, edit.after)[name]


def _print_entry(client: Client, file: Path, name: str, new: _NewEntry) -> None:
    click.echo(snippet(client, file, name, new.entry), nl=False)
    _warn_of_missing(client, new.entry, new.variables)


def _losses(client: Client, file: Path, name: str, before: str, after: str) -> list[str]:
    """Return what the change of a client's file takes from an entry, in sentences."""
    effects: list[str] = []
    if lost := lost_options(*(_options(client, file, each, name) for each in (before, after))):
        options = ", ".join(lost)
        effects.append(f"{name!r} loses {options}, so the server exposes all that they excluded")
    old, new = (servers(client, file, text).get(name, {}) for text in (before, after))
    if lost := lost_settings(client, old, new):
        effects.append(f"{name!r} loses {', '.join(lost)}")
    return effects


def _options(client: Client, file: Path, text: str, name: str) -> Options:
    """Return the options of an entry in a client's file, or no options without the entry."""
    entry = servers(client, file, text).get(name)
    return options_in_force(client, entry) if entry else ()


def _file(client: Client, *, project: bool) -> Path:
    try:
        return client.file(System.current(), project=project)
    except LookupError as exc:
        raise click.UsageError(str(exc)) from None


def _edit(file: Path, change: Callable[[str], str], *, dry_run: bool) -> Edit:
    try:
        return edit_text(file, change, dry_run=dry_run)
    except UnicodeDecodeError as exc:
        raise ClientFileError(f"{file}: {describe_decoding(exc)}; left as it is") from None
    except OSError as exc:
        raise ClientFileError(f"{file} cannot be changed: {exc}; left as it is") from None


def _warn_of_missing(client: Client, entry: Entry, variables: Iterable[str]) -> None:
    if missing := missing_variables(client, entry, variables):
        options = " ".join(f"--env {name}" for name in missing)
        print_text(
            f"{client.title} will start the server without these variables of .env or the "
            f"environment: {', '.join(missing)}. To pass them on, add {options}; or do nothing, if "
            "the server needs none of them.",
            err=True,
        )


def _print_change(client: Client, file: Path, edit: Edit, name: str) -> None:
    print_text(change_of_entry(client, file, edit, name) or "Only secrets change.")


def _print_file(file: Path, edit: Edit) -> None:
    print_text(f"{file}" + (f" (the old file is {edit.backup.name})" if edit.backup else " (new)"))
