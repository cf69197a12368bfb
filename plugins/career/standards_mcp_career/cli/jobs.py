"""Commands ``try`` and ``draft``, and counterparts of the tools."""

from __future__ import annotations

import io
import json
import os
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

import click
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from standards_mcp import InvalidInputError, ToolCaller
from standards_mcp.commands import (
    Report,
    ask_tool,
    examples,
    json_option,
    print_json,
    reports,
)
from standards_mcp_career.answers import GivenReport, IngestAnswer, MatchAnswer
from standards_mcp_career.audit import Verification
from standards_mcp_career.drafting import draft_atoms
from standards_mcp_career.importing import import_files, parse_file
from standards_mcp_career.records import Atom, Opportunity
from standards_mcp_career.resumes import Limits, ingest_resume, read_resume
from standards_mcp_career.scoring import NAMES, Options
from standards_mcp_career.service import open_career
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.tables import scan
from standards_mcp_career.validation import Override, validate_match_report

_CANDIDATES: Final = click.IntRange(0, 1000)
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


_ATOMS_FILE: Final = TypeAdapter(dict[str, list[Atom]])
_OPTIONS: Final = Options("semantic", 25, 25)
_IN_MEMORY: Final[dict[str, object]] = {
    "db": None,
    "postgres": None,
    "redis": None,
    "vector_backend": "inmemory",
    "load": (),
}


class TryAnswer(TypedDict):
    """The answer of ``career try``, the best match first."""

    resume: IngestAnswer
    matches: list[MatchAnswer]
    audit: Verification


@click.command("index")
@click.option("--scope", type=click.Choice(["all", "atoms", "resumes", "opps"]), default="all")
@click.pass_obj
@reports
def _index(call: ToolCaller, *, scope: str) -> Report:
    """Make vectors of new and changed records."""

    def text_of(answer: dict[str, Any]) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in answer["counts"].items())
        return f"{answer['run_id']}: {counts}"

    return ask_tool(call, "index_build", {"scope": scope}, text_of)


def commands(settings: CareerSettings) -> list[click.Command]:
    """Return the commands."""
    resumes, matches = _resume_commands(settings), _match_commands(settings)
    return [_try_command(settings), *resumes, _index, *matches]


def _try_command(settings: CareerSettings) -> click.Command:
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
                answer = _run_all(
                    in_memory, folder / "resume.md", folder / "records.yaml", is_example=True
                )
        code = int(not answer["matches"] or not answer["audit"]["valid"])
        return Report(answer, lambda: _text(answer), code)

    return try_all


def _resume_commands(settings: CareerSettings) -> list[click.Command]:
    @click.command("draft", epilog=examples("career draft resume.pdf > atoms.yaml"))
    @click.argument("resume", type=_FILE)
    @json_option
    def draft(resume: Path, *, as_json: bool) -> None:
        """Print an atom for each list item of RESUME, as YAML to check and import."""
        limits = Limits(None, settings.max_resume_bytes)
        read = read_resume(str(resume.absolute()), limits, mark_lists=True)
        drafted = list(draft_atoms(read.markdown))
        if not drafted:
            raise InvalidInputError(f"{resume} has no list items to make atoms of.")
        data = _ATOMS_FILE.dump_python({"atoms": drafted}, mode="json")
        if as_json:
            print_json(data)
            return
        from ruamel.yaml import YAML  # noqa: PLC0415  - only drafts need it

        yaml: Any = YAML()
        yaml.width, text = 100, io.StringIO()
        yaml.dump(data, text)
        click.echo("# Check each claim, set verified: true where you can prove it, and import it:")
        click.echo("# standards-mcp career import FILE")
        # UTF-8 on every system, because `career import` reads UTF-8.
        click.echo(text.getvalue().encode(), nl=False)

    @click.command(
        "ingest",
        epilog=examples("career ingest resume.pdf", "career ingest resume.pdf --no-persist"),
    )
    @click.argument("path", type=click.Path(path_type=Path))
    @click.option("--no-persist", is_flag=True, help="Read the file without storing it.")
    @reports
    def ingest(path: Path, *, no_persist: bool) -> Report:
        """Read and store the resume at PATH, in any folder."""
        with closing(open_career(settings)) as career:
            file, persist = str(path.absolute()), not no_persist
            answer = ingest_resume(career.audit, career.limits, file, persist=persist)
        status = "stored" if answer["stored"] else "not stored" if no_persist else "already stored"
        return Report(answer, lambda: f"{answer['resume_id']}: {status}\n{answer['resume_hash']}")

    return [draft, ingest]


