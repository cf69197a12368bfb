"""Services that list standards: the Common Standards Project (CSP), and CASE.

CSP (https://commonstandardsproject.com/developers) has a list of jurisdictions, jurisdictions with
their lists of standard sets, and standard sets. Reading needs no key. A key is sent as ``Api-Key``,
but never a blank one, which the server refuses.

A CASE service (https://www.imsglobal.org/spec/case/v1p1, the REST binding) lists its frameworks at
``CFDocuments`` with the query parameters ``limit`` and ``offset``, and has a whole framework at
``CFPackages/{id}``, both under ``/ims/case/v1p1`` or ``v1p0``.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from standards_mcp_catalog.base import Progress
from standards_mcp_catalog.importing.formats.case import identifier
from standards_mcp_catalog.importing.formats.values import (
    Fields,
    array_of,
    is_object,
    parse_json,
    unwrapped,
)
from standards_mcp_catalog.importing.report import Problem, SourceError, lost, note
from standards_mcp_catalog.importing.selection import Selection
from standards_mcp_catalog.vocabulary.grades import normalize_levels
from standards_mcp_catalog.vocabulary.names import JurisdictionNameError
from standards_mcp_catalog.vocabulary.names import listed as listed_names

from .files import Document
from .web import Cache, NotFoundOnServerError, Web

CSP_URL: Final = "https://api.commonstandardsproject.com/api/v1"
_CALLS_A_MINUTE: Final = 60
_CASE_PATHS: Final = ("ims/case/v1p1", "ims/case/v1p0")
_PAGE: Final = 100
_MOST_PAGES: Final = 1_000


def csp_web(api_key: str = "", cache: Cache | None = None) -> Web:
    """Return an HTTP client with the pace that CSP allows."""
    secret = {"Api-Key": api_key.strip()} if api_key.strip() else {}
    return Web(secret_headers=secret, calls_a_minute=_CALLS_A_MINUTE, cache=cache)


def csp_documents(
    selection: Selection,
    *,
    base_url: str = CSP_URL,
    web: Web | None = None,
    progress: Progress | None = None,
) -> Iterator[Document | Problem]:
    """Yield one document for each standard set of CSP that is selected.

    Args:
        progress: Called with the number of sets read so far, and of all.
    """
    web, base, problems = web or csp_web(), base_url.rstrip("/"), list[Problem]()
    titles = {
        each.text("id"): each.text("title")
        for each in _objects(web, f"{base}/jurisdictions", problems)
        if each.text("id")
    }
    jurisdictions, addresses = list[str](), list[str]()
    try:
        jurisdictions = selection.jurisdictions_of(titles)
    except JurisdictionNameError as error:
        problems.append(lost("several jurisdictions", base, detail=str(error), records=0))
    for each in jurisdictions:
        for fields in _objects(web, f"{base}/jurisdictions/{quote(each, safe='')}", problems):
            ids = _set_ids(fields, selection)
            addresses += [f"{base}/standard_sets/{quote(id_, safe='')}" for id_ in ids]
    if not (addresses or problems):
        missing = "standard set" if jurisdictions else "jurisdiction"
        hint = "" if jurisdictions else selection.hint_on_similar(titles.values())
        detail = f"{selection.no_match}{hint}"
        problems.append(lost(f"no such {missing}", base, detail=detail, records=0))
    yield from problems
    yield from _download_all(web, addresses, progress)


def _objects(web: Web, address: str, problems: list[Problem]) -> Iterator[Fields]:
    """Yield the JSON objects of one answer: the elements of its array, or its only value."""
    try:
        value = parse_json(web.get_cached(address))
    except SourceError as error:
        problems.append(lost("cannot be read", address, detail=str(error), records=0))
        return
    for element in array_of(unwrapped(value)):
        if is_object(element) and element:
            yield Fields(element, address, "", problems)
        else:
            problems.append(lost("empty answer", address, records=0))


def _set_ids(jurisdiction: Fields, selection: Selection) -> Iterator[str]:
    for each in jurisdiction.parts("standardSets"):
        levels = normalize_levels(each.texts("educationLevels"))
        subjects = each.text("subject"), each.text("normalizedSubject")
        if each.text("id") and selection.has_subject(*subjects) and selection.has_grade(levels):
            yield each.text("id")


def case_documents(
    base_url: str,
    selection: Selection,
    *,
    web: Web | None = None,
    progress: Progress | None = None,
) -> Iterator[Document | Problem]:
    """Yield one document for each framework of a CASE service that is selected.

    Frameworks are selected by creator and subject. Grades select only among their items.

    Args:
        base_url: The address of the service, with or without ``/ims/case/v1p1``.
        web: The HTTP client; the list of frameworks is always requested, without its cache.
        progress: Called with the number of packages read so far, and of all.
    """
    web, problems = web or Web(), list[Problem]()
    base, listed = _find_frameworks(base_url.rstrip("/"), web, problems)
    ids = [identifier(each) for each in listed if _is_selected(each, selection)]
    if not (ids or problems):
        creators = listed_names(sorted({each.text("creator") for each in listed}))
        detail = f"{selection.no_match}; the creators here are {creators}"
        problems.append(lost("no such framework", base, detail=detail, records=0))
    yield from problems
    addresses = [f"{base}/CFPackages/{quote(id_, safe='')}" for id_ in ids if id_]
    yield from _download_all(web, addresses, progress)


def _find_frameworks(base: str, web: Web, problems: list[Problem]) -> tuple[str, list[Fields]]:
    """Return the address that answers, and the frameworks that it lists."""
    candidates = (
        [base] if base.endswith(_CASE_PATHS) else [f"{base}/{each}" for each in _CASE_PATHS]
    )
    failure = ""
    for candidate in candidates:
        try:
            return candidate, list(_list_frameworks(candidate, web, problems))
        except SourceError as error:
            failure = str(error)
            if not isinstance(error, NotFoundOnServerError):
                break
    problems.append(lost("cannot be read", base, detail=failure, records=0))
    return base, []


def _list_frameworks(base: str, web: Web, problems: list[Problem]) -> Iterator[Fields]:
    seen: set[str] = set()
    for page in range(_MOST_PAGES):
        address = f"{base}/CFDocuments?limit={_PAGE}&offset={page * _PAGE}"
        page_problems: list[Problem] = []
        value = parse_json(web.get(address))
        listing = value if is_object(value) else {"CFDocuments": value}
        listed = list(Fields(listing, address, "", page_problems).parts("CFDocuments"))
        new = [each for each in listed if identifier(each) not in seen]
        # A short page need not be the last, and some servers ignore `offset`.
        if page and not new:
            return
        problems += page_problems
        seen.update(map(identifier, new))
        yield from new
    problems.append(note("too many pages", base))


def _is_selected(document: Fields, selection: Selection) -> bool:
    creator, title = document.text("creator"), document.text("title")
    id_ = identifier(document)
    has_subject = selection.has_subject(*(document.texts("subject") or (title,)))
    return has_subject and any(
        selection.has_jurisdiction(id_, name) for name in (creator, f"{creator} {title}")
    )


def _download_all(
    web: Web, addresses: Sequence[str], progress: Progress | None
) -> Iterator[Document | Problem]:
    """Yield the document at each address, and a problem for each that cannot be read."""
    for number, address in enumerate(addresses, 1):
        try:
            yield Document(address, io.BufferedReader(io.BytesIO(web.get_cached(address))))
        except SourceError as error:
            yield lost("cannot be read", address, detail=str(error), records=0)
        if progress is not None:
            progress(number, len(addresses))
