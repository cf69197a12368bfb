"""Commands about stored data: ``import``, ``list``, ``show``, ``migrate`` and ``audit``."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any, Final, TypeAlias, cast

import click

from standards_mcp import InvalidInputError, NotFoundError
from standards_mcp.commands import Report, examples, reports
from standards_mcp_career.audit import Verification, export_line, read_lines, verify_all
from standards_mcp_career.database import Store
from standards_mcp_career.importing import ImportAnswer, import_files
from standards_mcp_career.indexing import all_runs, get_run
from standards_mcp_career.interactions import STATES
from standards_mcp_career.matching import all_decisions, get_decision
from standards_mcp_career.records import (
    all_atoms,
    all_interactions,
    all_opportunities,
    get_atom,
    get_interaction,
    get_opportunity,
)
from standards_mcp_career.resumes import all_resumes, get_resume
from standards_mcp_career.schema import LATEST, migrate
from standards_mcp_career.service import Career, open_career
from standards_mcp_career.settings import CareerSettings

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of records.

    Attributes:
        singular: The name of the kind in the singular, for messages.
        line: Formats one record as a line.
    """

    singular: str
    read_all: Callable[[Connection], Sequence[Any]]
    get: Callable[[Connection, str], Any]
    line: Callable[[Row], str]


def _atom_line(row: Row) -> str:
    verified = "" if row["verified"] else " (not verified)"
    return f"{row['atom_id']}: {row['title'] or row['claim']}{verified}"


def _interaction_line(row: Row) -> str:
    state = dict(enumerate(STATES)).get(row["state"], row["state"])
    return f"{row['interaction_id']}: {state}, {row['opportunity_id']}"


KINDS: Final[Mapping[str, Kind]] = {
    "atoms": Kind("Atom", all_atoms, get_atom, _atom_line),
    "opportunities": Kind(
        "Opportunity",
        all_opportunities,
        get_opportunity,
        lambda row: f"{row['opportunity_id']}: {row['role_title']}, {row['company']}",
    ),
    "interactions": Kind("Interaction", all_interactions, get_interaction, _interaction_line),
    "resumes": Kind(
        "Resume", all_resumes, get_resume, lambda row: f"{row['resume_id']}: {row['created_at']}"
    ),
    "runs": Kind("Run", all_runs, get_run, lambda row: f"{row['run_id']}: {row['status']}"),
    "decisions": Kind(
        "Decision",
        all_decisions,
        get_decision,
        lambda row: f"{row['decision_id']}: {row['opportunity_id']}",
    ),
}
_kind_argument: Final = click.argument("kind", type=click.Choice(list(KINDS)))


def _row_of(record: Any) -> Row:
    return dict(cast("Row", record)) if isinstance(record, dict) else asdict(record)


@contextmanager
def open_existing(settings: CareerSettings) -> Generator[Career]:
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


def commands(settings: CareerSettings) -> list[click.Command]:
    """Return the commands."""

    @click.command(
        "import",
        epilog=examples(
            "career import atoms.yaml --dry-run", "career import atoms.yaml positions.json"
        ),
    )
    @click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
    @click.option("--dry-run", is_flag=True, help="Report without importing.")
    @reports
    def import_records(files: tuple[Path, ...], *, dry_run: bool) -> Report:
        """Import atoms, opportunities and interactions from FILES of JSON or YAML."""
        _require_database(settings)
        with closing(open_career(settings)) as career:
            answer = import_files(career.store, files, settings.tokens, dry_run=dry_run)
        return Report(answer, lambda: _import_text(answer), int(bool(answer["errors"])))

    @click.command("list", epilog=examples("career list atoms", "career list decisions --json"))
    @_kind_argument
    @reports
    def list_records(kind: str) -> Report:
        """List the records of KIND."""
        with open_existing(settings) as career, career.store.reading() as connection:
            rows = [_row_of(record) for record in KINDS[kind].read_all(connection)]
        for row in rows:
            row.pop("markdown", None)  # the text of a resume
        text = "\n".join(map(KINDS[kind].line, rows)) or f"There are no {kind}."
        return Report({kind: rows}, lambda: text, int(not rows))

    @click.command("show", epilog=examples("career show atoms ID", "career show runs ID --json"))
    @_kind_argument
    @click.argument("identifier", metavar="ID")
    @reports
    def show_record(kind: str, identifier: str) -> Report:
        """Show the record of KIND with this ID."""
        with open_existing(settings) as career, career.store.reading() as connection:
            record = KINDS[kind].get(connection, identifier)
        if record is None:
            raise NotFoundError(f"{KINDS[kind].singular} not found: {identifier}")
        row = _row_of(record)
        return Report(
            row, lambda: "\n".join(f"{name}: {_value_text(value)}" for name, value in row.items())
        )

    @click.command("migrate")
    @click.option("--to", type=click.IntRange(1, LATEST), default=LATEST, help="Target version.")
    @reports
    def migrate_database(to: int) -> Report:
        """Migrate the database to the newest version, or to the version of --to."""
        _require_database(settings)
        with closing(Store(settings.db)) as store:
            before, after = migrate(store, to)
        answer = {"from": before, "to": after}
        return Report(answer, lambda: f"version {before} to {after}")

    return [import_records, list_records, show_record, migrate_database, _audit_group(settings)]