def _match_commands(settings: CareerSettings) -> list[click.Command]:
    @click.command(
        "match",
        epilog=examples("career match ID", "career match position.yaml --strategy lexical --json"),
    )
    @click.argument("opportunity", metavar="ID|FILE")
    @click.option("--strategy", type=click.Choice(list(NAMES)), default=settings.matching_strategy)
    @click.option("--k-lex", type=_CANDIDATES, default=25, help="Number of candidates by words.")
    @click.option("--k-emb", type=_CANDIDATES, default=25, help="Number of candidates by vectors.")
    @reports
    def match(opportunity: str, *, strategy: Any, k_lex: int, k_emb: int) -> Report:
        """Match a stored opportunity by its ID, or the opportunity in a FILE of JSON or YAML."""
        is_file = os.path.isfile(opportunity)  # noqa: PTH113  - Path.is_file raises for a long id
        inline = _read_opportunity(Path(opportunity)) if is_file else None
        with closing(open_career(settings)) as career:
            if strategy != "lexical":
                career.indexing.build("atoms")
            answer = career.matching.match_opportunity(
                options=Options(strategy, k_lex, k_emb),
                opportunity=inline,
                opportunity_id=None if inline else opportunity,
            )
        return Report(answer, lambda: "\n".join(match_lines(answer)))

    @click.command(
        "validate",
        epilog=examples("career match ID --json > report.json", "career validate report.json"),
    )
    @click.argument("file", type=_FILE)
    @click.option("--override", help="JSON: rule_id, operator_id, reason, payload_hash.")
    @reports
    def validate(file: Path, *, override: str | None) -> Report:
        """Validate FILE: a match report, or the whole answer of a match."""
        try:
            content = parse_file(file)
            report = GivenReport.model_validate(content.get("match_report", content))
            overruling = None if override is None else Override.model_validate_json(override)
        except ValidationError as error:
            raise InvalidInputError(f"{error.title}: {_first_problem(error)}") from error
        except (AttributeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"{file} does not contain a match report: {error}") from error
        with closing(open_career(settings)) as career:
            answer = validate_match_report(
                career.audit, settings.tokens, report, override=overruling
            )
        verdict = answer["validation_report"]
        lines = [f"{verdict['artifact_id']}: {verdict['status']}"]
        lines += [
            f"   {finding['severity']} {finding['rule_id']}: {finding['message']}"
            for finding in verdict["findings"]
        ]
        is_refused = verdict["status"] in ("blocked", "rejected")
        return Report(verdict, lambda: "\n".join(lines), int(is_refused))

    return [match, validate]


def match_lines(answer: MatchAnswer) -> list[str]:
    """Format a match as lines of text."""
    report, status = answer["match_report"], answer["validation_report"]["status"]
    lines = [f"{report['opportunity_id']}: {report['overall_score']:.2f}, {status}"]
    for match in report["requirement_matches"]:
        if match["matched"]:
            evidence = ", ".join(match["evidence_tokens"])
            lines.append(
                f"   met {match['best_score']:.2f}  {match['requirement_text']}"
                f"  ({match['contributing_atom_id']}: {evidence})"
            )
    return [*lines, *(f"   missing   {text}" for text in report["missing_requirements"])]


def _first_problem(error: ValidationError) -> str:
    """Return the place and the text of the first error, without the input."""
    (first, *_) = error.errors(include_url=False, include_input=False)
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _read_opportunity(file: Path) -> Opportunity:
    try:
        return TypeAdapter(Opportunity).validate_python(parse_file(file))
    except ValidationError as error:
        cause = _first_problem(error)
        raise InvalidInputError(f"{file} holds no opportunity: {cause}") from error
    except (OSError, ValueError, RecursionError) as error:
        cause = json.dumps(" ".join(str(error).split())[:300], ensure_ascii=False)
        raise InvalidInputError(f"{file} holds no opportunity: {cause}") from error


def _run_all(
    settings: CareerSettings, resume: Path, records: Path | None, *, is_example: bool = False
) -> TryAnswer:
    """Import a file of records, if any, and match all opportunities for a resume."""
    with closing(open_career(settings)) as career:
        with career.store.reading() as connection:
            # Before the import: a refused command changes nothing.
            if not is_example and not any(atom.verified for atom in scan(connection, Atom)):
                raise InvalidInputError(
                    "No verified atoms are stored. Make a file of atoms by `standards-mcp "
                    f"career draft {resume}`, check it, and import it into a database: "
                    "`standards-mcp --set plugins.career.db=FILE career import ATOMS`."
                )
        paths = [records] if records else []
        for mistake in import_files(career.store, paths, settings.tokens)["errors"]:
            raise InvalidInputError(f"{mistake['where']}: {mistake['message']}")
        with career.store.reading() as connection:
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
