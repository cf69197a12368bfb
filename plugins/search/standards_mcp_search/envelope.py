"""Make the answer of ``find_relevant_standards``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from standards_mcp_catalog import SearchHit, SearchResult, StandardRecord
from standards_mcp_catalog.records import nearest_heading
from standards_mcp_catalog.relations import Retirement, told_of

from .answers import Heading, SearchEnvelope, Standard, Twin

_SHARED: Final[tuple[Literal["jurisdiction_title", "text_status", "source_url"], ...]] = (
    "jurisdiction_title",
    "text_status",
    "source_url",
)
"""Fields that are beside the results if several results all have the same value."""


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
