"""CASE services: https://www.imsglobal.org/spec/case/v1p1, the REST binding.

The list of frameworks is ``CFDocuments`` with the query parameters ``limit`` and ``offset``; one
whole framework is ``CFPackages/{id}``. Both stand under ``/ims/case/v1p1``, or ``v1p0``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from standards_mcp.catalog.base import Progress
from standards_mcp.catalog.importing.formats.case import identifier
from standards_mcp.catalog.importing.formats.values import Fields, is_object, parse_json
from standards_mcp.catalog.importing.report import Problem, SourceError, lost, note
from standards_mcp.catalog.importing.selection import Selection
from standards_mcp.catalog.vocabulary.names import listed as listed_names

from .files import Document, download_documents
from .web import Cache, NotFoundOnServerError, Web

_PATHS: Final = ("ims/case/v1p1", "ims/case/v1p0")
_PAGE: Final = 100
_MOST_PAGES: Final = 1_000


def case_documents(
    base_url: str,
    selection: Selection,
    *,
    web: Web | None = None,
    cache: Cache | None = None,
    on_package: Progress | None = None,
) -> Iterator[Document | Problem]:
    """Yield one document for each framework of a service that is selected.

    Frameworks are chosen by their creator and subject; by grades only their items can be.

    Args:
        base_url: The address of the service, with or without ``/ims/case/v1p1``.
        cache: Keeps packages; the list of frameworks is always asked for.
        on_package: Is told how many packages are read, and of how many.
    """
    web = web or Web()
    problems: list[Problem] = []
    base, listed = _listing(base_url.rstrip("/"), web, problems)
    ids = [identifier(each) for each in listed if _is_selected(each, selection)]
    if not (ids or problems):
        creators = listed_names(sorted({each.text("creator") for each in listed}))
        detail = f"{selection.no_match}; the creators here are {creators}"
        yield lost("no such framework", base, detail=detail, records=0)
    yield from problems
    addresses = [f"{base}/CFPackages/{quote(id_, safe='')}" for id_ in ids if id_]
    yield from download_documents(addresses, cache.reader(web) if cache else web.get, on_package)


def _listing(base: str, web: Web, problems: list[Problem]) -> tuple[str, list[Fields]]:
    """Return the address that answers, and the frameworks that it lists."""
    candidates = [base] if base.endswith(_PATHS) else [f"{base}/{path}" for path in _PATHS]
    error: SourceError | None = None
    for candidate in candidates:
        try:
            return candidate, list(_pages(candidate, web, problems))
        except NotFoundOnServerError as missing:
            error = missing
        except SourceError as failed:
            error = failed
            break
    problems.append(lost("cannot be read", base, detail=str(error), records=0))
    return base, []


def _pages(base: str, web: Web, problems: list[Problem]) -> Iterator[Fields]:
    seen: set[str] = set()
    for page in range(_MOST_PAGES):
        address = f"{base}/CFDocuments?limit={_PAGE}&offset={page * _PAGE}"
        found: list[Problem] = []
        value = parse_json(web.get(address))
        listing = value if is_object(value) else {"CFDocuments": value}
        listed = list(Fields(listing, address, "", found).parts("CFDocuments"))
        fresh = [each for each in listed if identifier(each) not in seen]
        # Servers give fewer than asked for although there are more, or all of them every time.
        if page and not fresh:
            return
        problems += found
        seen.update(map(identifier, fresh))
        yield from fresh
    problems.append(note("too many pages", base))


def _is_selected(document: Fields, selection: Selection) -> bool:
    creator, title = document.text("creator"), document.text("title")
    id_ = identifier(document)
    has_subject = selection.has_subject(*(document.texts("subject") or (title,)))
    return has_subject and any(
        selection.has_jurisdiction(id_, name) for name in (creator, f"{creator} {title}")
    )
