"""Convert records and filters to forms that Pinecone accepts, and metadata to records.

The metadata of a record may be texts, numbers, booleans and lists of texts, without nulls and
nesting: https://docs.pinecone.io/guides/index-data/indexing-overview#metadata. Other values are
stored as JSON text in one field. Pinecone returns numbers as floats.

Pinecone takes ``$and`` and ``$or`` at the top of a filter only, so a nested filter is rewritten
as an ``$or`` of objects whose entries must all match:
https://docs.pinecone.io/guides/search/filter-by-metadata.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from standards_mcp.errors import FilterError
from standards_mcp.filters import And, Condition, Node, Operand, Or, Scalar
from standards_mcp_catalog.records import StandardRecord, without_surrogates
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, record_keys, with_prefixes

MODEL: Final = "llama-text-embed-v2"
TEXT_FIELD: Final = "content"
KEYS_FIELD: Final = "notation_keys"
"""The `notation.record_keys` of the record, so that any spelling of its code finds it."""
HASH_FIELD: Final = "content_hash"
"""The `content_hash` of the record when it was written."""
OTHER_FIELD: Final = "other_fields"
"""The fields that Pinecone cannot hold, as one JSON object."""

_RESERVED: Final = frozenset({KEYS_FIELD, PREFIXES_FIELD, HASH_FIELD, OTHER_FIELD, "id"})
"""Fields that this module adds; a record's own fields of these names go into `OTHER_FIELD`."""

MAX_BATCH_RECORDS: Final = 96
MAX_BATCH_BYTES: Final = 1_900_000
MAX_RECORD_BYTES: Final = 40_000
MAX_ID_CHARACTERS: Final = 512
_GREATEST_INTEGER: Final = 2**53  # a float is exact up to here


def to_pinecone(record: StandardRecord) -> dict[str, Any]:
    """Return *record* as one line of an upsert: ``_id``, ``content`` and flat metadata."""
    known, items = StandardRecord.model_fields, record.to_dict().items()
    data = {name: value for name, value in items if value != [] or name not in known}
    line = {name: value for name, value in data.items() if _fits(name, value)}
    others = {name: value for name, value in data.items() if name not in line}
    if others:
        line[OTHER_FIELD] = _json(others)
    line[KEYS_FIELD] = sorted(record_keys(record))
    if prefixes := _prefixes(record):
        line[PREFIXES_FIELD] = prefixes
    line[HASH_FIELD] = content_hash(record)
    return line


def from_pinecone(id_: str, fields: Mapping[str, Any]) -> StandardRecord:
    """Return the record for the fields of a hit or a vector.

    Raises:
        ValueError: The fields do not describe a standard.
    """
    data = {name: _number(value) for name, value in fields.items() if value is not None}
    others = data.pop(OTHER_FIELD, None)
    data = {name: value for name, value in data.items() if name not in _RESERVED}
    if isinstance(others, str):
        decoded = json.loads(others)
        data |= cast("dict[str, Any]", decoded) if isinstance(decoded, dict) else {}
    return StandardRecord.from_dict(data | {"_id": id_})


def parse_records(
    items: Iterable[tuple[str, Mapping[str, Any]]],
) -> tuple[list[StandardRecord], int]:
    """Return the records in *items*, and the number of items that are not standards."""
    records: list[StandardRecord] = []
    others = 0
    for id_, fields in items:
        try:
            records.append(from_pinecone(id_, fields))
        except ValueError:
            others += 1
    return records, others


def content_hash(record: StandardRecord) -> str:
    """Return 32 hexadecimal digits that change when any field of *record* does.

    They also change with the prefixes of its codes, which an early version did not write.
    """
    data = _encoded([record.to_dict(), _prefixes(record)])
    return hashlib.sha256(data).hexdigest()[:32]


def is_id(text: str) -> bool:
    """Return True if Pinecone accepts *text* as the id of a record."""
    return bool(text) and text.isascii() and "\x00" not in text and len(text) <= MAX_ID_CHARACTERS


