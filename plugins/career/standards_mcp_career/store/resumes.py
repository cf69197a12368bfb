"""Repository of resumes, each content once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, insert, select

from .tables import resume_meta, resumes


@dataclass(frozen=True, slots=True)
class ResumeMeta:
    """The origin of a resume.

    Attributes:
        source_hash: SHA-256 of the file's bytes, in hexadecimal digits.
        extracted_at: UTC, as 2026-01-01T00:00:00Z.
    """

    source_path: str | None
    source_hash: str
    extraction_method: str
    extracted_at: str | None
    ingestion_version: str


@dataclass(frozen=True, slots=True)
class Resume:
    """A resume, as Markdown.

    Attributes:
        resume_hash: ``sha256:`` and the hash of the Markdown.
        meta: None for a resume of another program.
    """

    resume_id: str
    markdown: str
    resume_hash: str
    created_at: str
    meta: ResumeMeta | None


def add(connection: Connection, resume: Resume) -> None:
    """Insert a new resume."""
    row = {
        "resume_id": resume.resume_id,
        "resume_md": resume.markdown,
        "resume_hash": resume.resume_hash,
        "created_at": resume.created_at,
    }
    connection.execute(insert(resumes).values(row))
    if resume.meta is not None:
        meta = {"resume_id": resume.resume_id, **asdict(resume.meta)}
        connection.execute(insert(resume_meta).values(meta))


def get(connection: Connection, resume_id: str) -> Resume | None:
    """Return the resume with this id."""
    return _one(connection, resumes.c.resume_id == resume_id)


def find(connection: Connection, resume_hash: str) -> Resume | None:
    """Return the resume with this content hash."""
    return _one(connection, resumes.c.resume_hash == resume_hash)


def read_all(connection: Connection) -> list[Resume]:
    """Return all resumes, in the order of their ids."""
    return [_resume_of(row) for row in connection.execute(_SELECT.order_by(resumes.c.resume_id))]


_SELECT = select(resumes, resume_meta).outerjoin(resume_meta)


def _one(connection: Connection, condition: ColumnElement[bool]) -> Resume | None:
    row = connection.execute(_SELECT.where(condition)).first()
    return None if row is None else _resume_of(row)


def _resume_of(row: Row[Any]) -> Resume:
    meta = None
    if row.source_hash is not None:
        meta = ResumeMeta(
            source_path=row.source_path,
            source_hash=row.source_hash,
            extraction_method=row.extraction_method,
            extracted_at=row.extracted_at,
            ingestion_version=row.ingestion_version,
        )
    return Resume(row.resume_id, str(row.resume_md), row.resume_hash, row.created_at, meta)
