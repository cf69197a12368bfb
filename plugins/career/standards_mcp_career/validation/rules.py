"""The rules of the constitution ``default``, and the status that their findings give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from standards_mcp_career.answers import Finding, ValidationReport

from .reports import GivenReport

CONSTITUTION: Final = ("default", "0.1.0")
Severity: TypeAlias = Literal["BLOCK", "FAIL", "WARN"]
_STATUS: Final[dict[Severity, Literal["blocked", "rejected", "needs_review"]]] = {
    "BLOCK": "blocked",
    "FAIL": "rejected",
    "WARN": "needs_review",
}
_ORDER: Final = list(_STATUS)


def validate(report: GivenReport | None, trace_id: str) -> ValidationReport:
    """Return what the rules find in a report, the worst first."""
    found: list[Finding] = [
        {"rule_id": rule_id, "severity": severity, "message": message}
        for rule_id, severity, rule in _RULES
        for message in rule(report)
    ]
    found.sort(key=lambda each: (_ORDER.index(each["severity"]), each["rule_id"]))
    identifier, version = CONSTITUTION
    artifact_id = f"match-report-{report.opportunity_id if report else ''}"
    return {
        "report_id": f"report-{artifact_id}",
        "artifact_id": artifact_id,
        "constitution_id": identifier,
        "constitution_version": version,
        "status": _STATUS[found[0]["severity"]] if found else "accepted",
        "finding_count": len(found),
        "findings": found,
        "trace_id": trace_id,
    }


def _schema(report: GivenReport | None) -> Iterable[str]:
    if report is None:
        yield "Missing artifact view"
        return
    if report.overall_score < 0:
        yield "overall_score is negative"
    for number, each in enumerate(report.requirement_matches):
        name = f"RequirementMatch[{number}]"
        if not each.requirement_text:
            yield f"{name} has empty requirement_text"
        if each.best_score < 0:
            yield f"{name} has negative best_score"
        if each.matched and not each.contributing_atom_id:
            yield f"{name} is matched=true but missing contributing_atom_id"
        if not each.matched and each.contributing_atom_id:
            yield f"{name} is matched=false but has contributing_atom_id"


def _evidence(report: GivenReport | None) -> Iterable[str]:
    for each in report.requirement_matches if report else ():
        name = f"Matched requirement '{each.requirement_text}'"
        if each.matched and not each.contributing_atom_id:
            yield f"{name} missing contributing_atom_id"
        if each.matched and not each.evidence_tokens:
            yield f"{name} has no evidence_tokens"


def _scores(report: GivenReport | None) -> Iterable[str]:
    if report and report.requirement_matches and report.overall_score == 0:
        yield "All requirement scores are zero."


_RULES: Final[list[tuple[str, Severity, Callable[[GivenReport | None], Iterable[str]]]]] = [
    ("SCHEMA-001", "BLOCK", _schema),
    ("EVID-001", "FAIL", _evidence),
    ("SCORE-001", "WARN", _scores),
]
