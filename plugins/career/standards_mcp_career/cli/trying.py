"""Commands ``try``, which runs all steps of matching, and ``draft``, which drafts atoms."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import click
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError
from standards_mcp.commands import Report, examples, json_option, print_json, reports
from standards_mcp_career.answers import IngestAnswer, MatchAnswer
from standards_mcp_career.audit import Verification
from standards_mcp_career.importing import import_files
from standards_mcp_career.primitives import hash64, lower
from standards_mcp_career.records import Atom, Opportunity
from standards_mcp_career.resumes import Limits, ingest_resume, read_resume
from standards_mcp_career.scoring import Options
from standards_mcp_career.service import open_career
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.tables import scan

from .jobs import match_lines

_HEADING: Final = re.compile(r"#+ (?P<text>.*\S)")
_ITEM: Final = re.compile(r"\s*(?:[-*+\u2022\u2023\u25aa\u2013]|\d+[.)])\s+(?P<text>.*\S)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_ATOMS_FILE: Final = TypeAdapter(dict[str, list[Atom]])
_CONTINUATION: Final = re.compile(r"\s+\S|[a-z0-9(]")


def draft_atoms(markdown: str) -> Iterator[Atom]:
    """Yield an unverified atom for each list item outside of code.

    The title of an atom is the heading above the item. The id is a hash: ids occur in the audit
    log, which must not contain words of a resume.
    """
    for heading, claim in _items(markdown):
        yield Atom(
            atom_id=f"atom-{hash64(heading + claim)}",
            domain=lower(heading),
            title=heading,
            claim=claim,
            evidence_refs=("resume",),
        )


def _items(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield the distinct list items, each with the heading above it."""
    heading, is_code = "", False
    items, item = dict[tuple[str, str], None](), list[str]()
    for line in [*markdown.splitlines(), ""]:
        if item and not is_code and _continues_item(line):
            item.append(line.strip())
            continue
        if item:
            items[heading, " ".join(item)] = None
            item = []
        if _FENCE.match(line):
            is_code = not is_code
        elif is_code:
            continue
        elif match := _HEADING.fullmatch(line):
            heading = match["text"]
        elif match := _ITEM.fullmatch(line):
            item = [match["text"]]
    yield from items


def _continues_item(line: str) -> bool:
    """Return True if a line continues the item above: PDFs break items without indenting them."""
    return bool(_CONTINUATION.match(line)) and not any(
        pattern.match(line) for pattern in (_HEADING, _ITEM, _FENCE)
    )


def as_yaml(atoms: Iterable[Atom]) -> str:
    """Return atoms as a file for ``career import``."""
    from ruamel.yaml import YAML  # noqa: PLC0415  - only drafts need it

    yaml: Any = YAML()
    yaml.width = 100
    text = io.StringIO()
    yaml.dump(_ATOMS_FILE.dump_python({"atoms": list(atoms)}, mode="json"), text)
    return text.getvalue()


_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS: Final = Options("semantic", 25, 25)
_IN_MEMORY: Final[dict[str, object]] = {
    "db": None,
    "redis": None,
    "vector_backend": "inmemory",
    "load": (),
}


class TryAnswer(TypedDict):
    """The answer of ``career try``, the best match first."""

    resume: IngestAnswer
    matches: list[MatchAnswer]
    audit: Verification


def try_command(settings: CareerSettings) -> click.Command:
    """Return the command ``try``."""

    @click.command(
        "try", epilog=examples("career try", "career try resume.pdf --opportunities positions.yaml")
    )
    @click.argument("resume", type=_FILE, required=False)
    @click.option(
        "--opportunities", "file", type=_FILE, help="Your opportunities, in JSON or YAML."
    )
    @reports
    def try_all(resume: Path | None, *, file: Path | None) -> Report:
        """Match all opportunities with the verified atoms, and verify the audit log.

        Without RESUME, use examples in memory. With RESUME, use your imported atoms; ``career draft
        RESUME`` makes a file of atoms to check and import.
        """
        if file is not None and resume is None:
            raise click.UsageError("--opportunities needs your RESUME, and imported atoms.")
        if resume is not None:
            answer = _run_all(settings, resume, file)
        else:
            in_memory = settings.model_copy(update=_IN_MEMORY)
            with as_file(files("standards_mcp_career") / "examples") as folder:
                answer = _run_all(in_memory, folder / "resume.md", folder / "records.yaml")
        code = int(not answer["matches"] or not answer["audit"]["valid"])
        return Report(answer, lambda: _text(answer), code)

    return try_all


def draft_command(settings: CareerSettings) -> click.Command:
    """Return the command ``draft``."""

    @click.command("draft", epilog=examples("career draft resume.pdf > atoms.yaml"))
    @click.argument("resume", type=_FILE)
    @json_option
    def draft(resume: Path, *, as_json: bool) -> None:
        """Print an atom for each list item of RESUME, as YAML to check and import."""
        limits = Limits(None, settings.max_resume_bytes)
        text = read_resume(str(resume.absolute()), limits, mark_lists=True)
        drafted = list(draft_atoms(text.markdown))
        if not drafted:
            raise InvalidInputError(f"{resume} has no list items to make atoms of.")
        if as_json:
            print_json(_ATOMS_FILE.dump_python({"atoms": drafted}, mode="json"))
            return
        click.echo("# Check each claim, set verified: true where you can prove it, and import it:")
        click.echo("# standards-mcp career import FILE")
        # UTF-8 on every system, because `career import` reads UTF-8.
        click.echo(as_yaml(drafted).encode(), nl=False)

    return draft


def _run_all(settings: CareerSettings, resume: Path, records: Path | None) -> TryAnswer:
    """Import a file of records, if any, and match all opportunities for a resume."""
    with closing(open_career(settings)) as career:
        for mistake in import_files(career.store, [records] if records else [], settings.tokens)[
            "errors"
        ]:
            raise InvalidInputError(f"{mistake['where']}: {mistake['message']}")
        with career.store.reading() as connection:
            if not any(atom.verified for atom in scan(connection, Atom)):
                raise InvalidInputError(
                    "No verified atoms are stored. Make a file of atoms by `standards-mcp "
                    f"career draft {resume}`, check it, and import it into a database: "
                    "`standards-mcp --set plugins.career.db=FILE career import ATOMS`."
                )
            opportunity_ids = [part.opportunity_id for part in scan(connection, Opportunity)]
        ingested = ingest_resume(career.audit, career.limits, str(resume.absolute()))
        trace_id = ingested["trace_id"]
        career.indexing.build("all", trace_id)
        matches = [
            career.matching.match_opportunity(
                options=_OPTIONS,
                opportunity_id=opportunity_id,
                resume_id=ingested["resume_id"],
                trace_id=trace_id,
            )
            for opportunity_id in opportunity_ids
        ]
        matches.sort(key=lambda match: -match["match_report"]["overall_score"])
        return {"resume": ingested, "matches": matches, "audit": career.audit.verify()}


def _text(answer: TryAnswer) -> str:
    parts = [
        "\n".join([f"{rank}. {first}", *rest])
        for rank, (first, *rest) in enumerate(map(match_lines, answer["matches"]), 1)
    ]
    verdict = "is intact" if answer["audit"]["valid"] else "was CHANGED"
    parts.append(f"The audit log {verdict} ({len(answer['audit']['traces'])} traces).")
    return "\n\n".join(parts)
