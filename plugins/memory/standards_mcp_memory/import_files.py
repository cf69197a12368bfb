"""Read memories from files and folders, and write and read them as JSONL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, ValidationError

from standards_mcp import InvalidInputError

from .import_markdown import Split, UnreadableError, read_markdown
from .records import LARGEST_ID, SOURCE_KEY, STORED, Document, Draft, Origin, origins_in
from .schemas import Skipped, check_no_surrogates

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

    def skip(self, where: str, reason: str) -> None:
        """Report a part from which no memory is imported."""
        self.skipped.append({"where": where, "reason": reason})

    def skip_unreadable(self, where: str, reason: str) -> None:
        """Report an unreadable part, which may contain memories."""
        self.skip(where, reason)
        self.is_incomplete = True

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
    root = path.resolve()
    source = Source(path, str(root))
    for file in _files(path):
        source.has_files = True
        where = str(file.relative_to(path)) if path.is_dir() else file.name
        if not file.resolve().is_relative_to(root):
            source.skip(where, "is a link that leads out of the folder")
            continue
        try:
            _read(source, file, where, split)
        except (UnreadableError, OSError) as error:
            source.skip_unreadable(where, str(error))
        except UnicodeDecodeError:
            source.skip_unreadable(where, "is not in UTF-8")
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


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if path.suffix.lower() not in _ENDINGS:
            raise InvalidInputError(f"{path}: give a folder, or a file in {', '.join(_ENDINGS)}.")
        return [path]
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in _ENDINGS
        and file.is_file()
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    ]


def _read(source: Source, file: Path, where: str, split: Split) -> None:
    text = file.read_bytes().decode("utf-8-sig")
    if file.suffix.lower() == _JSONL:
        items, skip_invalid = _read_jsonl(text, where), source.skip_unreadable
    else:
        origin = Origin(source.root, str(file.resolve()))
        items, skip_invalid = read_markdown(text, where, origin, split), source.skip
    for item in items:
        if not isinstance(item, Draft):
            skip_invalid(item["where"], item["reason"])
        elif item.is_empty:
            source.skip(item.where, "is empty")
        else:
            source.drafts.append(item)


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
            source.skip_unreadable(draft.where, reason)


_Text = Annotated[str, AfterValidator(check_no_surrogates)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    id: Annotated[StrictInt, Field(ge=1, le=LARGEST_ID)] | None = None
    title: _Text
    preview: _Text | None = None
    content: _Text
    tags: list[_Text] | None = None
    source: list[dict[str, _Text]] | dict[str, _Text] | None = None


def _read_jsonl(text: str, where: str) -> Iterator[Draft | Skipped]:
    """Yield the memories of a file, and reports of invalid lines."""
    # Not splitlines: strings in JSON may contain the other line breaks of Unicode.
    for number, text_line in enumerate(text.split("\n"), 1):
        if not text_line.strip():
            continue
        position = f"{where}:{number}"
        try:
            line = _Line.model_validate(json.loads(text_line))
        except ValidationError as error:
            yield {"where": position, "reason": _first_error(error)}
            continue
        except (ValueError, RecursionError):
            yield {"where": position, "reason": "is not valid JSON"}
            continue
        tags = None if line.tags is None else tuple(line.tags)
        origins = origins_in(line.source)
        yield Draft(
            line.title, line.content, line.preview, tags, line.id, position, origins=origins
        )


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    position = ".".join(map(str, first["loc"]))
    return f"{position}: {first['msg']}" if position else first["msg"]
