"""Takes a resume in, and writes down that it did."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from standards_mcp_career.answers import IngestAnswer
from standards_mcp_career.audit.log import AuditLog
from standards_mcp_career.domain.ids import Clock, Ids
from standards_mcp_career.domain.text import hash64, sha256
from standards_mcp_career.store import resumes
from standards_mcp_career.store.database import Store
from standards_mcp_career.store.resumes import Resume, ResumeMeta

from .extraction import check_extension, extract
from .hygiene import normalise
from .places import read_bytes, readable_path

_VERSION: Final = "0.3"


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be read.

    Attributes:
        roots: Absolute folders, in which resumes lie.
        most_bytes: The size of a file.
    """

    roots: Sequence[Path]
    most_bytes: int


class Ingest:
    """Takes resumes in."""

    def __init__(
        self, store: Store, audit: AuditLog, ids: Ids, clock: Clock, limits: Limits
    ) -> None:
        self._store = store
        self._audit = audit
        self._ids = ids
        self._clock = clock
        self._limits = limits

    def ingest_resume(
        self, input_path: str, *, persist: bool = True, trace_id: str | None = None
    ) -> IngestAnswer:
        """Read a file, and store its content unless it is stored already.

        Raises:
            InvalidInputError: It is no file that is read, or nothing can be read in it.
            NotFoundError: There is no such file.
            ApiError: The database fails.
        """
        drawn = self._ids.new("trace")
        trace_id = trace_id or drawn
        started = {"source": "app_service", "operation": "ingest_resume", "persist": persist}
        self._audit.append(trace_id, "IngestStarted", started)
        read = self._read(input_path)
        resume_id, stored = self._stored(read, persist=persist)
        answer: IngestAnswer = {
            "resume_id": resume_id,
            "resume_hash": read.resume_hash,
            "source_hash": hash64(read.markdown),
            "stored": stored,
            "trace_id": trace_id,
        }
        completed = {
            "resume_id": resume_id,
            "resume_hash": answer["resume_hash"],
            "source_hash": answer["source_hash"],
            "persisted": stored,
        }
        self._audit.append(trace_id, "IngestCompleted", completed, [resume_id])
        return answer

    def _read(self, input_path: str) -> _Read:
        path = readable_path(input_path, self._limits.roots)
        extension = path.suffix.lower()
        check_extension(extension)
        data = read_bytes(path, input_path, self._limits.most_bytes)
        extracted = extract(data, extension)
        markdown = normalise(extracted.markdown)
        meta = ResumeMeta(
            source_path=str(path),
            source_hash=hashlib.sha256(data).hexdigest(),
            extraction_method=extracted.method,
            extracted_at=self._clock(),
            ingestion_version=_VERSION,
        )
        return _Read(markdown, f"sha256:{sha256(markdown)}", meta)

    def _stored(self, read: _Read, *, persist: bool) -> tuple[str, bool]:
        """Return the id of the content, and whether it was stored just now."""
        with self._store.writing() as connection:
            known = resumes.find(connection, read.resume_hash)
            if known is not None:
                return known.resume_id, False
            resume_id = self._ids.new("resume-")
            if persist:
                new = Resume(resume_id, read.markdown, read.resume_hash, self._clock(), read.meta)
                resumes.add(connection, new)
            return resume_id, persist


@dataclass(frozen=True, slots=True)
class _Read:
    markdown: str
    resume_hash: str
    meta: ResumeMeta
