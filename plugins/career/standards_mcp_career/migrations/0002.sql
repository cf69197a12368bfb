CREATE TABLE IF NOT EXISTS resumes (
    resume_id TEXT PRIMARY KEY NOT NULL,
    resume_md TEXT NOT NULL,
    resume_hash TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS resume_meta (
    resume_id TEXT PRIMARY KEY NOT NULL REFERENCES resumes (resume_id) ON DELETE CASCADE,
    source_path TEXT,
    source_hash TEXT NOT NULL,
    extraction_method TEXT NOT NULL,
    extracted_at TEXT,
    ingestion_version TEXT NOT NULL
);
