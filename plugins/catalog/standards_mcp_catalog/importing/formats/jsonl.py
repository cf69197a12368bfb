"""Records as this project writes them: one JSON object a line, or one array of them.

A relation of a crosswalk is an object, too, with the key ``_crosswalk``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from standards_mcp_catalog.importing.report import Item, Problem, SourceError, Statement, lost
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import Crosswalk, Link, identifier_of

from .tree import first_error
from .values import Object, array_of, is_array, is_object, parse_json, type_name, without_controls

LONGEST_LINE: Final = 2**24
"""How many characters one record may have."""
_CROSSWALK: Final = "_crosswalk"
_RELATION_KEYS: Final = (_CROSSWALK, "title", "from", "relation", "to")


def is_records(value: object) -> bool:
    """Return whether a JSON value is a record, a list of them, or ``{"records": [...]}``."""
    first = array_of(_records_of(value))[:1]
    return bool(first) and is_object(first[0]) and ("_id" in first[0] or _CROSSWALK in first[0])


def relation_line(crosswalk: Crosswalk, link: Link) -> str:
    """Return one relation of a crosswalk as a line of JSON."""
    start, end = identifier_of(link.start), identifier_of(link.end)
    texts = (*crosswalk, start, link.kind, end)
    return json.dumps(dict(zip(_RELATION_KEYS, texts, strict=True)), ensure_ascii=False)


def read_jsonl(lines: Iterable[str], source: str) -> Iterator[Item]:
    """Yield the record or the relation of each line; blank lines are skipped."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"line {number}"
        if len(line) > LONGEST_LINE:
            detail = f"it has more than {LONGEST_LINE:,} characters; a record is one line"
            yield lost("line too long", source, where, detail)
            continue
        try:
            yield _item(parse_json(line), source, where)
        except SourceError as error:
            yield lost("not JSON", source, where, str(error).partition(": ")[2])


def read_records(value: object, source: str) -> Iterator[Item]:
    """Yield the records and relations of one JSON document."""
    for number, element in enumerate(array_of(_records_of(value)), 1):
        yield _item(element, source, f"record {number}")


def _records_of(value: object) -> object:
    return value.get("records") if is_object(value) and "records" in value else value


def _item(value: object, source: str, where: str) -> Item:
    if not is_object(value):
        return lost("not an object", source, where, type_name(value))
    is_relation = _CROSSWALK in value and "_id" not in value
    return (_relation if is_relation else _record)(value, source, where)


def _relation(value: Object, source: str, where: str) -> Statement | Problem:
    texts = [_without_controls(value.get(name)) for name in _RELATION_KEYS]
    for name, text in zip(_RELATION_KEYS, texts, strict=True):
        if not (isinstance(text, str) and text.strip()):
            detail = f"{name} is missing, empty or not text"
            return lost("not a valid relation", source, where, detail, records=0)
    id_, title, start, relation, end = map(str, texts)
    return Statement(
        crosswalk=Crosswalk(id_, title), start=start, relation=relation, end=end, source=source,
        where=where, by_identifier=True, adds=True,
    )  # fmt: skip


def _record(value: Object, source: str, where: str) -> StandardRecord | Problem:
    if code := value.get("statement_notation") or value.get("_id"):
        where = f"{where} ({str(code)[:80]})"
    try:
        record = StandardRecord.from_dict(_without_controls(value))
        record.model_dump_json()  # a record must be writable again
    except ValidationError as error:
        return lost("not a valid record", source, where, first_error(error))
    except (PydanticSerializationError, RecursionError, ValueError) as error:
        return lost("not a valid record", source, where, str(error)[:200])
    if not (record.description.strip() or record.content.strip()):
        return lost("no text", source, where)
    return record


def _without_controls(value: Any) -> Any:
    """Return a JSON value whose texts have no control characters."""
    if isinstance(value, str):
        return without_controls(value)
    if is_array(value):
        return [_without_controls(each) for each in value]
    if is_object(value):
        return {without_controls(name): _without_controls(each) for name, each in value.items()}
    return value
