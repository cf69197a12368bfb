"""Match opportunities: report, validation, decision and audit events."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, cast

from standards_mcp import InvalidInputError, NotFoundError

from .atom_words import Mask, WordIndex, word_index
from .audit import AuditLog, Entry
from .primitives import Clock, Ids, words_by
from .records import Opportunity, normalised_opportunity, problem
from .schemas import Decision, DecisionList, GivenReport, MatchAnswer, MatchReport, ValidationReport
from .scoring import Matcher, Options, match
from .settings import Tokens
from .store.database import Store
from .store.repositories import (
    add_decision,
    all_atoms,
    atoms_revision,
    decisions_of_trace,
    get_decision,
    get_opportunity,
)
from .validation import optional_texts, validate
from .vectors import Embedder, VectorStore

_VERSION: Final = "0.3"
_MOST_RULES: Final = 3


# The rule of a match is in the audit log only, because a report has the original program's fields.
class Matching:
    """Match opportunities with the verified atoms.

    Args:
        embedder: None without vectors.
    """

    def __init__(  # noqa: PLR0913  - the parts that a match needs
        self,
        store: Store,
        audit: AuditLog,
        ids: Ids,
        clock: Clock,
        embedder: Embedder | None,
        vectors: VectorStore,
        *,
        tokens: Tokens,
    ) -> None:
        self._store, self._audit, self._ids, self._clock = store, audit, ids, clock
        self._embedder, self._vectors = embedder, vectors
        self._tokens: Tokens = tokens
        self._words: tuple[int, WordIndex] | None = None
        self._reading = threading.Lock()

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
            atom_ids: The atoms to consider; None for all.
            resume_id: Recorded in the audit log only.

        Raises:
            InvalidInputError: Neither or both of the opportunities are given, or the inline one is
                invalid.
            NotFoundError: The opportunity or an atom does not exist.
            ApiError: The database or the encoder fails.
        """
        drawn = self._ids.new("trace")
        trace_id = trace_id or drawn
        if (opportunity is None) == (opportunity_id is None):
            raise InvalidInputError("Must provide either opportunity or opportunity_id")
        inline = None if opportunity is None else _checked(opportunity, self._tokens)
        started = {"source": "app_service", "operation": "match_pipeline"}
        if resume_id is not None:
            started["resume_id"] = resume_id
        if self._tokens != "original":  # events of the original stay unchanged
            started["tokens"] = self._tokens
        self._audit.append(trace_id, "RunStarted", started)
        wanted = inline or self._stored(opportunity_id or "")
        words = self._current_words()
        allowed = _allowed(words, atom_ids)
        matcher = Matcher(words, allowed, options, self._vectors, self._embedder)
        report = match(wanted, words, matcher, options)
        validation = validate(
            GivenReport.model_validate(report), trace_id, self._tokens, optional_texts(wanted)
        )
        decision = self._decision(report, validation)
        self._write(report, validation, decision)
        return {
            "trace_id": trace_id,
            "decision_id": decision["decision_id"],
            "match_report": report,
            "validation_report": validation,
        }

    def get_decision(self, decision_id: str) -> Decision:
        """Return a decision.

        Raises:
            NotFoundError: The decision does not exist.
        """
        with self._store.reading() as connection:
            decision = get_decision(connection, decision_id)
        if decision is None:
            raise NotFoundError(f"Decision not found: {decision_id}")
        return cast("Decision", decision)

    def list_decisions(self, trace_id: str) -> DecisionList:
        """Return the decisions of a trace, empty for an unknown trace."""
        with self._store.reading() as connection:
            decisions = decisions_of_trace(connection, trace_id)
        return {"trace_id": trace_id, "decisions": cast("list[Decision]", decisions)}

    def _stored(self, opportunity_id: str) -> Opportunity:
        with self._store.reading() as connection:
            opportunity = get_opportunity(connection, opportunity_id)
        if opportunity is None:
            raise NotFoundError(f"Opportunity not found: {opportunity_id}")
        return opportunity

    def _current_words(self) -> WordIndex:
        """Return the word index of the current atoms, rebuilt after a change."""
        with self._reading, self._store.reading() as connection:
            revision = atoms_revision(connection)
            if self._words is None or self._words[0] != revision:
                self._words = revision, word_index(all_atoms(connection), self._tokens)
            return self._words[1]

    def _decision(self, report: MatchReport, validation: ValidationReport) -> Decision:
        findings = validation["findings"]
        severities = [finding["severity"] for finding in findings]
        rules = list(dict.fromkeys(finding["rule_id"] for finding in findings))
        return {
            "decision_id": self._ids.new("decision"),
            "trace_id": validation["trace_id"],
            "artifact_id": validation["artifact_id"],
            "opportunity_id": report["opportunity_id"],
            "created_at": self._clock(),
            "version": _VERSION,
            "requirement_decisions": [
                {
                    "requirement_text": matched["requirement_text"],
                    "atom_id": matched["contributing_atom_id"],
                    "evidence_tokens": matched["evidence_tokens"],
                }
                for matched in report["requirement_matches"]
            ],
            "retrieval_stats": report["retrieval_stats"],
            "validation_summary": {
                "status": validation["status"],
                "finding_count": len(findings),
                "fail_count": severities.count("BLOCK") + severities.count("FAIL"),
                "warn_count": severities.count("WARN"),
                "top_rule_ids": rules[:_MOST_RULES],
            },
        }

    def _write(self, report: MatchReport, validation: ValidationReport, decision: Decision) -> None:
        opportunity_id, decision_id = report["opportunity_id"], decision["decision_id"]
        scored = {"opportunity_id": opportunity_id, "overall_score": report["overall_score"]}
        checked = {k: validation[k] for k in ("status", "finding_count")}
        decided = {"decision_id": decision_id, "opportunity_id": opportunity_id}
        events = [
            Entry("MatchCompleted", scored, [opportunity_id]),
            Entry("ValidationCompleted", checked, [opportunity_id]),
            Entry("RunCompleted", {"status": "success"}),
            Entry("DecisionRecorded", decided, [opportunity_id, decision_id]),
        ]
        with self._store.writing() as connection:
            add_decision(connection, decision)
            self._audit.write(connection, validation["trace_id"], events)


def _checked(opportunity: Opportunity, tokens: Tokens) -> Opportunity:
    normalised = normalised_opportunity(opportunity, words_by(tokens))
    if wrong := problem(normalised):
        raise InvalidInputError(wrong)
    return normalised


def _allowed(words: WordIndex, atom_ids: Sequence[str] | None) -> Mask:
    if atom_ids is None:
        return words.all()
    for atom_id in atom_ids:
        if atom_id not in words.known:
            raise NotFoundError(f"Atom not found: {atom_id}")
    return words.mask(atom_ids)
