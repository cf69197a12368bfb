"""The lessons and items of files, and files that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import unescape
from itertools import islice
from typing import Any, Final

from standards_mcp_alignment.provenance import digest_of
from standards_mcp_catalog.records import without_surrogates

MOST_ITEMS: Final = 50_000
"""The most items of one file."""
_LONGEST_TITLE: Final = 200
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MARKUP: Final = re.compile(r"<[a-zA-Z/!][^<>]*>")

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("id", "identifier", "item id", "lesson id", "number"),
    "title": ("title", "name", "lesson", "lesson title", "heading", "unit"),
    "text": (
        "text", "description", "activity", "activities", "objective", "objectives", "summary",
        "content", "body", "question", "prompt", "stem",
    ),
    "grade": ("grade", "grades", "grade level", "grade levels", "level", "education level"),
    "subject": ("subject", "subjects", "discipline"),
    "codes": (
        "code", "codes", "standard", "standards", "standard code", "standard codes", "alignment",
        "alignments", "aligned standards",
    ),
}  # fmt: skip
"""The names of columns of tables, and of keys of JSON objects, by the field of an `Item`."""
FIELD_OF: Final = {name: field for field, names in COLUMNS.items() for name in names}


class InputError(Exception):
    """A file or a member of an archive cannot be read; the message calls it "it"."""


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file, or a member of an archive, that was not read.

    Attributes:
        name: Path of the file as people can print it; ``archive:member`` for a member.
    """

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A lesson, an activity or a question to find standards for.

    Attributes:
        file: Name of its file.
        place: Its place in the file, such as ``row 3`` or a heading; empty for a whole file.
        id: The id that the file gives it, or an empty string.
        grade: The grade as the file writes it, or an empty string.
        codes: Codes and GUIDs of standards that the file states for it.
    """

    file: str
    place: str = ""
    id: str = ""
    title: str = ""
    text: str = ""
    grade: str = ""
    subject: str = ""
    codes: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The title and the text."""
        return self.text if self.text.startswith(self.title) else f"{self.title}\n{self.text}"

    @property
    def digest(self) -> str:
        """SHA-256 of the fields that matter for its standards, so that an item may move."""
        return digest_of([self.title, self.text, self.grade, self.subject, self.codes])

    @property
    def where(self) -> str:
        """The file, the place in it and the id, for people."""
        return ", ".join(filter(None, (self.file, self.place, self.id)))


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that was read.

    Attributes:
        sha256: Digest of the file.
        skipped: Parts of the file that cannot be read.
    """

    name: str
    sha256: str
    items: tuple[Item, ...]
    skipped: tuple[SkippedFile, ...] = ()


def make_item(file: str, place: str, fields: Mapping[str, Any]) -> Item | None:
    """Return an item, or None without a title and a text.

    Args:
        fields: Texts by the fields of `COLUMNS`; ``codes`` may be a list.
    """
    title = plain_line(str(fields.get("title") or ""))[:_LONGEST_TITLE].strip()
    text = without_markup(str(fields.get("text") or "")).strip()
    if not title and not text:
        return None
    return Item(
        file=file,
        place=plain_line(place),
        id=plain_line(str(fields.get("id") or "")),
        title=title or plain_line(text.partition("\n")[0])[:_LONGEST_TITLE],
        text=text,
        grade=plain_line(str(fields.get("grade") or "")),
        subject=plain_line(str(fields.get("subject") or "")),
        codes=tuple(dict.fromkeys(split_codes(fields.get("codes") or ""))),
    )


def checked_items(items: Iterable[Item | None]) -> list[Item]:
    """Return the items without None, as the list of one file.

    Raises:
        InputError: There are more than `MOST_ITEMS`.
    """
    kept = list(islice((item for item in items if item is not None), MOST_ITEMS + 1))
    if len(kept) > MOST_ITEMS:
        raise InputError(f"it has more than {MOST_ITEMS:,} items; split it")
    return kept


def split_codes(codes: str | Iterable[str]) -> list[str]:
    """Return the codes of a list, or of a text that separates them by commas, bars or lines."""
    parts = re.split(r"[,;|\n]", codes) if isinstance(codes, str) else list(codes)
    return [code for part in parts if (code := plain_line(str(part)))]


def plain_text(text: str) -> str:
    """Return *text* as UTF-8 can hold it, without control characters."""
    return _CONTROL.sub(" ", without_surrogates(text).replace("\r\n", "\n").replace("\r", "\n"))


def plain_line(text: str) -> str:
    """Return *text* as one line, with single spaces."""
    return " ".join(plain_text(text).split())


def without_markup(text: str) -> str:
    """Return *text* without HTML tags, with their entities resolved."""
    text = plain_text(text)
    if not _MARKUP.search(text):
        return text
    return re.sub(r"[ \t]+", " ", plain_text(unescape(_MARKUP.sub(" ", text))))
