"""Validates reports, and writes down what was found."""

from __future__ import annotations

from standards_mcp_career.answers import ValidationAnswer
from standards_mcp_career.audit.log import AuditLog
from standards_mcp_career.domain.ids import Ids
from standards_mcp_career.settings import Tokens
from standards_mcp_career.store import opportunities
from standards_mcp_career.store.database import Store

from .override import Override, counts
from .reports import GivenReport
from .rules import optional_texts, validate


class Validation:
    """Validates match reports."""

    def __init__(self, store: Store, audit: AuditLog, ids: Ids, tokens: Tokens) -> None:
        self._store, self._audit, self._ids = store, audit, ids
        self._tokens: Tokens = tokens

    def validate_match_report(
        self,
        report: GivenReport,
        trace_id: str | None = None,
        override: Override | None = None,
    ) -> ValidationAnswer:
        """Return what the rules find.

        Args:
            override: What a person says to a rule that blocks; only commands have it.

        Raises:
            ApiError: The database fails.
        """
        drawn = self._ids.new("trace")
        trace_id = trace_id or drawn
        with self._store.reading() as connection:
            stored = opportunities.get(connection, report.opportunity_id)
        found = validate(report, trace_id, self._tokens, optional_texts(stored))
        told = {"status": found["status"], "finding_count": found["finding_count"]}
        self._audit.append(trace_id, "ValidationCompleted", told, [report.opportunity_id])
        if override and counts(override, found):
            found["status"] = "overridden"
            by = override.model_dump(include={"rule_id", "operator_id", "reason"})
            self._audit.append(trace_id, "ConstitutionOverrideApplied", by)
        return {"trace_id": trace_id, "validation_report": found}
