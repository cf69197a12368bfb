"""Match opportunities: report, validation, decision and audit events."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from standards_mcp import InvalidInputError, NotFoundError

from .answers import Decision, DecisionList, GivenReport, MatchAnswer, MatchReport, ValidationReport
from .audit import AuditLog, Entry
from .records import Atom, Opportunity, StoredDecision, Tokens, with_split_tags
from .scoring import Matcher, Options, WordIndex
from .tables import atoms_revision, find, insert, scan
from .validation import optional_texts, validate
from .vectors import Embedder, MemoryVectors

_VERSION: Final = "0.3"
_MAX_TOP_RULES: Final = 3


# The setting `tokens` of a match is in the audit log only: a report has the fields of the original
# program.
class Matching:
    """Match opportunities with the verified atoms.

    Args:
        embedder: None without vectors.
        rule: The setting ``tokens``.
    """

    def __init__(
        self, audit: AuditLog, embedder: Embedder | None, vectors: MemoryVectors, rule: Tokens
    ) -> None:
        self._store, self._audit = audit.store, audit
        self._embedder, self._vectors = embedder, vectors
        self._rule: Tokens = rule
        self._cached_words: tuple[int, WordIndex] | None = None
        self._words_lock = threading.Lock()

    def match_opportunity(
        self,
        *,
        options: Options,
        opportunity_id: str | None = None,
        opportunity: Opportunity | None = None,
        atom_ids: Sequence[str] | None = None,
        resume_id: str | None = None,
        trace_id: str | None = None,
    ) -> MatchAnswer:
        """Match one opportunity, by its id or inline.

        Args:
            opportunity: An opportunity that is not stored, validated by the rules of `records`.
            atom_ids: The atoms to consider; None for all.
            resume_id: Recorded in the audit log only.

        Raises:
            InvalidInputError: Neither or both of *opportunity_id* and *opportunity* are given.
            NotFoundError: The opportunity or an atom does not exist.
            ApiError: The database or the encoder fails.
        """
        trace_id = self._audit.trace(trace_id)
        if (opportunity is None) == (opportunity_id is None):
            raise InvalidInputError("Must provide either opportunity or opportunity_id")
        started = {"source": "app_service", "operation": "match_pipeline"}
        if resume_id is not None:
            started["resume_id"] = resume_id
        if self._rule != "original":  # events of the original stay unchanged
            started["tokens"] = self._rule
        self._audit.append(trace_id, "RunStarted", started)
        if opportunity_id is not None:
            with self._store.reading() as connection:
                opportunity = find(connection, Opportunity, opportunity_id)
        elif opportunity is not None:
            opportunity = with_split_tags(opportunity, self._rule)
        if opportunity is None:
            raise NotFoundError(f"Opportunity not found: {opportunity_id}")
        words = self._current_words()
        allowed = words.mask(atom_ids)
        report = Matcher(words, allowed, options, self._vectors, self._embedder).report(opportunity)
        optional = optional_texts(opportunity)
        validation = validate(GivenReport.model_validate(report), trace_id, self._rule, optional)
        decision_id = self._store_decision(report, validation)
        return {
            "trace_id": trace_id,
            "decision_id": decision_id,
            "match_report": report,
            "validation_report": validation,
        }

    def get_decision(self, decision_id: str) -> Decision:
        """Return a decision.

        Raises:
            NotFoundError: The decision does not exist.
        """
        with self._store.reading() as connection:
            stored = find(connection, StoredDecision, decision_id)
        if stored is None:
            raise NotFoundError(f"Decision not found: {decision_id}")
        decision: Decision = stored.decision
        return decision

    def list_decisions(self, trace_id: str) -> DecisionList:
        """Return the decisions of a trace; the list is empty for an unknown trace."""
        with self._store.reading() as connection:
            stored = scan(connection, StoredDecision, trace_id, column="trace_id")
            return {"trace_id": trace_id, "decisions": [row.decision for row in stored]}

    def _current_words(self) -> WordIndex:
        """Return the word index of the stored atoms, rebuilt if they have changed."""
        with self._words_lock, self._store.reading() as connection:
            revision = atoms_revision(connection)
            if self._cached_words is None or self._cached_words[0] != revision:
                self._cached_words = revision, WordIndex(scan(connection, Atom), self._rule)
            return self._cached_words[1]

    def _store_decision(self, report: MatchReport, validation: ValidationReport) -> str:
        """Store the decision of a match with its events, and return its id."""
        opportunity_id, trace_id = report["opportunity_id"], validation["trace_id"]
        findings = validation["findings"]
        severities = [finding["severity"] for finding in findings]
        rules = list(dict.fromkeys(finding["rule_id"] for finding in findings))
        decision: Decision = {
            "decision_id": self._audit.new_id("decision"),
            "trace_id": trace_id,
            "artifact_id": validation["artifact_id"],
            "opportunity_id": opportunity_id,
            "created_at": self._audit.now(),
            "version": _VERSION,
            "requirement_decisions": [
                {
                    "requirement_text": match["requirement_text"],
                    "atom_id": match["contributing_atom_id"],
                    "evidence_tokens": match["evidence_tokens"],
                }
                for match in report["requirement_matches"]
            ],
            "retrieval_stats": report["retrieval_stats"],
            "validation_summary": {
                "status": validation["status"],
                "finding_count": len(findings),
                "fail_count": severities.count("BLOCK") + severities.count("FAIL"),
                "warn_count": severities.count("WARN"),
                "top_rule_ids": rules[:_MAX_TOP_RULES],
            },
        }
        ids = {"decision_id": decision["decision_id"], "opportunity_id": opportunity_id}
        match = {"opportunity_id": opportunity_id, "overall_score": report["overall_score"]}
        verdict = {"status": validation["status"], "finding_count": len(findings)}
        events = [
            Entry("MatchCompleted", match, [opportunity_id]),
            Entry("ValidationCompleted", verdict, [opportunity_id]),
            Entry("RunCompleted", {"status": "success"}),
            Entry("DecisionRecorded", ids, [opportunity_id, decision["decision_id"]]),
        ]
        row = {"decision_id": decision["decision_id"], "trace_id": trace_id, "decision": decision}
        with self._store.writing() as connection:
            insert(connection, "decision_records", [row])
            self._audit.write(connection, trace_id, events)
        return decision["decision_id"]
