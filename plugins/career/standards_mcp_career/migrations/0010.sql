-- The first version of this plugin. Versions 5 to 9 were steps before its first release.
CREATE TABLE decision_records (
    number INTEGER PRIMARY KEY NOT NULL,
    decision_id TEXT NOT NULL UNIQUE,
    trace_id TEXT NOT NULL,
    decision_json TEXT NOT NULL
);
CREATE INDEX idx_decision_records_trace ON decision_records (trace_id, number);
CREATE TABLE id_counters (name TEXT PRIMARY KEY NOT NULL, value INTEGER NOT NULL);
INSERT INTO id_counters
    SELECT 'run', max(CAST(substr(run_id, 5) AS INTEGER)) FROM index_runs
    WHERE run_id GLOB 'run-[0-9]*' GROUP BY substr(run_id, 1, 4);
ALTER TABLE interactions ADD COLUMN transition_index INTEGER NOT NULL DEFAULT '0';
CREATE TABLE interaction_receipts (
    interaction_id TEXT NOT NULL REFERENCES interactions (interaction_id),
    idempotency_key TEXT NOT NULL,
    event TEXT NOT NULL,
    after_state INTEGER NOT NULL,
    transition_index INTEGER NOT NULL,
    PRIMARY KEY (interaction_id, idempotency_key)
);
ALTER TABLE index_entries ADD COLUMN stale INTEGER NOT NULL DEFAULT '0';
ALTER TABLE audit_events ADD COLUMN previous_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_events ADD COLUMN event_hash TEXT NOT NULL DEFAULT '';
