"""Commands about what the database holds."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Final

import click

from standards_mcp import InvalidInputError, NotFoundError
from standards_mcp.commands import examples, json_option, print_result
from standards_mcp_career.importing import ImportAnswer, import_files
from standards_mcp_career.service import open_career
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.store.database import Store
from standards_mcp_career.store.migrating import LATEST, migrate

from .kinds import KINDS
from .showing import opened

_KIND: Final = click.argument("kind", type=click.Choice(list(KINDS)))


def import_command(settings: CareerSettings) -> click.Command:
    """Return the command ``import``."""

    @click.command(
        "import",
        epilog=examples(
            "career import atoms.yaml --dry-run", "career import atoms.yaml positions.json"
        ),
    )
    @click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
    @click.option("--dry-run", is_flag=True, help="Only tell what would be imported.")
    @json_option
    @click.pass_context
    def import_records(
        context: click.Context, files: tuple[Path, ...], *, dry_run: bool, as_json: bool
    ) -> None:
        """Import atoms, opportunities and interactions from FILES of JSON or YAML."""
        _check_kept(settings)
        with closing(open_career(settings)) as career:
            answer = import_files(career.store, files, settings.tokens, dry_run=dry_run)
        print_result(answer, lambda: _imported(answer), as_json=as_json)
        context.exit(int(bool(answer["errors"])))

    return import_records


def list_command(settings: CareerSettings) -> click.Command:
    """Return the command ``list``."""

    @click.command("list", epilog=examples("career list atoms", "career list decisions --json"))
    @_KIND
    @json_option
    @click.pass_context
    def list_records(context: click.Context, kind: str, *, as_json: bool) -> None:
        """List the records of KIND."""
        with opened(settings) as career, career.store.reading() as connection:
            rows = KINDS[kind].rows(connection)
        shown = "\n".join(map(KINDS[kind].line, rows)) or f"There are no {kind}."
        print_result({kind: rows}, lambda: shown, as_json=as_json)
        context.exit(int(not rows))

    return list_records


def show_command(settings: CareerSettings) -> click.Command:
    """Return the command ``show``."""

    @click.command("show", epilog=examples("career show atoms ID", "career show runs ID --json"))
    @_KIND
    @click.argument("identifier", metavar="ID")
    @json_option
    def show_record(kind: str, identifier: str, *, as_json: bool) -> None:
        """Show the record of KIND with this ID."""
        with opened(settings) as career, career.store.reading() as connection:
            row = KINDS[kind].row(connection, identifier)
        if row is None:
            raise NotFoundError(f"{KINDS[kind].singular} not found: {identifier}")
        shown = "\n".join(f"{name}: {_text(value)}" for name, value in row.items())
        print_result(row, lambda: shown, as_json=as_json)

    return show_record


def migrate_command(settings: CareerSettings) -> click.Command:
    """Return the command ``migrate``."""

    @click.command("migrate")
    @click.option("--to", type=click.IntRange(1, LATEST), default=LATEST, help="The version.")
    @json_option
    def migrate_database(to: int, *, as_json: bool) -> None:
        """Bring the database to the newest version, or to another."""
        _check_kept(settings)
        with closing(Store(settings.db)) as store:
            done = migrate(store, to)
        answer = {"from": done.before, "to": done.after}
        print_result(answer, lambda: f"version {done.before} to {done.after}", as_json=as_json)

    return migrate_database


def _check_kept(settings: CareerSettings) -> None:
    if settings.db is None:
        raise InvalidInputError(
            "Nothing would be kept: there is no database. "
            "Name its file, for example by --set plugins.career.db=~/career.db"
        )


def _imported(answer: ImportAnswer) -> str:
    if answer["errors"]:
        return "\n".join(f"{each['where']}: {each['message']}" for each in answer["errors"])
    return (
        f"{answer['atoms']} atoms, {answer['opportunities']} opportunities, "
        f"{answer['interactions']} interactions"
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
