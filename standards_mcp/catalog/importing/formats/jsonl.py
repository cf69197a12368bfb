"""Records as this project writes them: one JSON object a line, or one array of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from standards_mcp.catalog.importing.problems import Problem, SourceError, lost
from standards_mcp.catalog.records import StandardRecord

from .text import without_controls
from .tree import first_error
from .values import array_of, is_array, is_object, parse_json, type_name

LONGEST_LINE: Final = 2**24
"""How many characters one record may have."""


def is_records(value: object) -> bool:
    """Return whether a JSON value is a record, a list of them, or ``{"records": [...]}``."""
    first = array_of(_listed(value))[:1]
    return bool(first) and is_object(first[0]) and "_id" in first[0]


def read_jsonl(lines: Iterable[str], source: str) -> Iterator[StandardRecord | Problem]:
    """Yield the record of each line; blank lines do not count."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"line {number}"
        if len(line) > LONGEST_LINE:
            detail = f"it has more than {LONGEST_LINE:,} characters; a record is one line"
            yield lost("line too long", source, where, detail)
            continue
        try:
            yield _record(parse_json(line), source, where)
        except SourceError as error:
            yield lost("not JSON", source, where, str(error).partition(": ")[2])


def read_records(value: object, source: str) -> Iterator[StandardRecord | Problem]:
    """Yield the records of one JSON document."""
    for number, element in enumerate(array_of(_listed(value)), 1):
        yield _record(element, source, f"record {number}")


def _listed(value: object) -> object:
    return value.get("records") if is_object(value) and "records" in value else value


def _record(value: object, source: str, where: str) -> StandardRecord | Problem:
    if not is_object(value):
        return lost("not an object", source, where, type_name(value))
    if code := value.get("statement_notation") or value.get("_id"):
        where = f"{where} ({str(code)[:80]})"
    try:
        record = StandardRecord.from_dict(_printable(value))
        record.model_dump_json()  # what cannot be written again must not be read
    except ValidationError as error:
        return lost("not a valid record", source, where, first_error(error))
    except (PydanticSerializationError, RecursionError, ValueError) as error:
        return lost("not a valid record", source, where, str(error)[:200])
    if not (record.description.strip() or record.content.strip()):
        return lost("no text", source, where)
    return record


def _printable(value: Any) -> Any:
    """Return a JSON value whose texts have no control characters."""
    if isinstance(value, str):
        return without_controls(value)
    if is_array(value):
        return [_printable(each) for each in value]
    if is_object(value):
        return {without_controls(name): _printable(each) for name, each in value.items()}
    return value
