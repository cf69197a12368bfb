"""Make the answer of ``get_standard_details``: records, and a message about missing codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from standards_mcp import NotFoundError
from standards_mcp_catalog import Catalog
from standards_mcp_catalog.matching import Match, match
from standards_mcp_catalog.relations import retirements, told_of
from standards_mcp_catalog.vocabulary.readings import Request

from .answers import DetailsEnvelope
from .details import SEARCH_ADVICE, describe
from .missing import by_reason, reasons

MAX_MATCHES: Final = 10
MAX_MATCHES_PER_CODE: Final = 3


async def answer(catalog: Catalog, request: Request) -> DetailsEnvelope:
    """Return the records that a request names, with their relatives.

    Raises:
        NotFoundError: None of the requested standards is in the catalog.
        CatalogError: The catalog cannot be read.
    """
    matches = await match(catalog, request)
    notes = catalog.notes()
    missing = [each.text for each in matches if not each.records]
    if len(missing) == len(matches):
        message = await _none_found(catalog, missing)
        raise NotFoundError(_with_notes(message, notes or catalog.notes()))
    is_single = len(matches) == 1
    most = MAX_MATCHES if is_single else MAX_MATCHES_PER_CODE
    shown = [record for each in matches for record in each.records[:most]]
    retired = await retirements(catalog, shown)
    results = await describe(catalog, shown, retired)
    message = _message(matches[0]) if is_single else _message_of_several(matches, missing, most)
    sentences = [message, *filter(None, map(_note_on, matches)), *told_of(shown, retired)]
    if not is_single:
        texts = (each.text for each in matches for _ in each.records[:most])
        results = [{**data, "asked_for": text} for data, text in zip(results, texts, strict=True)]
    if missing:
        sentences.append(f"Not found: {by_reason(await reasons(catalog, missing))}")
    message = _with_notes(". ".join(sentences), notes or catalog.notes())
    envelope: DetailsEnvelope = {"success": True, "results": results, "message": message}
    if missing:
        envelope["not_found"] = missing
    return envelope


def _message(found: Match) -> str:
    count = len(found.records)
    if count == 1:
        return "Retrieved standard details"
    shown = f", the first {MAX_MATCHES} are shown" if count > MAX_MATCHES else ""
    return f"Retrieved standard details: {count} standards match '{found.text}', best first{shown}"


def _message_of_several(matches: Sequence[Match], missing: Sequence[str], most: int) -> str:
    found = len(matches) - len(missing)
    message = f"Retrieved details of {found} of {len(matches)} standards, in the order asked for"
    cut = [f"'{each.text}' has {len(each.records)}" for each in matches if len(each.records) > most]
    first = f"; the first {most} matches of each are shown: " if cut else ""
    return f"{message}{first}{', '.join(cut)}"


def _note_on(found: Match) -> str:
    state = found.reading.in_place_of if found.reading else ""
    if not state:
        return ""
    return (
        f"'{found.text}' is answered with the Common Core's standard, which {state} may have "
        f"changed, because the catalog has none of {state} under this code. To load them: "
        f'`standards-mcp data import --from-api csp --jurisdiction "{state}"`'
    )


async def _none_found(catalog: Catalog, missing: Sequence[str]) -> str:
    why = await reasons(catalog, missing)
    if len(missing) > 1:
        return f"None of the {len(missing)} standards found. {SEARCH_ADVICE} {by_reason(why)}."
    reason = why[missing[0]]
    message = f"Standard '{missing[0]}' not found. {SEARCH_ADVICE}"
    return f"{message} {reason}." if reason else message


def _with_notes(message: str, notes: Iterable[str]) -> str:
    return ". ".join((message.removesuffix("."), *notes)) if notes else message
