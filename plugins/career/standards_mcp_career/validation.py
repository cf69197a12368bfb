"""Validate match reports by the constitution ``default``; a person may overrule a rule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from .audit import AuditLog
from .language.evidence import weakness
from .primitives import Ids, sha256
from .records import Opportunity
from .schemas import Finding, GivenReport, ValidationAnswer, ValidationReport
from .settings import Tokens
from .store.database import Store
from .store.repositories import get_opportunity

CONSTITUTION: Final = "default"
_VERSIONS: Final[dict[Tokens, str]] = {"original": "0.1.0", "meaningful": "0.2.0"}
"""The constitution of the original, and the one that has the rule on thin evidence."""
Severity: TypeAlias = Literal["BLOCK", "FAIL", "WARN"]
_STATUS: Final[dict[Severity, Literal["blocked", "rejected", "needs_review"]]] = {
    "BLOCK": "blocked",
    "FAIL": "rejected",
    "WARN": "needs_review",
}
_ORDER: Final = list(_STATUS)


def optional_texts(opportunity: Opportunity | None) -> frozenset[str]:
    """Return the texts of optional requirements."""
    asked = opportunity.requirements if opportunity else ()
    return frozenset(requirement.text for requirement in asked if not requirement.required)


def validate(
    report: GivenReport | None,
    trace_id: str,
    tokens: Tokens,
    optional: Collection[str] = frozenset(),
) -> ValidationReport:
    """Apply all rules to a report; the worst findings come first.

    Args:
        tokens: With "original", thin evidence is accepted.
        optional: The texts of optional requirements.
    """
    findings: list[Finding] = [
        {"rule_id": rule_id, "severity": severity, "message": message}
        for rule_id, severity, rule in _RULES
        for message in rule(report)
    ]
    if tokens == "meaningful":
        findings += _thin(report, optional)
    findings.sort(key=lambda finding: (_ORDER.index(finding["severity"]), finding["rule_id"]))
    artifact_id = f"match-report-{report.opportunity_id if report else ''}"
    return {
        "report_id": f"report-{artifact_id}",
        "artifact_id": artifact_id,
        "constitution_id": CONSTITUTION,
        "constitution_version": _VERSIONS[tokens],
        "status": _STATUS[findings[0]["severity"]] if findings else "accepted",
        "finding_count": len(findings),
        "findings": findings,
        "trace_id": trace_id,
    }


def _schema(report: GivenReport | None) -> Iterable[str]:
    if report is None:
        yield "Missing artifact view"
        return
    if report.overall_score < 0:
        yield "overall_score is negative"
    for number, match in enumerate(report.requirement_matches):
        name = f"RequirementMatch[{number}]"
        if not match.requirement_text:
            yield f"{name} has empty requirement_text"
        if match.best_score < 0:
            yield f"{name} has negative best_score"
        if match.matched and not match.contributing_atom_id:
            yield f"{name} is matched=true but missing contributing_atom_id"
        if not match.matched and match.contributing_atom_id:
            yield f"{name} is matched=false but has contributing_atom_id"


def _evidence(report: GivenReport | None) -> Iterable[str]:
    for match in report.requirement_matches if report else ():
        name = f"Matched requirement '{match.requirement_text}'"
        if match.matched and not match.contributing_atom_id:
            yield f"{name} missing contributing_atom_id"
        if match.matched and not match.evidence_tokens:
            yield f"{name} has no evidence_tokens"


def _thin(report: GivenReport | None, optional: Collection[str]) -> Iterator[Finding]:
    for match in report.requirement_matches if report else ():
        if not match.matched or not match.evidence_tokens:
            continue
        text, evidence = match.requirement_text, match.evidence_tokens
        if why := weakness(text, evidence):
            yield {
                "rule_id": "EVID-002",
                "severity": "WARN" if text in optional else "FAIL",
                "message": f"Matched requirement '{text}' rests on thin evidence "
                f"({', '.join(evidence)}): {why}",
            }


def _scores(report: GivenReport | None) -> Iterable[str]:
    if report and report.requirement_matches and report.overall_score == 0:
        yield "All requirement scores are zero."


_RULES: Final[list[tuple[str, Severity, Callable[[GivenReport | None], Iterable[str]]]]] = [
    ("SCHEMA-001", "BLOCK", _schema),
    ("EVID-001", "FAIL", _evidence),
    ("SCORE-001", "WARN", _scores),
]


class Override(BaseModel):
    """A person's decision to overrule a rule.

    Attributes:
        payload_hash: SHA-256 of the report's artifact_id, so that it counts for that report only.
    """

    model_config = ConfigDict(extra="forbid")

    rule_id: str
    operator_id: str
    reason: str
    payload_hash: str


def counts(override: Override, report: ValidationReport) -> bool:
    """Return True if an override names a rule that blocks this report."""
    is_for_it = override.payload_hash == sha256(report["artifact_id"])
    blocks = any(
        finding["rule_id"] == override.rule_id and finding["severity"] == "BLOCK"
        for finding in report["findings"]
    )
    return report["status"] == "blocked" and is_for_it and blocks


class Validation:
    """Validate match reports and log the results."""

    def __init__(self, store: Store, audit: AuditLog, ids: Ids, tokens: Tokens) -> None:
        self._store, self._audit, self._ids = store, audit, ids
        self._tokens: Tokens = tokens

    def validate_match_report(
        self,
        report: GivenReport,
        trace_id: str | None = None,
        override: Override | None = None,
    ) -> ValidationAnswer:
        """Validate a report and log the result.

        Args:
            override: A person's override of a blocking rule; only commands pass one.

        Raises:
            ApiError: The database fails.
        """
        drawn = self._ids.new("trace")
        trace_id = trace_id or drawn
        with self._store.reading() as connection:
            stored = get_opportunity(connection, report.opportunity_id)
        verdict = validate(report, trace_id, self._tokens, optional_texts(stored))
        result = {"status": verdict["status"], "finding_count": verdict["finding_count"]}
        self._audit.append(trace_id, "ValidationCompleted", result, [report.opportunity_id])
        if override and counts(override, verdict):
            verdict["status"] = "overridden"
            by = override.model_dump(include={"rule_id", "operator_id", "reason"})
            self._audit.append(trace_id, "ConstitutionOverrideApplied", by)
        return {"trace_id": trace_id, "validation_report": verdict}
