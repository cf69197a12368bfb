-- Versions 1 to 4 are the schema of the original program. It used no transactions, so a file may
-- have tables of a version that it does not list: hence IF NOT EXISTS.
CREATE TABLE IF NOT EXISTS atoms (
    atom_id TEXT PRIMARY KEY NOT NULL,
    domain TEXT NOT NULL,
    title TEXT NOT NULL,
    claim TEXT NOT NULL,
    tags_json TEXT NOT NULL,
    verified INTEGER NOT NULL CHECK (verified IN (0, 1)),
    evidence_refs_json TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_atoms_verified ON atoms (verified);
CREATE TABLE IF NOT EXISTS opportunities (
    opportunity_id TEXT PRIMARY KEY NOT NULL,
    company TEXT NOT NULL,
    role_title TEXT NOT NULL,
    source TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS requirements (
    opportunity_id TEXT NOT NULL
        REFERENCES opportunities (opportunity_id) ON DELETE CASCADE,
    idx INTEGER NOT NULL,
    text TEXT NOT NULL,
    tags_json TEXT NOT NULL,
    required INTEGER NOT NULL CHECK (required IN (0, 1)),
    PRIMARY KEY (opportunity_id, idx)
);
CREATE TABLE IF NOT EXISTS interactions (
    interaction_id TEXT PRIMARY KEY NOT NULL,
    contact_id TEXT NOT NULL,
    opportunity_id TEXT NOT NULL REFERENCES opportunities (opportunity_id),
    state INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS audit_events (
    event_id TEXT PRIMARY KEY NOT NULL,
    trace_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    payload TEXT NOT NULL,
    created_at TEXT NOT NULL,
    entity_ids_json TEXT NOT NULL,
    idx INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_audit_events_trace ON audit_events (trace_id, idx);
