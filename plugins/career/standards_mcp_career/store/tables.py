"""Tables after the last migration. Only the migrations create them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import JSON, Boolean, Column, Dialect, ForeignKey, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeDecorator
from typing_extensions import override

from standards_mcp_career.primitives import listed


class _Texts(TypeDecorator[Sequence[str]]):
    """Texts as a JSON list. Other content, as of another program, becomes one text."""

    impl = Text
    cache_ok = True

    @override
    def process_bind_param(self, value: Sequence[str] | None, dialect: Dialect) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    @override
    def process_result_value(self, value: Any | None, dialect: Dialect) -> tuple[str, ...]:
        return listed(str(value)) if value else ()


METADATA: Final = MetaData()

schema_version: Final = Table(
    "schema_version",
    METADATA,
    Column("version", Integer, primary_key=True),
    Column("applied_at", Text, nullable=False),
)
atoms: Final = Table(
    "atoms",
    METADATA,
    Column("atom_id", Text, primary_key=True),
    Column("domain", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("claim", Text, nullable=False),
    Column("tags_json", _Texts, nullable=False, key="tags"),
    Column("verified", Boolean, nullable=False),
    Column("evidence_refs_json", _Texts, nullable=False, key="evidence_refs"),
)
opportunities: Final = Table(
    "opportunities",
    METADATA,
    Column("opportunity_id", Text, primary_key=True),
    Column("company", Text, nullable=False),
    Column("role_title", Text, nullable=False),
    Column("source", Text, nullable=False),
)
requirements: Final = Table(
    "requirements",
    METADATA,
    Column("opportunity_id", Text, ForeignKey("opportunities.opportunity_id"), primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    Column("tags_json", _Texts, nullable=False, key="tags"),
    Column("required", Boolean, nullable=False),
)
interactions: Final = Table(
    "interactions",
    METADATA,
    Column("interaction_id", Text, primary_key=True),
    Column("contact_id", Text, nullable=False),
    Column("opportunity_id", Text, ForeignKey("opportunities.opportunity_id"), nullable=False),
    Column("state", Integer, nullable=False),
    Column("transition_index", Integer, nullable=False),
)
interaction_receipts: Final = Table(
    "interaction_receipts",
    METADATA,
    Column("interaction_id", Text, ForeignKey("interactions.interaction_id"), primary_key=True),
    Column("idempotency_key", Text, primary_key=True),
    Column("event", Text, nullable=False),
    Column("after_state", Integer, nullable=False),
    Column("transition_index", Integer, nullable=False),
)
audit_events: Final = Table(
    "audit_events",
    METADATA,
    Column("event_id", Text, primary_key=True),
    Column("trace_id", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("entity_ids_json", Text, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("previous_hash", Text, nullable=False),
    Column("event_hash", Text, nullable=False),
)
resumes: Final = Table(
    "resumes",
    METADATA,
    Column("resume_id", Text, primary_key=True),
    Column("resume_md", Text, nullable=False, key="markdown"),
    Column("resume_hash", Text, nullable=False, unique=True),
    Column("created_at", Text, nullable=False),
)
resume_meta: Final = Table(
    "resume_meta",
    METADATA,
    Column("resume_id", Text, ForeignKey("resumes.resume_id"), primary_key=True),
    Column("source_path", Text),
    Column("source_hash", Text, nullable=False),
    Column("extraction_method", Text, nullable=False),
    Column("extracted_at", Text),
    Column("ingestion_version", Text, nullable=False),
)
index_runs: Final = Table(
    "index_runs",
    METADATA,
    Column("run_id", Text, primary_key=True),
    Column("started_at", Text),
    Column("completed_at", Text),
    Column("provider_id", Text, nullable=False),
    Column("model_id", Text, nullable=False),
    Column("prompt_version", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("summary_json", JSON, nullable=False, key="summary"),
)
index_entries: Final = Table(
    "index_entries",
    METADATA,
    Column("run_id", Text, ForeignKey("index_runs.run_id"), primary_key=True),
    Column("artifact_type", Text, primary_key=True),
    Column("artifact_id", Text, primary_key=True),
    Column("source_hash", Text, nullable=False),
    Column("vector_hash", Text, nullable=False),
    Column("indexed_at", Text),
    Column("stale", Boolean, nullable=False),
)
decision_records: Final = Table(
    "decision_records",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("decision_id", Text, nullable=False, unique=True),
    Column("trace_id", Text, nullable=False, index=True),
    Column("decision_json", JSON, nullable=False, key="decision"),
)
id_counters: Final = Table(
    "id_counters",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Integer, nullable=False),
)
