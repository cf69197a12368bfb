"""Read resumes: allowed folders, text extraction, normal form and storage."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from standards_mcp import InvalidInputError, NotFoundError

from . import document_worker
from .audit import AuditLog
from .primitives import Clock, Ids, hash64, sha256
from .schemas import IngestAnswer
from .store.database import Store
from .store.repositories import Resume, ResumeMeta, add_resume, find_resume

Roots: TypeAlias = Sequence[Path] | None
"""Absolute folders that must contain the file; None for commands, whose user names any file."""
_WHERE: Final = (
    "It is missing or cannot be read, or it is not in a folder of plugins.career.resume_roots, or "
    "in a hidden folder. Check the path, or move the file there."
)
_NO_ROOTS: Final = (
    "No folder of resumes is configured. Set plugins.career.resume_roots to your folders, such as "
    '["~/resumes"], or run `standards-mcp career ingest PATH`, which reads any file.'
)


def readable_path(input_path: str, roots: Roots) -> Path:
    """Return the real path of a file, symbolic links followed.

    Raises:
        InvalidInputError: The path is not absolute.
        NotFoundError: The file does not exist or may not be read. The error is the same for both,
            because callers may be remote and must not learn which files exist.
    """
    path = Path(input_path)
    if not path.is_absolute():
        raise InvalidInputError(f"input_path must be an absolute path, not {input_path!r}.")
    if roots is not None and not roots:
        raise failed_to_open(input_path, roots)
    try:
        real = path.resolve()
        is_inside = roots is None or any(real.is_relative_to(root.resolve()) for root in roots)
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a NUL
        raise failed_to_open(input_path, roots) from error
    # Also if the root itself is hidden: a rule without an exception is easier to rely on.
    is_hidden = roots is not None and any(part.startswith(".") for part in real.parts)
    if is_hidden or not is_inside:
        raise failed_to_open(input_path, roots)
    return real


def read_bytes(path: Path, input_path: str, most: int, roots: Roots) -> bytes:
    """Return the content of a file.

    Args:
        input_path: The path as it was given, for errors.
        most: Maximum number of bytes.

    Raises:
        InvalidInputError: The file is empty or too large.
        NotFoundError: The file cannot be read.
    """
    try:
        if not path.is_file():  # a pipe would make its reader wait
            raise failed_to_open(input_path, roots)
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise failed_to_open(input_path, roots) from error
    if len(data) > most:
        raise InvalidInputError(
            f"The file has more than {most:,} bytes, which plugins.career.max_resume_bytes limits."
        )
    if not data:
        raise InvalidInputError("Empty input data")
    return data


def failed_to_open(input_path: str, roots: Roots) -> NotFoundError:
    """Return the error for a file that cannot be read, the same for each reason."""
    message = f"Ingestion failed: Failed to open file: {input_path}"
    if roots is None:
        return NotFoundError(message)
    return NotFoundError(f"{message}. {_WHERE if roots else _NO_ROOTS}")


_METHODS: Final[Mapping[str, str]] = {
    ".md": "md-pass-through-v1",
    ".markdown": "md-pass-through-v1",
    ".txt": "txt-wrap-v1",
    ".text": "txt-wrap-v1",
    ".docx": "docx-extract-v1",
    ".pdf": "pdf-text-extract-v1",
}
EXTENSIONS: Final = tuple(_METHODS)
"""The extensions that are read, in lower case."""
_PACKED: Final = (".docx", ".pdf")
_AS_IT_IS: Final = (".md", ".markdown")


class Extracted(NamedTuple):
    """The text of a resume, not normalised.

    Attributes:
        method: Its name, which has a version.
    """

    markdown: str
    method: str


def check_extension(extension: str) -> None:
    """Refuse unknown file types.

    Raises:
        InvalidInputError: The lowercase extension is not in `EXTENSIONS`.
    """
    if extension not in EXTENSIONS:
        raise InvalidInputError(
            f"A resume has one of these extensions: {', '.join(EXTENSIONS)}; "
            f"not {extension or 'none'}."
        )


def extract(data: bytes, extension: str, *, marks_lists: bool = False) -> Extracted:
    """Extract the text of a file.

    Args:
        extension: One of `EXTENSIONS`.
        marks_lists: Mark the headings and list items of a Word document.

    Raises:
        InvalidInputError: The file has no text, or cannot be read.
    """
    more = [document_worker.MARKED] if marks_lists else []
    text = _unpacked(data, extension, *more) if extension in _PACKED else _decoded(data)
    if not text.strip():
        raise _extraction_error("it has no text; if it is a scan, run text recognition (OCR) first")
    markdown = text if extension in _AS_IT_IS else f"# Resume\n\n{text}"
    return Extracted(markdown, _METHODS[extension])


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _extraction_error("it is not UTF-8 text") from error


def _unpacked(data: bytes, *arguments: str) -> str:
    # Without -P, Python would import modules from the working directory.
    command = [sys.executable, "-P", "-m", document_worker.__name__, *arguments]
    try:
        # Not `anyio.to_process`: here the limits of memory and time are for one file, and a bad
        # file leaves nothing behind. It costs 0.3 s.
        done = subprocess.run(  # noqa: S603  - a module of ours
            command, input=data, capture_output=True, timeout=document_worker.SECONDS, check=False
        )
        result = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise _extraction_error(f"it takes over {document_worker.SECONDS} s to read") from error
    except ValueError as error:
        raise _extraction_error("its reader crashed; the file may be damaged") from error
    if "error" in result:
        raise _extraction_error(result["error"])
    text: str = result["text"]
    return text


def _extraction_error(why: str) -> InvalidInputError:
    return InvalidInputError(f"Extraction failed: {why}")


_MOST_BLANK: Final = 2
_MARKED_HEADING: Final = re.compile(r"(#++)\s*+(.+)")
_FENCE: Final = re.compile(r" {0,3}(?P<marks>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")


def normalise(text: str) -> str:
    """Return a text with clean line ends, few blank lines and regular headings.

    Code fences keep their ``#``. The text ends with a line feed only if the input did.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    body, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
    lines = list(_headed(_thinned(line.rstrip() for line in body.split("\n"))))
    while not end and lines and not lines[-1]:
        lines.pop()  # these lines had only spaces
    return "\n".join(lines) + end


