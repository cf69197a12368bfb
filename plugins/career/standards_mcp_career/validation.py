"""Validate match reports by the rules of the constitution ``default``, and overrule rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from .answers import Finding, GivenReport, Severity, ValidationAnswer, ValidationReport
from .audit import AuditLog
from .language.evidence import thin_evidence_reason
from .primitives import sha256
from .records import Opportunity, Tokens
from .tables import find

_VERSIONS: Final[dict[Tokens, str]] = {"original": "0.1.0", "meaningful": "0.2.0"}
"""The version of the constitution by the setting ``tokens``; 0.2.0 adds EVID-002."""
_STATUS: Final[dict[Severity, Literal["blocked", "rejected", "needs_review"]]] = {
    "BLOCK": "blocked",
    "FAIL": "rejected",
    "WARN": "needs_review",
}
_SEVERITIES: Final = list(_STATUS)
_Violation: TypeAlias = tuple[str, Severity, str]


def optional_texts(opportunity: Opportunity | None) -> frozenset[str]:
    """Return the texts of optional requirements."""
    requirements = opportunity.requirements if opportunity else ()
    return frozenset(part.text for part in requirements if not part.required)


def validate(
    report: GivenReport,
    trace_id: str,
    rule: Tokens,
    optional: Collection[str] = frozenset(),
) -> ValidationReport:
    """Apply all rules to a report; the worst findings come first.

    Args:
        rule: The setting ``tokens``. With "original", thin evidence is accepted.
        optional: The texts of optional requirements.
    """
    violations = [*_schema_violations(report), *_evidence_violations(report)]
    if rule == "meaningful":
        violations += _thin_violations(report, optional)
    if report.requirement_matches and report.overall_score == 0:
        violations.append(("SCORE-001", "WARN", "All requirement scores are zero."))
    findings: list[Finding] = [
        {"rule_id": rule_id, "severity": severity, "message": message}
        for rule_id, severity, message in violations
    ]
    findings.sort(key=lambda finding: (_SEVERITIES.index(finding["severity"]), finding["rule_id"]))
    artifact_id = f"match-report-{report.opportunity_id}"
    return {
        "report_id": f"report-{artifact_id}",
        "artifact_id": artifact_id,
        "constitution_id": "default",
        "constitution_version": _VERSIONS[rule],
        "status": _STATUS[findings[0]["severity"]] if findings else "accepted",
        "finding_count": len(findings),
        "findings": findings,
        "trace_id": trace_id,
    }


def _schema_violations(report: GivenReport) -> Iterator[_Violation]:
    if report.overall_score < 0:
        yield "SCHEMA-001", "BLOCK", "overall_score is negative"
    for number, match in enumerate(report.requirement_matches):
        problems = {
            "has empty requirement_text": not match.requirement_text,
            "has negative best_score": match.best_score < 0,
            "is matched=true but missing contributing_atom_id": match.matched
            and not match.contributing_atom_id,
            "is matched=false but has contributing_atom_id": not match.matched
            and match.contributing_atom_id,
        }
        for problem, is_present in problems.items():
            if is_present:
                yield "SCHEMA-001", "BLOCK", f"RequirementMatch[{number}] {problem}"


def _evidence_violations(report: GivenReport) -> Iterator[_Violation]:
    for match in report.requirement_matches:
        name = f"Matched requirement '{match.requirement_text}'"
        if match.matched and not match.contributing_atom_id:
            yield "EVID-001", "FAIL", f"{name} missing contributing_atom_id"
        if match.matched and not match.evidence_tokens:
            yield "EVID-001", "FAIL", f"{name} has no evidence_tokens"


def _thin_violations(report: GivenReport, optional: Collection[str]) -> Iterator[_Violation]:
    for match in report.requirement_matches:
        text, evidence = match.requirement_text, match.evidence_tokens
        if match.matched and evidence and (why := thin_evidence_reason(text, evidence)):
            message = (
                f"Matched requirement '{text}' rests on thin evidence ({', '.join(evidence)}): "
                f"{why}"
            )
            yield "EVID-002", "WARN" if text in optional else "FAIL", message


class Override(BaseModel):
    """A person's decision to overrule a rule.

    Attributes:
        payload_hash: SHA-256 of the report's artifact_id, so that it overrules that report only.
    """

    model_config = ConfigDict(extra="forbid")

    rule_id: str
    operator_id: str
    reason: str
    payload_hash: str

    def counts_for(self, report: ValidationReport) -> bool:
        """Return True if the override is for this report and for a rule that blocks it."""
        blocking = {
            finding["rule_id"] for finding in report["findings"] if finding["severity"] == "BLOCK"
        }
        return self.payload_hash == sha256(report["artifact_id"]) and self.rule_id in blocking


def validate_match_report(
    audit: AuditLog,
    rule: Tokens,
    report: GivenReport,
    trace_id: str | None = None,
    override: Override | None = None,
) -> ValidationAnswer:
    """Validate a report and log the result.

    Args:
        rule: The setting ``tokens``.
        override: A person's override of a blocking rule, from a command. Tools never pass one.

    Raises:
        ApiError: The database fails.
    """
    trace_id = audit.trace(trace_id)
    with audit.store.reading() as connection:
        stored = find(connection, Opportunity, report.opportunity_id)
    verdict = validate(report, trace_id, rule, optional_texts(stored))
    result = {"status": verdict["status"], "finding_count": verdict["finding_count"]}
    audit.append(trace_id, "ValidationCompleted", result, [report.opportunity_id])
    if override and override.counts_for(verdict):
        verdict["status"] = "overridden"
        payload = override.model_dump(include={"rule_id", "operator_id", "reason"})
        audit.append(trace_id, "ConstitutionOverrideApplied", payload)
    return {"trace_id": trace_id, "validation_report": verdict}
