"""Make the answers of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from standards_mcp_catalog import SearchHit, StandardRecord
from standards_mcp_catalog.records import nearest_heading
from standards_mcp_catalog.relations import StatedRelation

from .answers import Envelope, FoundBy, Heading, Node, Related, ResultT, Twin

PARAPHRASED = (
    "Where text_status is paraphrase, the wording is not the official one; get_standard_details "
    "gives its address."
)


def standard_node(record: StandardRecord) -> Node:
    """Return a standard as `browse_standards` shows it."""
    node: Node = {
        "_id": record.id,
        "kind": "standard",
        "description": record.description,
        "education_levels": list(record.education_levels),
        "children": len(record.child_ids),
    }
    if record.statement_notation:
        node["statement_notation"] = record.statement_notation
    if record.statement_label:
        node["statement_label"] = record.statement_label
    if record.text_status:
        node["text_status"] = record.text_status
    return node


def related(record: StandardRecord, found_by: FoundBy) -> Related:
    """Return a standard as `get_related_standards` shows it."""
    shown: Related = {
        "_id": record.id,
        "description": record.description,
        "education_levels": list(record.education_levels),
        "standard_set_title": record.standard_set_title,
        "jurisdiction_title": record.jurisdiction_title,
        "found_by": found_by,
    }
    if record.statement_notation:
        shown["statement_notation"] = record.statement_notation
    elif above := nearest_heading(record.content, record.description):
        code, text = above
        heading: Heading = {"description": text}
        shown["heading"] = {"statement_notation": code, **heading} if code else heading
    if record.text_status:
        shown["text_status"] = record.text_status
    return shown


def related_hit(hit: SearchHit, found_by: FoundBy) -> Related:
    """Return a search hit as `get_related_standards` shows it."""
    shown = related(hit.record, found_by)
    shown["score"] = round(hit.score, 4)
    if hit.also_in:
        shown["also_in"] = [_twin(each) for each in hit.also_in]
    return shown


def related_as_stated(stated: StatedRelation) -> Related:
    """Return a stated relation as `get_related_standards` shows it."""
    shown: Related = (
        related(stated.record, "stated")
        if stated.record
        else {
            "_id": stated.identifier, "description": "", "education_levels": [],
            "standard_set_title": "", "jurisdiction_title": "", "found_by": "stated",
            "loaded": False,
        }
    )  # fmt: skip
    shown["relation"], shown["origin"] = stated.kind, stated.origin
    return shown


def _twin(record: StandardRecord) -> Twin:
    twin: Twin = {"_id": record.id, "jurisdiction_title": record.jurisdiction_title}
    if record.statement_notation:
        twin["statement_notation"] = record.statement_notation
    return twin


def answer(
    results: Sequence[ResultT], message: str, notes: Iterable[str] = ()
) -> Envelope[ResultT]:
    """Return the envelope for *results*; if they are empty, *message* has the next step."""
    paraphrased = any(each.get("text_status") == "paraphrase" for each in results)
    added = dict.fromkeys((*((PARAPHRASED,) if paraphrased else ()), *notes))
    sentences = (message, *(each for each in added if each not in message))
    envelope: Envelope[ResultT] = {
        "success": bool(results),
        "results": list(results),
        "message": " ".join(sentences),
    }
    if not results:
        envelope["error_type"] = "no_results"
    return envelope
