"""Commands about stored data: ``import``, ``list``, ``show``, ``migrate``, ``copy``, ``audit``."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from standards_mcp import InvalidInputError, NotFoundError
from standards_mcp.commands import Report, examples, reports
from standards_mcp_career.addresses import PostgresAddress
from standards_mcp_career.audit import export_line, read_lines, verify_all
from standards_mcp_career.copying import copy_database
from standards_mcp_career.importing import import_files
from standards_mcp_career.interactions import STATES
from standards_mcp_career.records import (
    Atom,
    Entry,
    Interaction,
    Opportunity,
    Resume,
    Run,
    StoredDecision,
)
from standards_mcp_career.schema import LATEST, migrate, new_store
from standards_mcp_career.service import Career, open_career
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.tables import ALL_ROWS, find, scan


class _Kind(NamedTuple):
    """A kind of records, its name in the singular, and a line of text for a record."""

    singular: str
    type: type[Any]
    line: str


_KINDS: Final[Mapping[str, _Kind]] = {
    "atoms": _Kind("Atom", Atom, "{atom_id}: {name}{note}"),
    "opportunities": _Kind("Opportunity", Opportunity, "{opportunity_id}: {role_title}, {company}"),
    "interactions": _Kind(
        "Interaction", Interaction, "{interaction_id}: {state_name}, {opportunity_id}"
    ),
    "resumes": _Kind("Resume", Resume, "{resume_id}: {created_at}"),
    "runs": _Kind("Run", Run, "{run_id}: {status}"),
    "decisions": _Kind("Decision", StoredDecision, "{decision_id}: {opportunity_id}"),
}
_kind_argument: Final = click.argument("kind", type=click.Choice(list(_KINDS)))


def _row_of(record: Any) -> dict[str, Any]:
    row: dict[str, Any] = asdict(record)
    return dict(row["decision"]) if "decision" in row else row


def _line_of(kind: str, row: Mapping[str, Any]) -> str:
    state = row.get("state")
    name, note = row.get("title") or row.get("claim"), " (not verified)"
    return _KINDS[kind].line.format(
        **row,
        name=name,
        note="" if row.get("verified") else note,
        state_name=dict(enumerate(STATES)).get(state or 0, state),  # or damaged
    )


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
        lines = [f"{error['where']}: {error['message']}" for error in answer["errors"]]
        counts = ", ".join(f"{count} {kind}" for kind, count in answer.items() if kind != "errors")
        return Report(answer, lambda: "\n".join(lines) or counts, int(bool(lines)))

    @click.command("list", epilog=examples("career list atoms", "career list decisions --json"))
    @_kind_argument
    @reports
    def list_records(kind: str) -> Report:
        """List the records of KIND."""
        with open_existing(settings) as career, career.store.reading() as connection:
            rows = list(map(_row_of, scan(connection, _KINDS[kind].type)))
        for row in rows:
            row.pop("markdown", None)  # the text of a resume
        text = "\n".join(_line_of(kind, row) for row in rows) or f"There are no {kind}."
        return Report({kind: rows}, lambda: text, int(not rows))

    @click.command("show", epilog=examples("career show atoms ID", "career show runs ID --json"))
    @_kind_argument
    @click.argument("identifier", metavar="ID")
    @reports
    def show_record(kind: str, identifier: str) -> Report:
        """Show the record of KIND with this ID."""
        with open_existing(settings) as career, career.store.reading() as connection:
            record = find(connection, _KINDS[kind].type, identifier)
            if record is None:
                raise NotFoundError(f"{_KINDS[kind].singular} not found: {identifier}")
            row = _row_of(record)
            if kind == "runs":
                row["entries"] = list(map(asdict, scan(connection, Entry, identifier)))
        lines = (
            f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for name, value in row.items()
        )
        return Report(row, lambda: "\n".join(lines))

    moved = _database_commands(settings)
    return [import_records, list_records, show_record, *moved, _audit_group(settings)]


def _database_commands(settings: CareerSettings) -> list[click.Command]:
    @click.command("migrate")
    @click.option("--to", type=click.IntRange(1, LATEST), default=LATEST, help="Target version.")
    @reports
    def migrate_database(to: int) -> Report:
        """Migrate the database to the newest version, or to the version of --to."""
        _require_database(settings)
        with closing(new_store(settings.database)) as store:
            before, after = migrate(store, to)
        return Report({"from": before, "to": after}, lambda: f"version {before} to {after}")

    @click.command("copy", epilog=examples("career copy career.db"))
    @click.argument("file", type=click.Path(path_type=Path))
    @reports
    def copy(file: Path) -> Report:
        """Copy the SQLite database FILE into the empty database of plugins.career.postgres."""
        if not isinstance(settings.database, PostgresAddress):
            raise InvalidInputError(
                "Set plugins.career.postgres, in the variable "
                "STANDARDS_MCP_PLUGINS__CAREER__POSTGRES, to the address of an empty database."
            )
        counts = copy_database(file, settings.database)
        text = f"{sum(counts.values())} rows of {len(counts)} tables"
        return Report({"rows": counts}, lambda: text)

    return [migrate_database, copy]


def _require_database(settings: CareerSettings) -> None:
    if settings.database is None:
        raise InvalidInputError(
            "No database is configured, so nothing would be kept. "
            "Name its file, for example by --set plugins.career.db=~/career.db"
        )


def _audit_group(settings: CareerSettings) -> click.Group:
    """Return the commands ``audit show``, ``audit export`` and ``audit verify``."""
    group = click.Group("audit", help="Read, export and verify the audit log.")

    @group.command("show", epilog=examples("career audit show TRACE --json"))
    @click.argument("trace")
    @reports
    def show(trace: str) -> Report:
        """Show the events of TRACE."""
        with open_existing(settings) as career:
            answer = career.audit.page(trace, limit=ALL_ROWS)
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
        if file is None:
            with open_existing(settings) as career:
                answer = career.audit.verify(trace)
        else:
            with file.open("rb") as lines:
                try:
                    answer = verify_all(read_lines(lines))
                except InvalidInputError as error:
                    raise InvalidInputError(f"{file}: {error}") from error
        traces = answer["traces"]
        texts = [f"{verdict['trace_id']}: {verdict['error'] or 'valid'}" for verdict in traces]
        valid = "all valid" if answer["valid"] else "NOT VALID"
        texts.append(f"{len(traces)} traces, {valid}" if traces else "There are no events.")
        return Report(answer, lambda: "\n".join(texts), int(not (answer["valid"] and traces)))

    return group
