"""Read resumes: allowed folders, text extraction, normal form and storage."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from standards_mcp import InvalidInputError, NotFoundError
from standards_mcp_documents import DocumentError, DocumentReader

from .answers import IngestAnswer
from .audit import AuditLog
from .primitives import hash64, sha256
from .records import Resume
from .tables import find, insert

_ACCESS_HELP: Final = (
    "It is missing or cannot be read, or it is not in a folder of plugins.career.resume_roots, or "
    "in a hidden folder. Check the path, or move the file there."
)
_NO_ROOTS_HELP: Final = (
    "No folder of resumes is configured. Set plugins.career.resume_roots to your folders, such as "
    '["~/resumes"], or run `standards-mcp career ingest PATH`, which reads any file.'
)
_METHODS: Final[Mapping[str, str]] = {
    ".md": "md-pass-through-v1",
    ".markdown": "md-pass-through-v1",
    ".txt": "txt-wrap-v1",
    ".text": "txt-wrap-v1",
    ".docx": "docx-extract-v1",
    ".pdf": "pdf-text-extract-v1",
}
"""The name of the method by the lowercase extension."""
_VERSION: Final = "0.3"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for resume files.

    Attributes:
        roots: Absolute folders that must contain a file; None for commands, whose user names any
            file.
        max_bytes: Maximum size of a file.
    """

    roots: Sequence[Path] | None
    max_bytes: int


class ResumeText(NamedTuple):
    """The text of a file, with its origin.

    Attributes:
        markdown: The text as `normalise` returns it.
        method: The name of the extraction method, with its version.
        file_hash: SHA-256 of the file's bytes, in hexadecimal digits.
    """

    markdown: str
    method: str
    path: Path
    file_hash: str


def read_resume(input_path: str, limits: Limits, *, mark_lists: bool = False) -> ResumeText:
    """Read a resume file and normalise its text.

    Args:
        mark_lists: Mark the headings and list items of a Word document as Markdown does.

    Raises:
        InvalidInputError: The path is not absolute, the file type is unknown, or the file is too
            large or has no readable text.
        NotFoundError: The file does not exist or may not be read. The error is the same in both
            cases, because callers may be remote and must not learn which files exist.
    """
    path = _readable_path(input_path, limits.roots)
    extension = path.suffix.lower()
    if extension not in _METHODS:
        raise InvalidInputError(
            f"A resume has one of these extensions: {', '.join(_METHODS)}; "
            f"not {extension or 'none'}."
        )
    try:
        if not path.is_file():  # a pipe would make its reader wait
            raise _open_error(input_path, limits.roots)
        with path.open("rb") as file:
            data = file.read(limits.max_bytes + 1)
    except OSError as error:
        raise _open_error(input_path, limits.roots) from error
    if len(data) > limits.max_bytes:
        raise InvalidInputError(
            f"The file has more than {limits.max_bytes:,} bytes, the limit of "
            "plugins.career.max_resume_bytes."
        )
    if not data:
        raise InvalidInputError("Empty input data")
    markdown = normalise(extract(data, extension, mark_lists=mark_lists))
    return ResumeText(markdown, _METHODS[extension], path, hashlib.sha256(data).hexdigest())


def _readable_path(input_path: str, roots: Sequence[Path] | None) -> Path:
    """Return the path of a file, with symbolic links resolved."""
    path = Path(input_path)
    if not path.is_absolute():
        raise InvalidInputError(f"input_path must be an absolute path, not {input_path!r}.")
    try:
        real = path.resolve()
        is_inside = roots is None or any(real.is_relative_to(root.resolve()) for root in roots)
    except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a NUL
        raise _open_error(input_path, roots) from error
    # Also if the root itself is hidden: a rule without an exception is easier to rely on.
    is_hidden = roots is not None and any(part.startswith(".") for part in real.parts)
    if is_hidden or not is_inside:
        raise _open_error(input_path, roots)
    return real


def _open_error(input_path: str, roots: Sequence[Path] | None) -> NotFoundError:
    message = f"Ingestion failed: Failed to open file: {input_path}"
    if roots is None:
        return NotFoundError(message)
    return NotFoundError(f"{message}. {_ACCESS_HELP if roots else _NO_ROOTS_HELP}")


