"""Commands ``import``, ``list``, ``show`` and ``migrate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

import click
from sqlalchemy import Connection

from standards_mcp import InvalidInputError, NotFoundError, ToolCaller
from standards_mcp.commands import examples, json_option, print_answer, print_result
from standards_mcp_career.importing import ImportAnswer, import_files
from standards_mcp_career.service import Career, open_career
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.store import runs
from standards_mcp_career.store.database import Store
from standards_mcp_career.store.migrations import LATEST, migrate
from standards_mcp_career.store.repositories import (
    all_atoms,
    all_decisions,
    all_interactions,
    all_opportunities,
    all_resumes,
    get_atom,
    get_decision,
    get_interaction,
    get_opportunity,
    get_resume,
)
from standards_mcp_career.transitions import STATES

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of records.

    Attributes:
        singular: The capitalised name of one record.
        line: Formats one record as a line.
    """

    singular: str
    read_all: Callable[[Connection], Sequence[Any]]
    get: Callable[[Connection, str], Any]
    line: Callable[[Row], str]

    def rows(self, connection: Connection) -> list[Row]:
        """Return all records without long texts."""
        rows = [_row(record) for record in self.read_all(connection)]
        for row in rows:
            row.pop("markdown", None)
        return rows

    def row(self, connection: Connection, identifier: str) -> Row | None:
        """Return one record with all fields."""
        record = self.get(connection, identifier)
        if record is None:
            return None
        return {**_row(record), **_entries(connection, record)}


def _atom(row: Row) -> str:
    verified = "" if row["verified"] else " (not verified)"
    return f"{row['atom_id']}: {row['title'] or row['claim']}{verified}"


def _interaction(row: Row) -> str:
    state = dict(enumerate(STATES)).get(row["state"], row["state"])
    return f"{row['interaction_id']}: {state}, {row['opportunity_id']}"


def _entries(connection: Connection, record: object) -> Row:
    if not isinstance(record, runs.Run):
        return {}
    entries = [asdict(entry) for entry in runs.entries(connection, record.run_id)]
    names = ("artifact_type", "artifact_id", "source_hash", "vector_hash", "stale")
    return {"entries": [{name: entry[name] for name in names} for entry in entries]}


def _row(record: Any) -> Row:
    return dict(cast("Row", record)) if isinstance(record, dict) else asdict(record)


KINDS: Final[Mapping[str, Kind]] = {
    "atoms": Kind("Atom", all_atoms, get_atom, _atom),
    "opportunities": Kind(
        "Opportunity",
        all_opportunities,
        get_opportunity,
        lambda row: f"{row['opportunity_id']}: {row['role_title']}, {row['company']}",
    ),
    "interactions": Kind(
        "Interaction",
        all_interactions,
        get_interaction,
        _interaction,
    ),
    "resumes": Kind(
        "Resume",
        all_resumes,
        get_resume,
        lambda row: f"{row['resume_id']}: {row['created_at']}",
    ),
    "runs": Kind("Run", runs.read_all, runs.get, lambda row: f"{row['run_id']}: {row['status']}"),
    "decisions": Kind(
        "Decision",
        all_decisions,
        get_decision,
        lambda row: f"{row['decision_id']}: {row['opportunity_id']}",
    ),
}


@contextmanager
def opened(settings: CareerSettings) -> Generator[Career]:
    """Open an existing database, for a command that only reads.

    Raises:
        InvalidInputError: The database file does not exist; opening it would create one.
    """
    if settings.db is not None and not settings.db.exists() and not settings.load:
        raise InvalidInputError(
            f"The database {settings.db} does not exist. Check plugins.career.db, "
            "or import records."
        )
    with closing(open_career(settings)) as career:
        yield career


def call_tool(
    context: click.Context,
    name: str,
    arguments: dict[str, Any],
    shown: Callable[[dict[str, Any]], str],
    *,
    as_json: bool,
) -> None:
    """Call a tool, print its answer, and end with 1 if it has failed."""
    call: ToolCaller = context.obj
    answer = call(name, arguments)
    print_answer(answer, shown, as_json=as_json)
    context.exit(int(answer.is_error))


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
    @click.option("--dry-run", is_flag=True, help="Report without importing.")
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
            "No database is configured, so nothing would be kept. "
            "Name its file, for example by --set plugins.career.db=~/career.db"
        )


def _imported(answer: ImportAnswer) -> str:
    if answer["errors"]:
        return "\n".join(f"{error['where']}: {error['message']}" for error in answer["errors"])
    return (
        f"{answer['atoms']} atoms, {answer['opportunities']} opportunities, "
        f"{answer['interactions']} interactions"
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
