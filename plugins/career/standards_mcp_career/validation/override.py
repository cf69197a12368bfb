"""A person's word against a rule."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from standards_mcp_career.answers import ValidationReport
from standards_mcp_career.domain.text import sha256


class Override(BaseModel):
    """Who overrules which rule, and why.

    Attributes:
        payload_hash: The SHA-256 of the report's artifact_id, so that it counts for that alone.
    """

    model_config = ConfigDict(extra="forbid")

    rule_id: str
    operator_id: str
    reason: str
    payload_hash: str


def counts(override: Override, report: ValidationReport) -> bool:
    """Tell whether an override is for a rule that blocks this report."""
    is_for_it = override.payload_hash == sha256(report["artifact_id"])
    blocks = any(
        each["rule_id"] == override.rule_id and each["severity"] == "BLOCK"
        for each in report["findings"]
    )
    return report["status"] == "blocked" and is_for_it and blocks
