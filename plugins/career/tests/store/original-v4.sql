-- A database of version 4 as programs before this plugin have made it, with a few rows.
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL);
CREATE TABLE atoms (
  atom_id TEXT PRIMARY KEY, domain TEXT NOT NULL, title TEXT NOT NULL, claim TEXT NOT NULL,
  tags_json TEXT NOT NULL, verified INTEGER NOT NULL CHECK (verified IN (0, 1)),
  evidence_refs_json TEXT NOT NULL
);
CREATE INDEX idx_atoms_verified ON atoms (verified);
CREATE TABLE opportunities (
  opportunity_id TEXT PRIMARY KEY, company TEXT NOT NULL, role_title TEXT NOT NULL,
  source TEXT NOT NULL
);
CREATE TABLE requirements (
  opportunity_id TEXT NOT NULL, idx INTEGER NOT NULL, text TEXT NOT NULL,
  tags_json TEXT NOT NULL, required INTEGER NOT NULL CHECK (required IN (0, 1)),
  PRIMARY KEY (opportunity_id, idx),
  FOREIGN KEY (opportunity_id) REFERENCES opportunities (opportunity_id) ON DELETE CASCADE
);
CREATE TABLE interactions (
  interaction_id TEXT PRIMARY KEY, contact_id TEXT NOT NULL, opportunity_id TEXT NOT NULL,
  state INTEGER NOT NULL,
  FOREIGN KEY (opportunity_id) REFERENCES opportunities (opportunity_id)
);
CREATE TABLE audit_events (
  event_id TEXT PRIMARY KEY, trace_id TEXT NOT NULL, event_type TEXT NOT NULL,
  payload TEXT NOT NULL, created_at TEXT NOT NULL, entity_ids_json TEXT NOT NULL,
  idx INTEGER NOT NULL
);
CREATE INDEX idx_audit_events_trace ON audit_events (trace_id, idx);
CREATE TABLE resumes (
  resume_id TEXT PRIMARY KEY, resume_md TEXT NOT NULL, resume_hash TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL
);
CREATE TABLE resume_meta (
  resume_id TEXT PRIMARY KEY, source_path TEXT, source_hash TEXT NOT NULL,
  extraction_method TEXT NOT NULL, extracted_at TEXT, ingestion_version TEXT NOT NULL,
  FOREIGN KEY (resume_id) REFERENCES resumes (resume_id) ON DELETE CASCADE
);
CREATE TABLE resume_token_ir (
  token_ir_id TEXT PRIMARY KEY, resume_id TEXT NOT NULL, token_ir_json TEXT NOT NULL,
  created_at TEXT NOT NULL,
  FOREIGN KEY (resume_id) REFERENCES resumes (resume_id) ON DELETE CASCADE
);
CREATE TABLE index_runs (
  run_id TEXT PRIMARY KEY, started_at TEXT, completed_at TEXT, provider_id TEXT NOT NULL,
  model_id TEXT NOT NULL, prompt_version TEXT NOT NULL, status TEXT NOT NULL,
  summary_json TEXT NOT NULL
);
CREATE TABLE index_entries (
  run_id TEXT NOT NULL, artifact_type TEXT NOT NULL, artifact_id TEXT NOT NULL,
  source_hash TEXT NOT NULL, vector_hash TEXT NOT NULL, indexed_at TEXT,
  PRIMARY KEY (run_id, artifact_type, artifact_id),
  FOREIGN KEY (run_id) REFERENCES index_runs (run_id) ON DELETE CASCADE
);
INSERT INTO schema_version VALUES (1, '2026-01-01 00:00:00'), (2, '2026-01-01 00:00:00'),
  (3, '2026-01-01 00:00:00'), (4, '2026-01-01 00:00:00');
INSERT INTO atoms VALUES ('a-''1''', 'ops', 'Platform', 'Ran Kafka', '["kafka"]', 1, '[]'),
  ('a-2', 'ops', 'Draft', 'Unverified', '[]', 0, '["x"]');
INSERT INTO opportunities VALUES ('o-1', 'Reed Works', 'Engineer', 'board');
INSERT INTO requirements VALUES ('o-1', 1, 'Terraform', '[]', 0), ('o-1', 0, 'Kafka', '[]', 1);
INSERT INTO interactions VALUES ('i-1', 'c-1', 'o-1', 2);
INSERT INTO audit_events VALUES
  ('evt-3', 'trace-0', 'Broken', '{"id":"a"b"}', 'CURRENT_TIMESTAMP', 'no list', 2),
  ('evt-1', 'trace-0', 'RunStarted', '{"source":"cli"}', 'CURRENT_TIMESTAMP', '[]', 0),
  ('evt-2', 'trace-0', 'Matched', '{}', 'CURRENT_TIMESTAMP', '["o-1"]', 1),
  ('evt-4', 'trace-1', 'RunStarted', '{}', 'CURRENT_TIMESTAMP', '[]', 7);
INSERT INTO resumes VALUES ('r-1', '# Resume', 'sha256:1', '2026-01-01');
INSERT INTO resume_meta VALUES ('r-1', NULL, '1', 'md', NULL, '0.3');
INSERT INTO index_runs VALUES ('run-3', NULL, NULL, 'p', 'm', 'v', 'completed', '{"indexed":1}');
INSERT INTO index_entries VALUES ('run-3', 'atom', 'a-2', 's', 'v', NULL);
