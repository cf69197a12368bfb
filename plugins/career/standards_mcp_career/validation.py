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
_Check: TypeAlias = tuple[object, str, Severity, str]
"""A true value for a violation, with its rule, severity and message."""


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
    findings = [
        Finding(rule_id=rule_id, severity=severity, message=message)
        for rule_id, severity, message in _violations(report, rule, optional)
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


def _violations(
    report: GivenReport, rule: Tokens, optional: Collection[str]
) -> Iterator[tuple[str, Severity, str]]:
    score, matches = report.overall_score, report.requirement_matches
    checks: list[_Check] = [
        (score < 0, "SCHEMA-001", "BLOCK", "overall_score is negative"),
        (matches and score == 0, "SCORE-001", "WARN", "All requirement scores are zero."),
    ]
    for number, match in enumerate(matches):
        text, evidence, is_matched = match.requirement_text, match.evidence_tokens, match.matched
        place, name = f"RequirementMatch[{number}]", f"Matched requirement '{text}'"
        without = is_matched and not match.contributing_atom_id
        without_text = f"{place} is matched=true but missing contributing_atom_id"
        extra = match.contributing_atom_id and not is_matched
        extra_text = f"{place} is matched=false but has contributing_atom_id"
        is_judged = rule == "meaningful" and is_matched and evidence
        thin = thin_evidence_reason(text, evidence) if is_judged else None
        thin_text = f"{name} rests on thin evidence ({', '.join(evidence)}): {thin}"
        more: list[_Check] = [
            (not text, "SCHEMA-001", "BLOCK", f"{place} has empty requirement_text"),
            (match.best_score < 0, "SCHEMA-001", "BLOCK", f"{place} has negative best_score"),
            (without, "SCHEMA-001", "BLOCK", without_text),
            (extra, "SCHEMA-001", "BLOCK", extra_text),
            (without, "EVID-001", "FAIL", f"{name} missing contributing_atom_id"),
            (is_matched and not evidence, "EVID-001", "FAIL", f"{name} has no evidence_tokens"),
            (thin, "EVID-002", "WARN" if text in optional else "FAIL", thin_text),
        ]
        checks += more
    for is_violated, rule_id, severity, message in checks:
        if is_violated:
            yield rule_id, severity, message


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
