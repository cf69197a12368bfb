"""Commands ``try``, which runs all steps of matching, and ``draft``, which drafts atoms."""

from __future__ import annotations

import io
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
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
from standards_mcp_career.records import Atom, Tokens, all_atoms, all_opportunities
from standards_mcp_career.resumes import Limits, ingest_resume, read_resume
from standards_mcp_career.scoring import Options
from standards_mcp_career.service import Career, open_career
from standards_mcp_career.settings import CareerSettings

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
        source = _open_examples(settings) if resume is None else _open_own(settings, resume)
        with source as (career, path):
            if file is not None:
                _import(career, [file], settings.tokens)
            answer = _run_all(career, path)
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


@contextmanager
def _open_examples(settings: CareerSettings) -> Generator[tuple[Career, Path]]:
    with (
        as_file(files("standards_mcp_career") / "examples") as folder,
        closing(open_career(settings.model_copy(update=_IN_MEMORY))) as career,
    ):
        _import(career, [folder / "records.yaml"], settings.tokens)
        yield career, folder / "resume.md"


@contextmanager
def _open_own(settings: CareerSettings, resume: Path) -> Generator[tuple[Career, Path]]:
    with closing(open_career(settings)) as career:
        with career.store.reading() as connection:
            has_verified = any(atom.verified for atom in all_atoms(connection))
        if not has_verified:
            raise InvalidInputError(
                "No verified atoms are stored. Make a file of atoms by `standards-mcp "
                f"career draft {resume}`, check it, and import it into a database: "
                "`standards-mcp --set plugins.career.db=FILE career import ATOMS`."
            )
        yield career, resume.absolute()


def _import(career: Career, record_files: Sequence[Path], tokens: Tokens) -> None:
    for mistake in import_files(career.store, record_files, tokens)["errors"]:
        raise InvalidInputError(f"{mistake['where']}: {mistake['message']}")


def _run_all(career: Career, path: Path) -> TryAnswer:
    ingested = ingest_resume(career.audit, career.limits, str(path))
    trace_id = ingested["trace_id"]
    career.indexing.build("all", trace_id)
    with career.store.reading() as connection:
        opportunity_ids = [record.opportunity_id for record in all_opportunities(connection)]
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
