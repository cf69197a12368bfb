"""Inputs and answers of the tools. This module imports quickly, the code behind it does not."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, FiniteFloat
from typing_extensions import TypedDict

Event: TypeAlias = Literal["Prepare", "Send", "ReceiveReply", "Close"]
OutcomeName: TypeAlias = Literal[
    "applied", "already_applied", "conflict", "invalid_transition", "not_found", "backend_error"
]
Severity: TypeAlias = Literal["BLOCK", "FAIL", "WARN"]


class AuditEvent(TypedDict):
    """An event of the audit log.

    Attributes:
        refs: Ids of related records.
    """

    event_id: str
    trace_id: str
    event_type: str
    payload: dict[str, Any]
    created_at: str
    refs: list[str]


class TraceAnswer(TypedDict):
    """A page of a trace's events, in the order of writing.

    Attributes:
        total: Number of events in the trace.
    """

    trace_id: str
    total: int
    events: list[AuditEvent]


class OutcomeAnswer(TypedDict):
    """The outcome of an event. States are 0 Draft, 1 Ready, 2 Sent, 3 Responded, 4 Closed."""

    outcome: OutcomeName
    before_state: int
    after_state: int
    transition_index: int
    error_message: str


class EventAnswer(TypedDict):
    """The answer of `interaction_apply_event`."""

    trace_id: str
    result: OutcomeAnswer


class IngestAnswer(TypedDict):
    """The answer of `ingest_resume`.

    Attributes:
        resume_hash: ``sha256:`` and the hash of the normalised Markdown.
        source_hash: FNV-1a hash of the normalised Markdown.
        stored: True if this call stored the resume.
    """

    resume_id: str
    resume_hash: str
    source_hash: str
    stored: bool
    trace_id: str


class IndexCounts(TypedDict):
    """Counts of an index run.

    Attributes:
        stale: Number of indexed artifacts whose text had changed.
    """

    indexed: int
    skipped: int
    stale: int


class IndexAnswer(TypedDict):
    """The answer of `index_build`."""

    run_id: str
    counts: IndexCounts
    trace_id: str


class RequirementMatch(TypedDict):
    """The best atom for a requirement.

    Attributes:
        best_score: 0 without a match.
        evidence_tokens: Words in both the requirement and the atom, sorted.
    """

    requirement_text: str
    matched: bool
    best_score: float
    contributing_atom_id: str | None
    evidence_tokens: list[str]


class Breakdown(TypedDict):
    """The parts of a match's score."""

    lexical: float
    semantic: float
    bonus: float
    final_score: float


class RetrievalStats(TypedDict):
    """Numbers of candidate atoms by retrieval stage."""

    lexical_candidates: int
    embedding_candidates: int
    merged_candidates: int


class MatchReport(TypedDict):
    """The match of an opportunity with the verified atoms.

    Attributes:
        overall_score: The mean of the best scores.
        matched_atoms: Distinct atom ids, sorted.
        missing_requirements: Texts of unmatched requirements.
    """

    opportunity_id: str
    strategy: str
    overall_score: float
    requirement_matches: list[RequirementMatch]
    matched_atoms: list[str]
    missing_requirements: list[str]
    breakdown: Breakdown
    retrieval_stats: RetrievalStats


class Finding(TypedDict):
    """One violation of a rule in a report."""

    rule_id: str
    severity: Severity
    message: str


class ValidationReport(TypedDict):
    """The validation of a match report."""

    report_id: str
    artifact_id: str
    constitution_id: str
    constitution_version: str
    status: Literal["accepted", "needs_review", "rejected", "blocked", "overridden"]
    finding_count: int
    findings: list[Finding]
    trace_id: str


class MatchAnswer(TypedDict):
    """The answer of `match_opportunity`."""

    trace_id: str
    decision_id: str
    match_report: MatchReport
    validation_report: ValidationReport


class ValidationAnswer(TypedDict):
    """The answer of `validate_match_report`."""

    trace_id: str
    validation_report: ValidationReport


class RequirementDecision(TypedDict):
    """The atom chosen for a requirement, with its evidence."""

    requirement_text: str
    atom_id: str | None
    evidence_tokens: list[str]


class ValidationSummary(TypedDict):
    """Summary of a validation.

    Attributes:
        fail_count: Findings of severity BLOCK and FAIL.
        top_rule_ids: At most three.
    """

    status: str
    finding_count: int
    fail_count: int
    warn_count: int
    top_rule_ids: list[str]


class Decision(TypedDict):
    """The decision of a match."""

    decision_id: str
    trace_id: str
    artifact_id: str
    opportunity_id: str
    created_at: str
    version: str
    requirement_decisions: list[RequirementDecision]
    retrieval_stats: RetrievalStats
    validation_summary: ValidationSummary


class DecisionList(TypedDict):
    """The decisions of a trace, the oldest first."""

    trace_id: str
    decisions: list[Decision]


class GivenMatch(BaseModel):
    """One requirement of a report."""

    requirement_text: str = ""
    matched: bool = False
    best_score: FiniteFloat = 0.0
    contributing_atom_id: str | None = None
    evidence_tokens: list[str] = []


class GivenReport(BaseModel):
    """A report, such as match_report of `match_opportunity`."""

    opportunity_id: str
    overall_score: FiniteFloat
    requirement_matches: Annotated[
        list[GivenMatch], Field(description="As in the answer of match_opportunity.")
    ]
