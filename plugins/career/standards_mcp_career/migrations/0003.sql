-- No tool reads these tokens; the table keeps the schema complete.
CREATE TABLE IF NOT EXISTS resume_token_ir (
    token_ir_id TEXT PRIMARY KEY NOT NULL,
    resume_id TEXT NOT NULL REFERENCES resumes (resume_id) ON DELETE CASCADE,
    token_ir_json TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_resume_token_ir_resume ON resume_token_ir (resume_id);
