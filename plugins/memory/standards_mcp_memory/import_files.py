"""Read memories from files and folders, and write and read them as JSONL."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from standards_mcp import InvalidInputError

from .import_markdown import Split, UnreadableError, read_markdown
from .records import LARGEST_ID, SOURCE_KEY, STORED, Document, Draft, Origin, origins_in
from .schemas import Skipped, first_error

_JSONL: Final = ".jsonl"
_ENDINGS: Final = (".md", ".markdown", _JSONL)


@dataclass(slots=True)
class Source:
    """The drafts of a file or folder, and reports of skipped parts.

    Attributes:
        path: The path from the command line.
        root: The absolute path of *path*.
        files: The absolute paths of the files that were read.
        has_files: True if there are files, even unreadable ones.
        is_incomplete: True if memories may be missing because a file or a line could not be read.
    """

    path: Path
    root: str
    files: set[str] = field(default_factory=set[str])
    has_files: bool = False
    drafts: list[Draft] = field(default_factory=list[Draft])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    is_incomplete: bool = False

    def add(self, draft: Draft) -> None:
        """Add a draft, unless it is empty."""
        if draft.is_empty:
            self.skip(draft.where, "is empty")
        else:
            self.drafts.append(draft)

    def skip(self, where: str, reason: str, *, is_unreadable: bool = False) -> None:
        """Report a part from which no memory is imported; an unreadable one may contain some."""
        self.skipped.append({"where": where, "reason": reason})
        self.is_incomplete |= is_unreadable

    def check_has_files(self) -> None:
        """Check that there are files to import.

        Raises:
            InvalidInputError: The folder has no files to import.
        """
        if not self.has_files:
            raise InvalidInputError(f"{self.path} has no files in {', '.join(_ENDINGS)}.")


def read_source(path: Path, split: Split = "headings") -> Source:
    """Read a file, or the Markdown and JSONL files of a folder.

    Raises:
        InvalidInputError: The file is neither Markdown nor JSONL.
    """
    if not path.is_dir() and path.suffix.lower() not in _ENDINGS:
        raise InvalidInputError(f"{path}: give a folder, or a file in {', '.join(_ENDINGS)}.")
    root = path.resolve()
    source = Source(path, str(root))
    for file in _files(path) if path.is_dir() else [path]:
        source.has_files = True
        where = str(file.relative_to(path)) if path.is_dir() else file.name
        if not file.resolve().is_relative_to(root):
            source.skip(where, "is a link that leads out of the folder")
            continue
        try:
            text = file.read_bytes().decode("utf-8-sig")
            if file.suffix.lower() == _JSONL:
                _read_jsonl(source, text, where)
            else:
                _read_markdown(source, text, where, file, split)
        except UnicodeDecodeError:
            source.skip(where, "is not in UTF-8", is_unreadable=True)
        except (UnreadableError, OSError) as error:
            source.skip(where, str(error), is_unreadable=True)
        else:
            source.files.add(str(file.resolve()))
    _skip_replaced_lines(source)
    return source


def line_of(document: Document) -> str:
    """Return a memory as a line of JSONL for `read_source`."""
    tags = {} if document.own_tags is None else {"tags": document.own_tags}
    texts = {"title": document.title, "preview": document.preview, "content": document.content}
    origins = document.origins
    payloads = [origin.as_payload() for origin in origins]
    source = {SOURCE_KEY: payloads} if origins != (STORED,) else {}
    return json.dumps({"id": document.id, **texts, **tags, **source}, ensure_ascii=False)


def _files(folder: Path) -> list[Path]:
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.suffix.lower() in _ENDINGS
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    ]


def _read_markdown(source: Source, text: str, where: str, file: Path, split: Split) -> None:
    origin = Origin(source.root, str(file.resolve()))
    for item in read_markdown(text, where, origin, split):
        if isinstance(item, Draft):
            source.add(item)
        else:
            source.skip(item, "is outside of the second-level headings")


def _skip_replaced_lines(source: Source) -> None:
    """Skip a draft if a later one with the same id differs in a field."""
    last_by_id = {draft.id: draft for draft in source.drafts if draft.id is not None}
    drafts, source.drafts = source.drafts, []
    for draft in drafts:
        last = draft if draft.id is None else last_by_id[draft.id]
        if replace(draft, where=last.where) == last:
            source.drafts.append(draft)
        else:
            reason = f"has the id {draft.id}, and {last.where} has it, too"
            source.skip(draft.where, reason, is_unreadable=True)


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    id: Annotated[int, Field(ge=1, le=LARGEST_ID)] | None = None
    title: str
    preview: str | None = None
    content: str
    tags: tuple[str, ...] | None = None
    source: list[dict[str, str]] | dict[str, str] | None = None


def _read_jsonl(source: Source, text: str, where: str) -> None:
    # Not splitlines: strings in JSON may contain the other line breaks of Unicode.
    for number, text_line in enumerate(text.split("\n"), 1):
        position = f"{where}:{number}"
        if text_line.strip():
            try:
                line = _Line.model_validate_json(text_line)
            except ValidationError as error:
                source.skip(position, first_error(error), is_unreadable=True)
                continue
            draft = Draft(line.title, line.content, line.preview, line.tags, line.id, position)
            source.add(replace(draft, origins=origins_in(line.source)))
