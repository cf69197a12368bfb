"""The rules, their order, and a person's word against them."""

from __future__ import annotations

from typing import Any

import pytest

from standards_mcp_career.answers import GivenReport
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.primitives import sha256
from standards_mcp_career.records import Opportunity, Requirement
from standards_mcp_career.tables import upsert
from standards_mcp_career.validation import Override, validate, validate_match_report

GOOD = {
    "requirement_text": "Kafka",
    "matched": True,
    "best_score": 1,
    "contributing_atom_id": "a",
    "evidence_tokens": ["kafka"],
}


def report(*matches: dict[str, Any], overall: float = 1) -> GivenReport:
    return GivenReport.model_validate(
        {"opportunity_id": "o", "overall_score": overall, "requirement_matches": matches}
    )


def found(given: GivenReport) -> tuple[str, list[tuple[str, str, str]]]:
    told = validate(given, "t", "original")
    assert told["finding_count"] == len(told["findings"])
    findings = [(each["severity"], each["rule_id"], each["message"]) for each in told["findings"]]
    return told["status"], findings


def test_a_good_report_is_accepted():
    assert found(report(GOOD)) == ("accepted", [])
    assert found(report(overall=0)) == ("accepted", [])
    whole = validate(report(GOOD), "t", "original")
    assert (whole["report_id"], whole["artifact_id"]) == (
        "report-match-report-o",
        "match-report-o",
    )
    assert (whole["constitution_id"], whole["constitution_version"]) == ("default", "0.1.0")


def test_findings_stand_by_severity_rule_and_discovery():
    bad = {**GOOD, "contributing_atom_id": "", "evidence_tokens": [], "best_score": -1}
    odd = {"requirement_text": "", "matched": False, "contributing_atom_id": "a"}
    assert found(report(bad, odd, overall=-1)) == (
        "blocked",
        [
            ("BLOCK", "SCHEMA-001", "overall_score is negative"),
            ("BLOCK", "SCHEMA-001", "RequirementMatch[0] has negative best_score"),
            (
                "BLOCK",
                "SCHEMA-001",
                "RequirementMatch[0] is matched=true but missing contributing_atom_id",
            ),
            ("BLOCK", "SCHEMA-001", "RequirementMatch[1] has empty requirement_text"),
            (
                "BLOCK",
                "SCHEMA-001",
                "RequirementMatch[1] is matched=false but has contributing_atom_id",
            ),
            ("FAIL", "EVID-001", "Matched requirement 'Kafka' missing contributing_atom_id"),
            ("FAIL", "EVID-001", "Matched requirement 'Kafka' has no evidence_tokens"),
        ],
    )


def test_a_match_without_evidence_is_rejected_and_scores_of_zero_need_a_review():
    status, findings = found(report({**GOOD, "evidence_tokens": []}))
    assert (status, [each[1] for each in findings]) == ("rejected", ["EVID-001"])
    unmatched = {"requirement_text": "Kafka"}
    assert found(report(unmatched, overall=0)) == (
        "needs_review",
        [("WARN", "SCORE-001", "All requirement scores are zero.")],
    )
    assert found(report({**GOOD, "best_score": 7}, overall=7)) == ("accepted", [])


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "overridden"),
        ({"payload_hash": sha256("match-report-p")}, "blocked"),
        ({"rule_id": "EVID-001"}, "blocked"),
    ],
)
def test_a_person_overrules_the_rule_that_blocks_this_report_only(
    audit: AuditLog, changes: dict[str, str], status: str
):
    said = {
        "rule_id": "SCHEMA-001",
        "operator_id": "reviewer-7",
        "reason": "checked by hand",
        "payload_hash": sha256("match-report-o"),
        **changes,
    }
    given = report({**GOOD, "best_score": -1})
    answer = validate_match_report(audit, "meaningful", given, "t", Override.model_validate(said))
    found = answer["validation_report"]
    assert (found["status"], found["finding_count"]) == (status, 1)
    told = audit.page("t")["events"]
    assert told[0]["payload"] == {"status": "blocked", "finding_count": 1}
    applied = [each["payload"] for each in told[1:]]
    names = ("rule_id", "operator_id", "reason")
    assert applied == ([{name: said[name] for name in names}] if status == "overridden" else [])


THIN = {**GOOD, "requirement_text": "PhD in education", "evidence_tokens": ["in"]}


def test_a_required_requirement_that_rests_on_thin_evidence_fails_the_report():
    told = validate(report(GOOD, THIN), "t", "meaningful")
    assert (told["status"], told["constitution_version"]) == ("rejected", "0.2.0")
    assert told["findings"] == [
        {
            "rule_id": "EVID-002",
            "severity": "FAIL",
            "message": "Matched requirement 'PhD in education' rests on thin evidence (in): "
            "it lacks phd, education",
        }
    ]
    welcome = validate(report(GOOD, THIN), "t", "meaningful", {"PhD in education"})
    assert (welcome["status"], welcome["findings"][0]["severity"]) == ("needs_review", "WARN")


def test_the_original_rules_know_nothing_of_thin_evidence():
    assert found(report(GOOD, THIN)) == ("accepted", [])


def test_a_match_without_any_evidence_is_one_finding_by_both_rules():
    given = report({**GOOD, "evidence_tokens": []})
    for tokens in ("original", "meaningful"):
        findings = validate(given, "t", tokens)["findings"]
        assert [each["rule_id"] for each in findings] == ["EVID-001"]


def test_what_is_required_is_read_from_the_stored_opportunity(store: Store, audit: AuditLog):
    asked = (Requirement("PhD in education", required=False),)
    unknown = validate_match_report(audit, "meaningful", report(THIN))
    with store.writing() as connection:
        upsert(connection, [Opportunity("o", "c", "r", requirements=asked)])
    stored = validate_match_report(audit, "meaningful", report(THIN))
    statuses = [each["validation_report"]["status"] for each in (unknown, stored)]
    assert statuses == ["rejected", "needs_review"]
