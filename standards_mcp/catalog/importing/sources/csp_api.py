"""The API of the Common Standards Project: https://commonstandardsproject.com/developers.

Three addresses are used: the list of jurisdictions, one jurisdiction with its list of standard
sets, and one standard set. Reading needs no key; with one, it is sent as ``Api-Key``, and a blank
one never, because the server refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

from standards_mcp.catalog.base import Progress
from standards_mcp.catalog.importing.formats.values import (
    Fields,
    array_of,
    is_object,
    parse_json,
    unwrapped,
)
from standards_mcp.catalog.importing.report import Problem, SourceError, lost
from standards_mcp.catalog.importing.selection import Selection
from standards_mcp.catalog.vocabulary.grades import normalize_levels
from standards_mcp.catalog.vocabulary.names import JurisdictionNameError

from .files import Document, download_documents
from .web import Cache, RateLimit, Web

BASE_URL: Final = "https://api.commonstandardsproject.com/api/v1"
CALLS_A_MINUTE: Final = 60


def csp_web(api_key: str = "") -> Web:
    """Return what reads the API, at the pace that it allows."""
    secret = {"Api-Key": api_key.strip()} if api_key.strip() else {}
    return Web(secret_headers=secret, limit=RateLimit(CALLS_A_MINUTE))


def csp_documents(
    selection: Selection,
    *,
    base_url: str = BASE_URL,
    web: Web | None = None,
    cache: Cache | None = None,
    on_set: Progress | None = None,
) -> Iterator[Document | Problem]:
    """Yield one document for each standard set that is selected.

    Args:
        cache: Keeps the answers; what it has is not asked for again.
        on_set: Is told how many sets are read, and of how many.
    """
    web = web or csp_web()
    base, get = base_url.rstrip("/"), cache.reader(web) if cache else web.get
    problems: list[Problem] = []
    listed = {
        place.text("id"): place.text("title")
        for place in _objects(f"{base}/jurisdictions", get, problems)
        if place.text("id")
    }
    places, addresses = list[str](), list[str]()
    try:
        places = selection.jurisdictions_of(listed)
    except JurisdictionNameError as error:
        problems.append(lost("several jurisdictions", base, detail=str(error), records=0))
    for place in places:
        addresses += _addresses(base, place, get, selection, problems)
    if not (addresses or problems):
        what = "standard set" if places else "jurisdiction"
        near = "" if places else selection.near(listed.values())
        yield lost(f"no such {what}", base, detail=f"{selection.no_match}{near}", records=0)
    yield from problems
    yield from download_documents(addresses, get, on_set)


def _addresses(
    base: str,
    place: str,
    get: Callable[[str], bytes],
    selection: Selection,
    problems: list[Problem],
) -> Iterator[str]:
    """Yield the addresses of the selected sets of a jurisdiction."""
    for detail in _objects(f"{base}/jurisdictions/{quote(place, safe='')}", get, problems):
        for set_id in _sets(detail, selection):
            yield f"{base}/standard_sets/{quote(set_id, safe='')}"


def _objects(
    address: str, get: Callable[[str], bytes], problems: list[Problem]
) -> Iterator[Fields]:
    """Yield the objects of one answer: the elements of an array, or the only one."""
    try:
        value = parse_json(get(address))
    except SourceError as error:
        problems.append(lost("cannot be read", address, detail=str(error), records=0))
        return
    for element in array_of(unwrapped(value)):
        if is_object(element) and element:
            yield Fields(element, address, "", problems)
        else:
            problems.append(lost("empty answer", address, records=0))


def _sets(place: Fields, selection: Selection) -> Iterator[str]:
    for each in place.parts("standardSets"):
        levels = normalize_levels(each.texts("educationLevels"))
        subjects = each.text("subject"), each.text("normalizedSubject")
        if each.text("id") and selection.has_subject(*subjects) and selection.has_grade(levels):
            yield each.text("id")