def refusal(record: StandardRecord) -> str:
    """Return the reason why Pinecone would refuse a batch with *record*, or ""."""
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
    if name.startswith("$") or name in _RESERVED:
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


MAX_ALTERNATIVES: Final = 100
"""Most alternatives that may replace a nested filter."""


def pinecone_filter(node: Node | None) -> dict[str, Any] | None:
    """Return the filter in the form that Pinecone accepts, None for None.

    Raises:
        FilterError: Without nesting, the filter is impossible or too long.
    """
    if node is None:
        return None
    node = _simplified(node)
    if isinstance(node, Condition):
        return _condition(node)
    if all(isinstance(operand, Condition) for operand in node.operands):
        conditions = [_condition(each) for each in node.operands if isinstance(each, Condition)]
        return {"$and" if isinstance(node, And) else "$or": conditions}
    alternatives = list(itertools.islice(_alternatives(node), MAX_ALTERNATIVES + 1))
    if len(alternatives) > MAX_ALTERNATIVES:
        raise FilterError(
            f"Without nesting, the filter has more than {MAX_ALTERNATIVES} alternatives, too many "
            "for Pinecone. Use $in instead of $or, or fewer conditions."
        )
    return {"$or": [_merged(alternative) for alternative in alternatives]}


def _simplified(node: Node) -> Node:
    """Return an equal filter with less nesting: ``$or`` of values of one field becomes ``$in``."""
    if isinstance(node, Condition):
        return node
    kind = type(node)
    flat: list[Node] = []
    for operand in map(_simplified, node.operands):
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    if isinstance(node, Or):
        flat = list(_with_in(flat))
    return flat[0] if len(flat) == 1 else kind(tuple(flat))


def _with_in(nodes: Sequence[Node]) -> Iterator[Node]:
    by_field: dict[str, list[Condition]] = {}
    others: list[Node] = []
    for node in nodes:
        if isinstance(node, Condition) and node.operator in ("$eq", "$in"):
            by_field.setdefault(node.field, []).append(node)
        else:
            others.append(node)
    for field, same in by_field.items():
        values = _unique(value for each in same for value in _as_tuple(each.operand))
        yield same[0] if len(same) == 1 else Condition(field, "$in", values)
    yield from others


def _unique(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple({(isinstance(value, bool), value): value for value in values}.values())


def _as_tuple(operand: Operand) -> tuple[Any, ...]:
    return operand if isinstance(operand, tuple) else (operand,)


def _alternatives(node: Node) -> Iterator[tuple[Condition, ...]]:
    """Yield the alternatives of a filter: its disjunctive normal form."""
    if isinstance(node, Condition):
        yield (node,)
    elif isinstance(node, Or):
        for operand in node.operands:
            yield from _alternatives(operand)
    else:
        for parts in itertools.product(*map(_alternatives, node.operands)):
            yield tuple(itertools.chain.from_iterable(parts))


def _merged(conjunction: Iterable[Condition]) -> dict[str, Any]:
    """Return one filter object for conditions that must all hold."""
    merged: dict[str, dict[str, Any]] = {}
    for condition in dict.fromkeys(conjunction):
        ((field, operators),) = _condition(condition).items()
        if condition.operator in merged.setdefault(field, {}):
            raise FilterError(
                f"Pinecone cannot combine two {condition.operator} conditions on {field!r} inside "
                "$or. Write them side by side at the top, or as one."
            )
        merged[field].update(operators)
    return merged


def _condition(condition: Condition) -> dict[str, dict[str, Any]]:
    operand = condition.operand
    plain = list(map(_sendable, operand)) if isinstance(operand, tuple) else _sendable(operand)
    return {without_surrogates(condition.field): {condition.operator: plain}}


def _sendable(value: Scalar) -> Scalar:
    return without_surrogates(value) if isinstance(value, str) else value
