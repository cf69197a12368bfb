"""Commands ``match``, ``validate``, ``index`` and ``ingest``."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from standards_mcp import InvalidInputError
from standards_mcp.commands import examples, json_option, print_result
from standards_mcp_career.importing import parsed
from standards_mcp_career.records import Opportunity
from standards_mcp_career.schemas import (
    GivenOpportunity,
    GivenReport,
    MatchAnswer,
    ValidationReport,
)
from standards_mcp_career.scoring import NAMES, Options
from standards_mcp_career.service import open_career
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.validation import Override

from .records import call_tool

_CANDIDATES: Final = click.IntRange(0, 1000)


def match_command(settings: CareerSettings) -> click.Command:
    """Return the command ``match``."""

    @click.command(
        "match",
        epilog=examples("career match ID", "career match position.yaml --strategy lexical --json"),
    )
    @click.argument("opportunity", metavar="ID|FILE")
    @click.option("--strategy", type=click.Choice(list(NAMES)), default=settings.matching_strategy)
    @click.option("--k-lex", type=_CANDIDATES, default=25, help="Candidates by words.")
    @click.option("--k-emb", type=_CANDIDATES, default=25, help="Candidates by vectors.")
    @json_option
    def match(opportunity: str, *, strategy: Any, k_lex: int, k_emb: int, as_json: bool) -> None:
        """Match a stored opportunity by its ID, or the opportunity in a FILE of JSON or YAML."""
        file = Path(opportunity)
        is_file = os.path.isfile(file)  # noqa: PTH113  - Path.is_file raises for a long id
        inline = _opportunity(file) if is_file else None
        with closing(open_career(settings)) as career:
            if strategy != "lexical":
                career.indexing.build("atoms")
            answer = career.matching.match_opportunity(
                options=Options(strategy, k_lex, k_emb),
                opportunity=inline,
                opportunity_id=None if inline else opportunity,
            )
        print_result(answer, lambda: "\n".join(match_lines(answer)), as_json=as_json)

    return match


def validate_command(settings: CareerSettings) -> click.Command:
    """Return the command ``validate``."""

    @click.command(
        "validate",
        epilog=examples("career match ID --json > report.json", "career validate report.json"),
    )
    @click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
    @click.option("--override", help="JSON: rule_id, operator_id, reason, payload_hash.")
    @json_option
    @click.pass_context
    def validate(
        context: click.Context, file: Path, *, override: str | None, as_json: bool
    ) -> None:
        """Validate the match report in FILE, also within the answer of a match."""
        try:
            content = parsed(file)
            content = content.get("match_report", content)
            report = GivenReport.model_validate(content)
            overruling = None if override is None else Override.model_validate_json(override)
        except ValidationError as error:
            raise InvalidInputError(f"{error.title}: {_first_problem(error)}") from error
        except (AttributeError, ValueError, RecursionError) as error:
            raise InvalidInputError(f"{file} does not contain a match report: {error}") from error
        with closing(open_career(settings)) as career:
            answer = career.validation.validate_match_report(report, override=overruling)
        verdict = answer["validation_report"]
        print_result(verdict, lambda: "\n".join(_validation_lines(verdict)), as_json=as_json)
        context.exit(int(verdict["status"] in ("blocked", "rejected")))

    return validate


@click.command("index")
@click.option("--scope", type=click.Choice(["all", "atoms", "resumes", "opps"]), default="all")
@json_option
@click.pass_context
def index(context: click.Context, *, scope: str, as_json: bool) -> None:
    """Make vectors of new and changed records."""

    def shown(answer: dict[str, Any]) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in answer["counts"].items())
        return f"{answer['run_id']}: {counts}"

    call_tool(context, "index_build", {"scope": scope}, shown, as_json=as_json)


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


def _validation_lines(report: ValidationReport) -> list[str]:
    findings = (
        f"   {finding['severity']} {finding['rule_id']}: {finding['message']}"
        for finding in report["findings"]
    )
    return [f"{report['artifact_id']}: {report['status']}", *findings]


def _first_problem(error: ValidationError) -> str:
    """Return the place and the text of the first error, without the input."""
    (first, *_) = error.errors(include_url=False, include_input=False)
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _opportunity(file: Path) -> Opportunity:
    try:
        return GivenOpportunity.model_validate(parsed(file)).record()
    except ValidationError as error:
        told = _first_problem(error)
        raise InvalidInputError(f"{file} holds no opportunity: {told}") from error
    except (OSError, ValueError, RecursionError) as error:
        why = json.dumps(" ".join(str(error).split())[:300], ensure_ascii=False)
        raise InvalidInputError(f"{file} holds no opportunity: {why}") from error


def ingest_command(settings: CareerSettings) -> click.Command:
    """Return the command ``ingest``."""

    @click.command(
        "ingest",
        epilog=examples("career ingest resume.pdf", "career ingest resume.pdf --no-persist"),
    )
    @click.argument("path", type=click.Path(path_type=Path))
    @click.option("--no-persist", is_flag=True, help="Read the file without storing it.")
    @json_option
    def ingest(path: Path, *, no_persist: bool, as_json: bool) -> None:
        """Read and store the resume at PATH, in any folder."""
        with closing(open_career(settings, reads_any_resume=True)) as career:
            answer = career.ingest.ingest_resume(str(path.absolute()), persist=not no_persist)
        done = "stored" if answer["stored"] else "not stored" if no_persist else "already stored"
        shown = f"{answer['resume_id']}: {done}\n{answer['resume_hash']}"
        print_result(answer, lambda: shown, as_json=as_json)

    return ingest
