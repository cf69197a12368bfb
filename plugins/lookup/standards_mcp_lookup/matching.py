"""From what somebody wrote to the standards that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.vocabulary.names import jurisdictions_named
from standards_mcp_catalog.vocabulary.readings import Reading
from standards_mcp_catalog.vocabulary.requests import Request

_Found = Mapping[str, Sequence[StandardRecord]]


@dataclass(frozen=True, slots=True)
class Match:
    """What one code or id was found to be.

    Attributes:
        text: As it was written.
        records: Best first; empty where it was not found.
        reading: What the text was taken for.
    """

    text: str
    records: list[StandardRecord] = field(default_factory=list[StandardRecord])
    reading: Reading | None = None


async def match(catalog: Catalog, request: Request) -> list[Match]:
    """Return what each code of *request* names, in order. The catalog is asked once.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    codes = list(dict.fromkeys(reading.code for reading in request.every_reading()))
    found = dict(zip(codes, await catalog.find_all(codes), strict=True))
    return list({each.text: each for each in _settled(request, found)}.values())


def _settled(request: Request, found: _Found) -> list[Match]:
    for reading in request.readings:
        records = [record for record in found[reading.code] if _is_meant(record, reading)]
        if records:
            return [Match(request.text, records, reading)]
    parts = [each for part in request.parts for each in _settled(part, found)]
    return parts or [Match(request.text)]


def _is_meant(record: StandardRecord, reading: Reading) -> bool:
    titles = [record.jurisdiction_title]
    return not reading.places or any(jurisdictions_named(each, titles) for each in reading.places)
