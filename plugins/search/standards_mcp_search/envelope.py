"""The answer of ``find_relevant_standards``, field for field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NotRequired

from typing_extensions import TypedDict

from standards_mcp import SearchHit, SearchResult, StandardRecord


class Twin(TypedDict):
    """Another standard with the same text as a result."""

    _id: str
    statement_notation: str | None
    standard_set_title: str
    education_levels: list[str]


class Standard(TypedDict):
    """One result."""

    _id: str
    content: str
    subject: str
    education_levels: list[str]
    statement_notation: str | None
    standard_set_title: str
    score: float
    jurisdiction_title: str
    description: str
    text_status: NotRequired[str]
    also_in: NotRequired[list[Twin]]


class SearchEnvelope(TypedDict):
    """What the tool answers with. Errors have the same shape, with ``error_type``."""

    success: bool
    results: list[Standard]
    message: str
    error_type: NotRequired[str]


def found(result: SearchResult) -> SearchEnvelope:
    """Return the envelope of a search with hits."""
    results = [_standard(hit) for hit in result.hits]
    message = _with_notes(f"Found {len(results)} matching standards", result.notes)
    return {"success": True, "results": results, "message": message}


def no_results(advice: str, notes: Iterable[str]) -> SearchEnvelope:
    """Return the envelope of a search without hits; *advice* says how to widen the search."""
    message = _with_notes(f"No standards matched. {advice}", notes)
    return {"success": False, "results": [], "message": message, "error_type": "no_results"}


def _standard(hit: SearchHit) -> Standard:
    record = hit.record
    standard: Standard = {
        "_id": record.id,
        "content": record.content,
        "subject": record.subject,
        "education_levels": list(record.education_levels),
        "statement_notation": record.statement_notation,
        "standard_set_title": record.standard_set_title,
        "score": round(hit.score, 4),
        "jurisdiction_title": record.jurisdiction_title,
        "description": record.description,
    }
    if record.text_status:
        standard["text_status"] = record.text_status
    if hit.also_in:
        standard["also_in"] = [_twin(twin) for twin in hit.also_in]
    return standard


def _twin(record: StandardRecord) -> Twin:
    return {
        "_id": record.id,
        "statement_notation": record.statement_notation,
        "standard_set_title": record.standard_set_title,
        "education_levels": list(record.education_levels),
    }


def _with_notes(message: str, notes: Iterable[str]) -> str:
    return " ".join((message if message.endswith(".") or not notes else f"{message}.", *notes))
