CREATE TABLE IF NOT EXISTS index_runs (
    run_id TEXT PRIMARY KEY NOT NULL,
    started_at TEXT,
    completed_at TEXT,
    provider_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    prompt_version TEXT NOT NULL,
    status TEXT NOT NULL,
    summary_json TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS index_entries (
    run_id TEXT NOT NULL REFERENCES index_runs (run_id) ON DELETE CASCADE,
    artifact_type TEXT NOT NULL,
    artifact_id TEXT NOT NULL,
    source_hash TEXT NOT NULL,
    vector_hash TEXT NOT NULL,
    indexed_at TEXT,
    PRIMARY KEY (run_id, artifact_type, artifact_id)
);
CREATE INDEX IF NOT EXISTS idx_index_entries_artifact
ON index_entries (artifact_type, artifact_id);
