"""Versions 1 to 4 of the database: the schema of the original program.

Every statement may be repeated: the original used no transactions, so a file may have some of the
tables of a version that it does not list.
"""

from __future__ import annotations

from typing import Final

RECORDS: Final = (
    """
    CREATE TABLE IF NOT EXISTS atoms (
        atom_id TEXT PRIMARY KEY NOT NULL,
        domain TEXT NOT NULL,
        title TEXT NOT NULL,
        claim TEXT NOT NULL,
        tags_json TEXT NOT NULL,
        verified INTEGER NOT NULL CHECK (verified IN (0, 1)),
        evidence_refs_json TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS idx_atoms_verified ON atoms (verified)",
    """
    CREATE TABLE IF NOT EXISTS opportunities (
        opportunity_id TEXT PRIMARY KEY NOT NULL,
        company TEXT NOT NULL,
        role_title TEXT NOT NULL,
        source TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS requirements (
        opportunity_id TEXT NOT NULL
            REFERENCES opportunities (opportunity_id) ON DELETE CASCADE,
        idx INTEGER NOT NULL,
        text TEXT NOT NULL,
        tags_json TEXT NOT NULL,
        required INTEGER NOT NULL CHECK (required IN (0, 1)),
        PRIMARY KEY (opportunity_id, idx)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS interactions (
        interaction_id TEXT PRIMARY KEY NOT NULL,
        contact_id TEXT NOT NULL,
        opportunity_id TEXT NOT NULL REFERENCES opportunities (opportunity_id),
        state INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS audit_events (
        event_id TEXT PRIMARY KEY NOT NULL,
        trace_id TEXT NOT NULL,
        event_type TEXT NOT NULL,
        payload TEXT NOT NULL,
        created_at TEXT NOT NULL,
        entity_ids_json TEXT NOT NULL,
        idx INTEGER NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS idx_audit_events_trace ON audit_events (trace_id, idx)",
)
RESUMES: Final = (
    """
    CREATE TABLE IF NOT EXISTS resumes (
        resume_id TEXT PRIMARY KEY NOT NULL,
        resume_md TEXT NOT NULL,
        resume_hash TEXT NOT NULL UNIQUE,
        created_at TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS resume_meta (
        resume_id TEXT PRIMARY KEY NOT NULL REFERENCES resumes (resume_id) ON DELETE CASCADE,
        source_path TEXT,
        source_hash TEXT NOT NULL,
        extraction_method TEXT NOT NULL,
        extracted_at TEXT,
        ingestion_version TEXT NOT NULL
    )
    """,
)
# No tool reads these tokens; the table keeps the schema complete.
RESUME_TOKENS: Final = (
    """
    CREATE TABLE IF NOT EXISTS resume_token_ir (
        token_ir_id TEXT PRIMARY KEY NOT NULL,
        resume_id TEXT NOT NULL REFERENCES resumes (resume_id) ON DELETE CASCADE,
        token_ir_json TEXT NOT NULL,
        created_at TEXT NOT NULL
    )
    """,
    "CREATE INDEX IF NOT EXISTS idx_resume_token_ir_resume ON resume_token_ir (resume_id)",
)
INDEX_RUNS: Final = (
    """
    CREATE TABLE IF NOT EXISTS index_runs (
        run_id TEXT PRIMARY KEY NOT NULL,
        started_at TEXT,
        completed_at TEXT,
        provider_id TEXT NOT NULL,
        model_id TEXT NOT NULL,
        prompt_version TEXT NOT NULL,
        status TEXT NOT NULL,
        summary_json TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS index_entries (
        run_id TEXT NOT NULL REFERENCES index_runs (run_id) ON DELETE CASCADE,
        artifact_type TEXT NOT NULL,
        artifact_id TEXT NOT NULL,
        source_hash TEXT NOT NULL,
        vector_hash TEXT NOT NULL,
        indexed_at TEXT,
        PRIMARY KEY (run_id, artifact_type, artifact_id)
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS idx_index_entries_artifact
    ON index_entries (artifact_type, artifact_id)
    """,
)
