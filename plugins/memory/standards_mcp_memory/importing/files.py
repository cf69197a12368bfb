"""Files and folders of memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from standards_mcp import InvalidInputError
from standards_mcp_memory.answers import Skipped
from standards_mcp_memory.origins import Reading
from standards_mcp_memory.records import Draft

from .jsonl import read_jsonl
from .markdown import read_file, read_headings
from .problems import UnreadableError

Split: TypeAlias = Literal["file", "headings"]
_JSONL: Final = ".jsonl"
_ENDINGS: Final = (".md", ".markdown", _JSONL)


@dataclass(slots=True)
class Source:
    """What was read, and what was left out.

    Attributes:
        path: The path as it was given.
        root: The whole path of what was imported.
        files: The whole paths of the files that were read.
        has_files: True if there are files, also if they could not be read.
        is_damaged: Memories may be missing, since a file or a line could not be read.
    """

    path: Path
    root: str
    files: set[str] = field(default_factory=set[str])
    has_files: bool = False
    drafts: list[Draft] = field(default_factory=list[Draft])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    is_damaged: bool = False

    def skip(self, where: str, reason: str) -> None:
        """Note what holds no memory."""
        self.skipped.append({"where": where, "reason": reason})

    def miss(self, where: str, reason: str) -> None:
        """Note what could not be read, and may hold memories."""
        self.skip(where, reason)
        self.is_damaged = True

    def reading(self) -> Reading:
        """Return the texts that the files state."""
        origins = [each.origin for each in self.drafts if each.origin]
        return Reading(self.files, {each.statement for each in origins})

    def check(self) -> None:
        """Check that there are files to import.

        Raises:
            InvalidInputError: The folder has none.
        """
        if not self.has_files:
            raise InvalidInputError(f"{self.path} has no files in {', '.join(_ENDINGS)}.")


def read_source(path: Path, split: Split = "headings") -> Source:
    """Read a file, or the Markdown and JSONL files of a folder.

    Raises:
        InvalidInputError: The path is a file of another form.
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
            source.miss(where, str(error))
        except UnicodeDecodeError:
            source.miss(where, "is not in UTF-8")
        else:
            source.files.add(str(file.resolve()))
    _leave_out_replaced(source)
    return source


def _leave_out_replaced(source: Source) -> None:
    """Leave out the lines whose id a later line has with another text."""
    last = {each.id: each for each in source.drafts if each.id is not None}
    drafts, source.drafts = source.drafts, []
    for each in drafts:
        later = each if each.id is None else last[each.id]
        if replace(each, where=later.where) == later:
            source.drafts.append(each)
        else:
            source.miss(each.where, f"has the id {each.id}, and {later.where} has it, too")


def _read(source: Source, file: Path, where: str, split: Split) -> None:
    text = file.read_bytes().decode("utf-8-sig")
    form = _form(file, split)
    for each in _READERS[form](text, where):
        if not isinstance(each, Draft):
            leave_out = source.miss if form == "jsonl" else source.skip
            leave_out(each["where"], each["reason"])
        elif each.is_empty:
            source.skip(each.where, "is empty")
        elif form == "jsonl" or each.origin is None:
            source.drafts.append(each)
        else:
            version = each.version(each.origin.key)
            origin = replace(
                each.origin, root=source.root, file=str(file.resolve()), version=version
            )
            source.drafts.append(replace(each, origin=origin))


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


def _form(file: Path, split: Split) -> str:
    return "jsonl" if file.suffix.lower() == _JSONL else split


_READERS: Final[Mapping[str, Callable[[str, str], Iterable[Draft | Skipped]]]] = {
    "jsonl": read_jsonl,
    "file": read_file,
    "headings": read_headings,
}