def extract(data: bytes, extension: str, *, mark_lists: bool = False) -> str:
    """Return the text of a file as Markdown, not normalised.

    Args:
        extension: A key of `_METHODS`.
        mark_lists: As for `read_resume`.

    Raises:
        InvalidInputError: The file has no text, or cannot be read.
    """
    try:
        if extension in (".docx", ".pdf"):
            # A process for each file costs 0.3 s, and a bad file leaves nothing behind.
            with DocumentReader() as reader:
                document = reader.parse(data, extension)
            text = document.marked_text if mark_lists else document.text
        else:
            text = data.decode("utf-8-sig")
    except DocumentError as error:
        raise InvalidInputError(f"Extraction failed: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError("Extraction failed: it is not UTF-8 text") from error
    if not text.strip():
        raise InvalidInputError("Extraction failed: it has no text")
    return text if extension in (".md", ".markdown") else f"# Resume\n\n{text}"


_MAX_BLANK_LINES: Final = 2
_MARKED_HEADING: Final = re.compile(r"(#++)\s*+(.+)")
_FENCE: Final = re.compile(r" {0,3}(?P<marks>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)")


def normalise(text: str) -> str:
    """Normalise the line ends, trailing spaces, blank lines and headings of a text.

    Code fences keep their ``#``. The text ends with a line feed only if the input did.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    body, end = (text[:-1], "\n") if text.endswith("\n") else (text, "")
    lines = list(_fix_headings(_limit_blank_lines(line.rstrip() for line in body.split("\n"))))
    while not end and lines and not lines[-1]:
        lines.pop()  # these lines had only spaces
    return "\n".join(lines) + end


def _limit_blank_lines(lines: Iterable[str]) -> Iterator[str]:
    blank = 0
    for line in lines:
        blank = 0 if line else blank + 1
        if blank <= _MAX_BLANK_LINES:
            yield line


def _fix_headings(lines: Iterable[str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        marks = _FENCE.fullmatch(line)
        heading = None if fence or marks else _MARKED_HEADING.fullmatch(line)
        yield f"{heading[1]} {heading[2]}" if heading else line
        if marks and not fence:
            fence = marks["marks"]
        elif marks and marks["marks"].startswith(fence) and not marks["info"]:
            fence = ""


def ingest_resume(
    audit: AuditLog,
    limits: Limits,
    input_path: str,
    *,
    persist: bool = True,
    trace_id: str | None = None,
) -> IngestAnswer:
    """Read a file, store its content unless it is stored already, and log the call.

    Raises:
        InvalidInputError: As `read_resume`.
        NotFoundError: As `read_resume`.
        ApiError: The database fails.
    """
    trace_id = audit.trace(trace_id)
    started = {"source": "app_service", "operation": "ingest_resume", "persist": persist}
    audit.append(trace_id, "IngestStarted", started)
    text = read_resume(input_path, limits)
    resume_hash = f"sha256:{sha256(text.markdown)}"
    with audit.store.writing() as connection:
        stored = find(connection, Resume, resume_hash, column="resume_hash")
        resume_id = stored.resume_id if stored else audit.new_id("resume-")
        is_new = persist and stored is None
        if is_new:
            now, key = audit.now(), {"resume_id": resume_id}
            content = {"markdown": text.markdown, "resume_hash": resume_hash, "created_at": now}
            origin = {
                "source_path": str(text.path),
                "source_hash": text.file_hash,
                "extraction_method": text.method,
                "extracted_at": now,
                "ingestion_version": _VERSION,
            }
            insert(connection, "resumes", [{**key, **content}])
            insert(connection, "resume_meta", [{**key, **origin}])
    answer: IngestAnswer = {
        "resume_id": resume_id,
        "resume_hash": resume_hash,
        "source_hash": hash64(text.markdown),
        "stored": is_new,
        "trace_id": trace_id,
    }
    completed = {
        "resume_id": resume_id,
        "resume_hash": resume_hash,
        "source_hash": answer["source_hash"],
        "persisted": is_new,
    }
    audit.append(trace_id, "IngestCompleted", completed, [resume_id])
    return answer
