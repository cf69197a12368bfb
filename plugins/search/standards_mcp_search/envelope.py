"""The answer of ``find_relevant_standards``, field for field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NotRequired

from typing_extensions import TypedDict

from standards_mcp_catalog import SearchHit, SearchResult, StandardRecord
from standards_mcp_catalog.records import nearest_heading
from standards_mcp_catalog.relations import Retirement, told_of

_SHARED: Final[tuple[Literal["jurisdiction_title", "text_status", "source_url"], ...]] = (
    "jurisdiction_title",
    "text_status",
    "source_url",
)
"""Fields that are beside the results if several results all have the same value."""


class Twin(TypedDict):
    """Another standard with the same text as a result."""

    _id: str
    statement_notation: NotRequired[str]
    standard_set_title: str
    education_levels: list[str]


class Heading(TypedDict):
    """The nearest heading above a result without a code, if possible one with a code."""

    statement_notation: NotRequired[str]
    description: str


class Standard(TypedDict):
    """One result.

    ``why`` is what made it fit: words or a code of the text, or a phrase in teachers' words; only
    the meaning did if it is missing.
    ``content`` is the standard's own text, or with full detail the searched text, which begins
    with the headings above it. ``description`` is then the standard's own text.
    ``statement_notation`` is its code; a standard without a code has its ``heading``, if there is
    one. ``source_url`` leads to the official text. A ``weak`` result hardly fits. Without a
    measured threshold, as for Pinecone, no result is marked. A ``retired`` standard is no longer in
    force; it has a status and its successors.
    """

    _id: str
    content: str
    subject: str
    education_levels: list[str]
    statement_notation: NotRequired[str]
    heading: NotRequired[Heading]
    why: NotRequired[str]
    standard_set_title: str
    score: float
    jurisdiction_title: NotRequired[str]
    description: NotRequired[str]
    weak: NotRequired[Literal[True]]
    retired: NotRequired[dict[str, Any]]
    text_status: NotRequired[str]
    source_url: NotRequired[str]
    also_in: NotRequired[list[Twin]]


class SearchEnvelope(TypedDict):
    """The tool's answer. Errors have the same shape, with ``error_type``.

    A jurisdiction, a status and a link that all results share are here, and not in the results.
    """

    success: bool
    results: list[Standard]
    jurisdiction_title: NotRequired[str]
    text_status: NotRequired[str]
    source_url: NotRequired[str]
    message: str
    error_type: NotRequired[str]


def results_envelope(
    result: SearchResult,
    retired: Mapping[str, Retirement] = MappingProxyType({}),
    missing: Sequence[str] = (),
    *,
    full: bool,
) -> SearchEnvelope:
    """Return the envelope of a search with hits, in *full* or short detail.

    Args:
        retired: Retirements, by the ids of the retired hits.
        missing: Sentences that begin the message: the text asks for standards that are not loaded.
    """
    results = [_standard(hit, full=full) for hit in result.hits]
    weak = 0
    for hit, standard in zip(result.hits, results, strict=True):
        if hit.score < result.weak_below:
            standard["weak"] = True
            weak += 1
        if hit.record.id in retired:
            standard["retired"] = retired[hit.record.id].to_dict()
    retirement_notes = (
        f"{each}." for each in told_of([hit.record for hit in result.hits], retired)
    )
    count = _count(len(results), weak if result.weak_below else None)
    if missing:
        warning = "These results are of others: do not cite them for this text."
        count = " ".join((*missing, warning))
    message = _with_notes(count, (*retirement_notes, *result.notes))
    envelope: SearchEnvelope = {"success": True, "results": results, "message": message}
    for name in _SHARED if len(results) > 1 else ():
        values = {standard.get(name) for standard in results}
        if len(values) == 1 and (value := values.pop()):
            envelope[name] = value
            for standard in results:
                del standard[name]
    return envelope


def _count(count: int, weak: int | None) -> str:
    """Return the count of results as a sentence; *weak* is None without a measured threshold."""
    standards = "standard" if count == 1 else "standards"
    if weak is None:
        return (
            f"Found {count} {standards}, best first; weak matches are not marked here, so check "
            "that each fits"
        )
    if weak == count:
        return (
            f"Found {count} {standards}, but only weak matches: the subject of the text is "
            "probably not among the standards that are loaded here. Do not cite them as standards "
            "that it meets."
        )
    if not weak:
        return f"Found {count} matching {standards}"
    matching = count - weak
    return (
        f"Found {matching} matching {'standard' if matching == 1 else 'standards'} and {weak} weak "
        f"{'one' if weak == 1 else 'ones'}"
    )


def no_results_envelope(advice: str, notes: Iterable[str]) -> SearchEnvelope:
    """Return the envelope of a search without hits; *advice* says how to widen the search."""
    message = _with_notes(f"No standards matched. {advice}", notes)
    return {"success": False, "results": [], "message": message, "error_type": "no_results"}


def _standard(hit: SearchHit, *, full: bool) -> Standard:
    record = hit.record
    # To save tokens in the model's context, leave out the headings at the beginning of the searched
    # text: they are longer than the standard's own text, and neighbouring results repeat them.
    # Five results with them took 1,362 tokens.
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
    if hit.why:
        standard["why"] = hit.why
    if record.text_status:
        standard["text_status"] = record.text_status
    if record.source_url:
        standard["source_url"] = record.source_url
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
