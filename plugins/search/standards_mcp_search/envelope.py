"""The answer of ``find_relevant_standards``, field for field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from standards_mcp_catalog import SearchHit, SearchResult, StandardRecord
from standards_mcp_catalog.retirement import Retirement, told_of
from standards_mcp_catalog.texts import nearest_heading


class Twin(TypedDict):
    """Another standard with the same text as a result."""

    _id: str
    statement_notation: NotRequired[str]
    standard_set_title: str
    education_levels: list[str]


class Heading(TypedDict):
    """What stands above a result without a code: the nearest heading that has one, if any has."""

    statement_notation: NotRequired[str]
    description: str


class Standard(TypedDict):
    """One result.

    ``content`` is the standard's own text, or with full detail the text that was searched, in
    which the headings above it come first. ``description`` is there where ``content`` is not that,
    and ``statement_notation`` where the standard has a code, ``heading`` where it has none and
    stands below one. A result that is ``weak`` hardly fits; where that was never measured, as with
    Pinecone, none is marked. One that is ``retired`` is no longer in force; it has a status, and
    what replaces it.
    """

    _id: str
    content: str
    subject: str
    education_levels: list[str]
    statement_notation: NotRequired[str]
    heading: NotRequired[Heading]
    standard_set_title: str
    score: float
    jurisdiction_title: str
    description: NotRequired[str]
    weak: NotRequired[Literal[True]]
    retired: NotRequired[dict[str, Any]]
    text_status: NotRequired[str]
    also_in: NotRequired[list[Twin]]


class SearchEnvelope(TypedDict):
    """What the tool answers with. Errors have the same shape, with ``error_type``."""

    success: bool
    results: list[Standard]
    message: str
    error_type: NotRequired[str]


def found(
    result: SearchResult, retired: Mapping[str, Retirement] = MappingProxyType({}), *, full: bool
) -> SearchEnvelope:
    """Return the envelope of a search with hits, in *full* or short detail.

    Args:
        retired: The retirements of those hits that have one, by their ids.
    """
    results = [_standard(hit, full=full) for hit in result.hits]
    weak = 0
    for hit, standard in zip(result.hits, results, strict=True):
        if hit.score < result.weak_below:
            standard["weak"] = True
            weak += 1
        if hit.record.id in retired:
            standard["retired"] = retired[hit.record.id].to_dict()
    told = (f"{each}." for each in told_of([hit.record for hit in result.hits], retired))
    count = _count(len(results), weak if result.weak_below else None)
    message = _with_notes(count, (*told, *result.notes))
    return {"success": True, "results": results, "message": message}


def _count(count: int, weak: int | None) -> str:
    """Return how many standards were found; *weak* is None if no threshold was measured."""
    standards = "standard" if count == 1 else "standards"
    if weak is None:
        return (
            f"Found {count} {standards}, best first; weak matches are not marked here, so check "
            "that each fits"
        )
    if weak == count:
        return (
            f"Found {count} {standards}, but only weak matches: what the text is about is probably "
            "not among the standards that are loaded here. Do not cite them as standards that it "
            "meets."
        )
    told = f"Found {count} matching {standards}"
    return f"{told}; {weak} of them only weakly (weak)" if weak else told


def no_results(advice: str, notes: Iterable[str]) -> SearchEnvelope:
    """Return the envelope of a search without hits; *advice* says how to widen the search."""
    message = _with_notes(f"No standards matched. {advice}", notes)
    return {"success": False, "results": [], "message": message, "error_type": "no_results"}


def _standard(hit: SearchHit, *, full: bool) -> Standard:
    record = hit.record
    # Every token counts in a model's context, and the text of a standard ends what was searched.
    is_short = not full and bool(record.description) and record.description in record.content
    standard: Standard = {
        "_id": record.id,
        "content": record.description if is_short else record.content,
        "subject": record.subject,
        "education_levels": list(record.education_levels),
        "standard_set_title": record.standard_set_title,
        "score": round(hit.score, 4),
        "jurisdiction_title": record.jurisdiction_title,
    }
    if record.statement_notation:
        standard["statement_notation"] = record.statement_notation
    elif above := nearest_heading(record.content, record.description):
        code, text = above
        heading: Heading = {"description": text}
        standard["heading"] = {"statement_notation": code, **heading} if code else heading
    if not is_short:
        standard["description"] = record.description
    if record.text_status:
        standard["text_status"] = record.text_status
    if hit.also_in:
        standard["also_in"] = [_twin(twin) for twin in hit.also_in]
    return standard


def _twin(record: StandardRecord) -> Twin:
    twin: Twin = {
        "_id": record.id,
        "standard_set_title": record.standard_set_title,
        "education_levels": list(record.education_levels),
    }
    if record.statement_notation:
        twin["statement_notation"] = record.statement_notation
    return twin


def _with_notes(message: str, notes: Iterable[str]) -> str:
    return " ".join((message if message.endswith(".") or not notes else f"{message}.", *notes))
