"""CASE services: https://www.imsglobal.org/spec/case/v1p1, the REST binding.

The list of frameworks is ``CFDocuments`` with the query parameters ``limit`` and ``offset``; one
whole framework is ``CFPackages/{id}``. Both stand under ``/ims/case/v1p1``, or ``v1p0``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

from standards_mcp.catalog.importing.formats.case import identifier
from standards_mcp.catalog.importing.formats.values import Fields, is_object, parse_json
from standards_mcp.catalog.importing.problems import Problem, SourceError, lost, note
from standards_mcp.catalog.importing.selection import Wanted

from .files import Document
from .web import Cache, NotFoundOnServerError, Web

_PATHS: Final = ("ims/case/v1p1", "ims/case/v1p0")
_PAGE: Final = 100
_MOST_PAGES: Final = 1_000


def case_documents(
    base_url: str,
    wanted: Wanted,
    *,
    web: Web | None = None,
    cache: Cache | None = None,
    on_package: Callable[[int, int], None] | None = None,
) -> Iterator[Document | Problem]:
    """Yield one document for each framework of a service that is wanted.

    Frameworks are chosen by their creator and subject; by grades only their items can be.

    Args:
        base_url: The address of the service, with or without ``/ims/case/v1p1``.
        cache: Keeps packages; the list of frameworks is always asked for.
        on_package: Is told how many packages are read, and of how many.
    """
    web = web or Web()
    problems: list[Problem] = []
    base, listed = _listing(base_url.rstrip("/"), web, problems)
    ids = [identifier(each) for each in listed if _is_wanted(each, wanted)]
    if not (ids or problems):
        yield lost("no such framework", base, detail=wanted.spoken, records=0)
    yield from problems
    addresses = [f"{base}/CFPackages/{quote(id_, safe='')}" for id_ in ids if id_]
    for number, address in enumerate(addresses, 1):
        try:
            data = cache.get(address, web.get) if cache else web.get(address)
            yield Document(address, io.BufferedReader(io.BytesIO(data)))
        except SourceError as error:
            yield lost("cannot be read", address, detail=str(error), records=0)
        if on_package is not None:
            on_package(number, len(addresses))


def _listing(base: str, web: Web, problems: list[Problem]) -> tuple[str, list[Fields]]:
    """Return the address that answers, and the frameworks that it lists."""
    given = next((path for path in _PATHS if base.endswith(path)), None)
    candidates = [base] if given else [f"{base}/{path}" for path in _PATHS]
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
        value, found = parse_json(web.get(address), address)
        listed = _documents(value, address, found)
        fresh = [each for each in listed if identifier(each) not in seen]
        # Servers give fewer than asked for although there are more, or all of them every time.
        if page and not fresh:
            return
        problems += found
        seen.update(map(identifier, fresh))
        yield from fresh
    problems.append(note("too many pages", base))


def _documents(value: object, address: str, problems: list[Problem]) -> list[Fields]:
    listing = value if is_object(value) else {"CFDocuments": value}
    return list(Fields(listing, address, "", problems).parts("CFDocuments"))


def _is_wanted(document: Fields, wanted: Wanted) -> bool:
    creator, title = document.text("creator"), document.text("title")
    subjects = document.texts("subject") or (title,)
    return wanted.is_place(identifier(document), f"{creator} {title}") and wanted.is_subject(
        *subjects
    )