def _require_database(settings: CareerSettings) -> None:
    if settings.db is None:
        raise InvalidInputError(
            "No database is configured, so nothing would be kept. "
            "Name its file, for example by --set plugins.career.db=~/career.db"
        )


def _import_text(answer: ImportAnswer) -> str:
    if answer["errors"]:
        return "\n".join(f"{error['where']}: {error['message']}" for error in answer["errors"])
    return (
        f"{answer['atoms']} atoms, {answer['opportunities']} opportunities, "
        f"{answer['interactions']} interactions"
    )


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_ALL_EVENTS: Final = 2**31


def _audit_group(settings: CareerSettings) -> click.Group:
    """Return the commands ``audit show``, ``audit export`` and ``audit verify``."""
    group = click.Group("audit", help="Read, export and verify the audit log.")

    @group.command("show", epilog=examples("career audit show TRACE --json"))
    @click.argument("trace")
    @reports
    def show(trace: str) -> Report:
        """Show the events of TRACE."""
        with open_existing(settings) as career:
            answer = career.audit.page(trace, 0, _ALL_EVENTS)
        lines = (
            f"{event['created_at']} {event['event_type']} {event['payload']}"
            for event in answer["events"]
        )
        text = "\n".join(lines) or f"Trace {trace} has no events."
        return Report(answer, lambda: text, int(not answer["total"]))

    @group.command("export", epilog=examples("career audit export audit.jsonl"))
    @click.argument("file", type=click.Path(dir_okay=False), default="-")
    def export(file: str) -> None:
        """Write all events to FILE, or to stdout, as JSON Lines."""
        with open_existing(settings) as career, click.open_file(file, "wb") as out:
            for event in career.audit.events():
                out.write(export_line(event).encode() + b"\n")

    @group.command(
        "verify", epilog=examples("career audit verify", "career audit verify --file audit.jsonl")
    )
    @click.argument("trace", required=False)
    @click.option(
        "--file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="An export, in place of the database.",
    )
    @reports
    def verify(trace: str | None, file: Path | None) -> Report:
        """Verify the events of TRACE, or all events."""
        if trace is not None and file is not None:
            raise click.UsageError("Give TRACE or --file, not both.")
        if file is not None:
            answer = _verify_file(file)
        else:
            with open_existing(settings) as career:
                answer = career.audit.verify(trace)
        code = int(not answer["valid"] or not answer["traces"])
        return Report(answer, lambda: _verification_text(answer), code)

    return group


def _verify_file(file: Path) -> Verification:
    with file.open("rb") as lines:
        try:
            return verify_all(read_lines(lines))
        except InvalidInputError as error:
            raise InvalidInputError(f"{file}: {error}") from error


def _verification_text(answer: Verification) -> str:
    traces = answer["traces"]
    if not traces:
        return "There are no events."
    lines = [f"{trace['trace_id']}: {trace['error'] or 'valid'}" for trace in traces]
    summary = f"{len(traces)} traces, {'all valid' if answer['valid'] else 'NOT VALID'}"
    return "\n".join([*lines, summary])
