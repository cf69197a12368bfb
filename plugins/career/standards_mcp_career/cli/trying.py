"""Commands to begin with: everything in one, and a draft of one's own atoms."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import click
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError
from standards_mcp.commands import examples, json_option, print_json, print_result
from standards_mcp_career import examples as example_files
from standards_mcp_career.answers import IngestAnswer, MatchAnswer
from standards_mcp_career.audit.log import Verification
from standards_mcp_career.drafting import as_records, as_yaml, draft_atoms
from standards_mcp_career.importing import import_files
from standards_mcp_career.matching.strategies import Options
from standards_mcp_career.resumes.reading import Limits, read_resume
from standards_mcp_career.service import Career, open_career
from standards_mcp_career.settings import CareerSettings, Tokens
from standards_mcp_career.store import atoms, opportunities

from .matching import match_lines

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS: Final = Options("semantic", 25, 25)
_IN_MEMORY: Final[dict[str, object]] = {
    "db": None,
    "redis": None,
    "vector_backend": "inmemory",
    "load": (),
}


class Tried(TypedDict):
    """What ``career try`` has found; the best match first."""

    resume: IngestAnswer
    matches: list[MatchAnswer]
    audit: Verification


def try_command(settings: CareerSettings) -> click.Command:
    """Return the command ``try``."""

    @click.command(
        "try", epilog=examples("career try", "career try resume.pdf --opportunities positions.yaml")
    )
    @click.argument("resume", type=_FILE, required=False)
    @click.option("--opportunities", "file", type=_FILE, help="Yours, in JSON or YAML.")
    @json_option
    @click.pass_context
    def try_all(
        context: click.Context, resume: Path | None, *, file: Path | None, as_json: bool
    ) -> None:
        """Match all opportunities with a resume's atoms, and verify what was written down.

        Without RESUME it works on examples, in memory. With one, it works on the atoms that were
        imported; ``career draft RESUME`` makes a file of them to check.
        """
        if file is not None and resume is None:
            raise click.UsageError(
                "--opportunities needs your RESUME, and atoms that you imported."
            )
        with _examples(settings) if resume is None else _own(settings, resume) as (career, path):
            if file is not None:
                _import(career, [file], settings.tokens)
            tried = _tried(career, path)
        print_result(tried, lambda: _shown(tried), as_json=as_json)
        context.exit(int(not tried["matches"] or not tried["audit"]["valid"]))

    return try_all


def draft_command(settings: CareerSettings) -> click.Command:
    """Return the command ``draft``."""

    @click.command("draft", epilog=examples("career draft resume.pdf > atoms.yaml"))
    @click.argument("resume", type=_FILE)
    @json_option
    def draft(resume: Path, *, as_json: bool) -> None:
        """Print an atom for each list item of RESUME, as YAML to check and import."""
        limits = Limits(None, settings.max_resume_bytes)
        drafted = list(
            draft_atoms(read_resume(str(resume.absolute()), limits, marks_lists=True).text)
        )
        if not drafted:
            raise InvalidInputError(f"{resume} has no list items to make atoms of.")
        if as_json:
            print_json(as_records(drafted))
            return
        click.echo("# Check each claim, set verified: true where you can prove it, and import it:")
        click.echo("# standards-mcp career import FILE")
        # In UTF-8 everywhere, as a file that is imported must be.
        click.echo(as_yaml(drafted).encode(), nl=False)

    return draft


@contextmanager
def _examples(settings: CareerSettings) -> Generator[tuple[Career, Path]]:
    with tempfile.TemporaryDirectory() as folder, as_file(files(example_files)) as shipped:
        # Out of site-packages, which is often in a hidden folder.
        place = Path(folder).resolve()
        shutil.copy(shipped / "resume.md", place)
        changes = {**_IN_MEMORY, "resume_roots": (place,)}
        with closing(open_career(settings.model_copy(update=changes))) as career:
            _import(career, [shipped / "records.yaml"], settings.tokens)
            yield career, place / "resume.md"


@contextmanager
def _own(settings: CareerSettings, resume: Path) -> Generator[tuple[Career, Path]]:
    with closing(open_career(settings, reads_any_resume=True)) as career:
        with career.store.reading() as connection:
            is_proved = any(each.verified for each in atoms.read_all(connection))
        if not is_proved:
            raise InvalidInputError(
                "There are no verified atoms to match with. Make a file of them by `standards-mcp "
                f"career draft {resume}`, check it, and import it into a database: "
                "`standards-mcp --set plugins.career.db=FILE career import ATOMS`."
            )
        yield career, resume.absolute()


def _import(career: Career, names: Sequence[Path], tokens: Tokens) -> None:
    for mistake in import_files(career.store, names, tokens)["errors"]:
        raise InvalidInputError(f"{mistake['where']}: {mistake['message']}")


def _tried(career: Career, path: Path) -> Tried:
    taken = career.ingest.ingest_resume(str(path))
    trace_id = taken["trace_id"]
    career.indexing.build("all", trace_id)
    with career.store.reading() as connection:
        wanted = [each.opportunity_id for each in opportunities.read_all(connection)]
    matches = [
        career.matching.match_opportunity(
            options=_OPTIONS,
            opportunity_id=each,
            resume_id=taken["resume_id"],
            trace_id=trace_id,
        )
        for each in wanted
    ]
    matches.sort(key=lambda each: -each["match_report"]["overall_score"])
    return {"resume": taken, "matches": matches, "audit": career.audit.verify()}


def _shown(tried: Tried) -> str:
    parts = [
        "\n".join([f"{rank}. {first}", *rest])
        for rank, (first, *rest) in enumerate(map(match_lines, tried["matches"]), 1)
    ]
    verdict = "is whole" if tried["audit"]["valid"] else "is NOT what was written"
    parts.append(f"The audit log of {len(tried['audit']['traces'])} traces {verdict}.")
    return "\n\n".join(parts)
