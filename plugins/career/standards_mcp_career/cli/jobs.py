"""Commands ``ingest``, ``index``, ``match`` and ``validate``, counterparts of the tools."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
from pydantic import TypeAdapter, ValidationError

from standards_mcp import InvalidInputError, ToolCaller
from standards_mcp.commands import Report, ask_tool, examples, reports
from standards_mcp_career.answers import GivenReport, MatchAnswer
from standards_mcp_career.importing import parse_file
from standards_mcp_career.records import Opportunity
from standards_mcp_career.resumes import ingest_resume
from standards_mcp_career.scoring import NAMES, Options
from standards_mcp_career.service import open_career
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.validation import Override, validate_match_report

_CANDIDATES: Final = click.IntRange(0, 1000)
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


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

    return [ingest, _index, match, validate]


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
