"""The record of one standard, in the same form in every store, and its texts.

The fields have the names of the Pinecone record that the two standards tools return, so that a
record moves between stores unchanged.
"""

import hashlib
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

_T = TypeVar("_T")
_LINE_START = re.compile(r"^Depth \d+(?: \([^)\n]*\))?: ", re.MULTILINE)
# A code may hold brackets itself, as in 111.5(b)(3).
_LINE = re.compile(
    r"^Depth \d+(?: \((?P<code>.*?)\))?: (?P<text>.*(?:\n(?!Depth \d).*)*)", re.MULTILINE
)
_LONGEST_HEADING = 200
_NOT_A_WORD = re.compile(r"[\W_]+")


class StandardRecord(BaseModel):
    """One educational standard, or a heading above standards.

    Fields that are not declared here are kept and written back unchanged.

    Attributes:
        id: The standard's GUID (``_id`` in JSON).
        content: One line for each ancestor from the root, then the record itself, each
            ``Depth N (notation): description``.
        education_levels: ``Pre-K``, ``K``, ``01`` to ``12`` and the levels beyond school.
        ancestor_ids: The root first, the parent last.
        sibling_count: How many other children the parent has.
        description: The record's own text, without its ancestors.
        text_status: ``official`` or ``paraphrase``.
    """

    # The schema is built with the first record, since a server starts without any.
    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, defer_build=True)

    id: str = Field(alias="_id", min_length=1)
    content: str
    standard_set_id: str
    standard_set_title: str
    subject: str
    normalized_subject: str | None = None
    education_levels: tuple[str, ...] = ()
    document_id: str | None = None
    document_valid: str | None = None
    publication_status: str | None = None
    jurisdiction_id: str
    jurisdiction_title: str
    asn_identifier: str | None = None
    statement_notation: str | None = None
    alt_statement_notations: tuple[str, ...] = ()
    statement_label: str | None = None
    depth: int = 0
    is_leaf: bool = True
    is_root: bool = True
    parent_id: str | None = None
    root_id: str | None = None
    ancestor_ids: tuple[str, ...] = ()
    child_ids: tuple[str, ...] = ()
    sibling_count: int = 0
    description: str = ""
    source_url: str | None = None
    license: str | None = None
    text_status: str | None = None

    @model_validator(mode="after")
    def _take_description_from_content(self) -> Self:
        if not self.description and self.content:
            _, newline, own = self.content.rpartition("\nDepth ")
            last = f"Depth {own}" if newline else own
            object.__setattr__(self, "description", _LINE_START.sub("", last, count=1))
        return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that *data* (with ``_id``) describes.

        Raises:
            pydantic.ValidationError: A field is missing or has a wrong type.
        """
        return cls.model_validate(data)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON-ready data with ``_id``, without empty fields (None)."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield *items* in lists of at most *size*; consume only the items that are yielded."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def text_hash(text: str) -> str:
    """Return the key of the vector of *text*: 32 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def without_surrogates(text: str) -> str:
    """Return *text* as text that UTF-8 can hold: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def passages(text: str, span: int = 800, kept: int = 400, most: int = 4) -> list[str]:
    """Return the passages of a query to embed: the beginnings of its parts.

    A text of more than *span* characters has several parts of about equal length, *most* at most.
    Only the first *kept* characters of each are embedded: they suffice, and every word takes time.
    """
    count = min(-(-len(text) // span), most)
    parts = [text]
    if count > 1:
        parts = textwrap.wrap(text, -(-len(text) // count) + span // 20)[:count]
    return [part if len(part) <= kept else textwrap.wrap(part, kept)[0] for part in parts]


def depth_first(
    roots: Iterable[StandardRecord], by_id: Mapping[str, StandardRecord]
) -> list[StandardRecord]:
    """Return *roots*, each followed by its subtree; children keep the order of their parent.

    A record occurs once, at its first place.

    Args:
        by_id: The records below the roots by their ids; other children are left out.
    """
    ordered: dict[str, StandardRecord] = {}
    pending = list(reversed(list(roots)))
    while pending:
        record = pending.pop()
        if record.id not in ordered:
            ordered[record.id] = record
            pending += [by_id[id_] for id_ in reversed(record.child_ids) if id_ in by_id]
    return list(ordered.values())


def ancestors_text(record: Mapping[str, Any]) -> str:
    """Return the descriptions of a record's ancestors, one a line, the root first.

    They are the part of ``content`` before the record's own description.
    """
    content, description = str(record["content"]), str(record.get("description") or "")
    before = content.removesuffix(description) if description else content
    return _LINE_START.sub("", before).strip()


def nearest_heading(content: str, description: str) -> tuple[str, str] | None:
    """Return code and text of the nearest heading with a code above a standard.

    If no heading has a code, return the nearest one with an empty code; for a root, return None. A
    long text is cut.
    """
    before = content.removesuffix(description) if description else content
    lines = [(each["code"] or "", each["text"]) for each in _LINE.finditer(before)]
    headings = lines[-2::-1]  # the last one is the standard itself
    found = next((each for each in headings if each[0]), headings[0] if headings else None)
    if found is None:
        return None
    return found[0], textwrap.shorten(found[1], _LONGEST_HEADING, placeholder=" ...")


def comparable(text: str) -> str:
    """Return *text* in a form that ignores case, marks and spaces."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _NOT_A_WORD.sub(" ", folded).strip()
