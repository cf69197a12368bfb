"""A standard as Pinecone keeps it, and back.

A record's metadata may hold texts, numbers, booleans and lists of texts, no null and nothing
nested: https://docs.pinecone.io/guides/index-data/indexing-overview#metadata. What does not fit
travels as JSON text in one field. Numbers come back as floats.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, record_keys, with_prefixes

KEYS_FIELD: Final = "notation_keys"
"""The record's keys of `notation.record_keys`, so that any spelling of its code finds it."""
HASH_FIELD: Final = "content_hash"
"""What `content_hash` returned when the record was written."""
OTHER_FIELD: Final = "other_fields"
"""The fields that Pinecone cannot hold, as one JSON object."""

_OURS: Final = frozenset({KEYS_FIELD, PREFIXES_FIELD, HASH_FIELD, OTHER_FIELD, "id"})
"""What a record's own fields of these names are kept apart from."""

MAX_BATCH_RECORDS: Final = 96
MAX_BATCH_BYTES: Final = 1_900_000
MAX_RECORD_BYTES: Final = 40_000
MAX_ID_CHARACTERS: Final = 512
_GREATEST_INTEGER: Final = 2**53  # beyond it a float is no longer exact


def to_pinecone(record: StandardRecord) -> dict[str, Any]:
    """Return *record* as one line of an upsert: ``_id``, ``content`` and flat metadata."""
    known, items = StandardRecord.model_fields, record.to_dict().items()
    data = {name: value for name, value in items if value != [] or name not in known}
    fits = {name: value for name, value in data.items() if _fits(name, value)}
    others = {name: value for name, value in data.items() if name not in fits}
    if others:
        fits[OTHER_FIELD] = _json(others)
    fits[KEYS_FIELD] = sorted(record_keys(record))
    if prefixes := _prefixes(record):
        fits[PREFIXES_FIELD] = prefixes
    fits[HASH_FIELD] = content_hash(record)
    return fits


def from_pinecone(id_: str, fields: Mapping[str, Any]) -> StandardRecord:
    """Return the record that a hit's or a vector's fields describe.

    Raises:
        ValueError: The fields are not those of a standard.
    """
    data = {name: _number(value) for name, value in fields.items() if value is not None}
    others = data.pop(OTHER_FIELD, None)
    for name in (KEYS_FIELD, PREFIXES_FIELD, HASH_FIELD, "id"):
        data.pop(name, None)
    if isinstance(others, str):
        decoded = json.loads(others)
        data |= cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {}
    return StandardRecord.from_dict(data | {"_id": id_})


def readable(found: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[list[StandardRecord], int]:
    """Return the standards among *found*, and how many others there were."""
    records: list[StandardRecord] = []
    others = 0
    for id_, fields in found:
        try:
            records.append(from_pinecone(id_, fields))
        except ValueError:
            others += 1
    return records, others


def content_hash(record: StandardRecord) -> str:
    """Return 32 hexadecimal digits that change when any field of *record* does.

    They also change with what is made of its codes, which an earlier version may not have written.
    """
    data = _encoded([record.to_dict(), _prefixes(record)])
    return hashlib.sha256(data).hexdigest()[:32]


def is_id(text: str) -> bool:
    """Return whether Pinecone takes *text* as the id of a record."""
    return bool(text) and text.isascii() and "\x00" not in text and len(text) <= MAX_ID_CHARACTERS


def refusal(record: StandardRecord) -> str:
    """Return why Pinecone would refuse *record*, and with it its whole batch, or an empty text."""
    if not is_id(record.id):
        return f"its _id is not 1 to {MAX_ID_CHARACTERS} ASCII characters"
    if not record.content.strip():
        return "its content is empty, so that there is nothing to embed"
    if (size := len(_encoded(to_pinecone(record)))) > MAX_RECORD_BYTES:
        return f"it has {size:,} bytes of metadata, more than Pinecone's {MAX_RECORD_BYTES:,}"
    return ""


def batches(
    records: Iterable[StandardRecord], size: int = MAX_BATCH_RECORDS
) -> Iterator[list[StandardRecord]]:
    """Yield *records* in lists of at most *size*, each small enough for one request."""
    batch: list[StandardRecord] = []
    used = 0
    for record in records:
        length = len(_encoded(to_pinecone(record)))
        if batch and (len(batch) >= size or used + length > MAX_BATCH_BYTES):
            yield batch
            batch, used = [], 0
        batch.append(record)
        used += length
    if batch:
        yield batch


def _prefixes(record: StandardRecord) -> list[str]:
    prefixes: list[str] = with_prefixes(record.to_dict())[PREFIXES_FIELD]
    return prefixes


def _fits(name: str, value: object) -> bool:
    if name.startswith("$") or name in _OURS:
        return False
    if isinstance(value, list):
        elements = cast("list[object]", value)
        return bool(elements) and all(isinstance(element, str) for element in elements)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) <= _GREATEST_INTEGER
    return isinstance(value, str)


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _encoded(value: object) -> bytes:
    return _json(value).encode("utf-8", "replace")
