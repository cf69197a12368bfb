"""Takes a resume in, and writes down that it did."""

from __future__ import annotations

from typing import Final

from standards_mcp_career.answers import IngestAnswer
from standards_mcp_career.audit.log import AuditLog
from standards_mcp_career.domain.ids import Clock, Ids
from standards_mcp_career.domain.text import hash64, sha256
from standards_mcp_career.store import resumes
from standards_mcp_career.store.database import Store
from standards_mcp_career.store.resumes import Resume, ResumeMeta

from .reading import Limits, ResumeText, read_resume

_VERSION: Final = "0.3"


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
        read = read_resume(input_path, self._limits)
        resume_hash = f"sha256:{sha256(read.text)}"
        resume_id, stored = self._stored(read, resume_hash, persist=persist)
        answer: IngestAnswer = {
            "resume_id": resume_id,
            "resume_hash": resume_hash,
            "source_hash": hash64(read.text),
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

    def _stored(self, read: ResumeText, resume_hash: str, *, persist: bool) -> tuple[str, bool]:
        """Return the id of the content, and whether it was stored just now."""
        with self._store.writing() as connection:
            known = resumes.find(connection, resume_hash)
            if known is not None:
                return known.resume_id, False
            resume_id = self._ids.new("resume-")
            if persist:
                now = self._clock()
                meta = ResumeMeta(str(read.path), read.file_hash, read.method, now, _VERSION)
                resumes.add(connection, Resume(resume_id, read.text, resume_hash, now, meta))
            return resume_id, persist