def _thinned(lines: Iterable[str]) -> Iterator[str]:
    blank = 0
    for line in lines:
        blank = 0 if line else blank + 1
        if blank <= _MOST_BLANK:
            yield line


def _headed(lines: Iterable[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        marks = _FENCE.fullmatch(line)
        if fence:
            yield line
            if marks and marks["marks"].startswith(fence) and not marks["info"]:
                fence = ""
        elif marks:
            yield line
            fence = marks["marks"]
        else:
            heading = _MARKED_HEADING.fullmatch(line)
            yield f"{heading[1]} {heading[2]}" if heading else line


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for resume files.

    Attributes:
        roots: Absolute folders of resumes; None allows any file.
        most_bytes: Maximum size of a file.
    """

    roots: Roots
    most_bytes: int


@dataclass(frozen=True, slots=True)
class ResumeText:
    """The text of a resume, with its origin.

    Attributes:
        text: Normalised Markdown.
        method: The extraction method.
        path: The real path, with symbolic links resolved.
        file_hash: SHA-256 of the file's bytes, in hexadecimal digits.
    """

    text: str
    method: str
    path: Path
    file_hash: str


def read_resume(input_path: str, limits: Limits, *, marks_lists: bool = False) -> ResumeText:
    """Read a file.

    Args:
        marks_lists: Write Markdown marks for the styles of a Word document: headings, list items.

    Raises:
        InvalidInputError: The file type is unknown, or the file has no readable text.
        NotFoundError: The file does not exist or may not be read.
    """
    path = readable_path(input_path, limits.roots)
    extension = path.suffix.lower()
    check_extension(extension)
    data = read_bytes(path, input_path, limits.most_bytes, limits.roots)
    extracted = extract(data, extension, marks_lists=marks_lists)
    file_hash = hashlib.sha256(data).hexdigest()
    return ResumeText(normalise(extracted.markdown), extracted.method, path, file_hash)


_VERSION: Final = "0.3"


class Ingest:
    """Read resumes, store them and log it."""

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
            InvalidInputError: The file type is unknown, or the file has no readable text.
            NotFoundError: The file does not exist or may not be read.
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
        """Return the id of the content, and True if this call stored it."""
        with self._store.writing() as connection:
            stored_resume = find_resume(connection, resume_hash)
            if stored_resume is not None:
                return stored_resume.resume_id, False
            resume_id = self._ids.new("resume-")
            if persist:
                now = self._clock()
                meta = ResumeMeta(str(read.path), read.file_hash, read.method, now, _VERSION)
                add_resume(connection, Resume(resume_id, read.text, resume_hash, now, meta))
            return resume_id, persist
