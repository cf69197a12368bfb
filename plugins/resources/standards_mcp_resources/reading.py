"""Contents of the resources: the catalog as JSON, with URIs of related parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from standards_mcp import NotFoundError
from standards_mcp_catalog import Catalog, StandardRecord, StandardSet
from standards_mcp_catalog.results import FieldValues
from standards_mcp_catalog.sets import memberships
from standards_mcp_catalog.vocabulary.grades import grade_order

from .declared import SETS, STANDARDS, SUBJECTS
from .grades import grade_name
from .names import checked_identifier, sets_named, standards_named
from .tree import MAX_STANDARDS, outline_below, outline_of_set

PAGE: Final = 100
"""Number of items on a page; a hundred standards are about 40 KB."""
_MOST_NAMESAKES: Final = 20


async def sets(catalog: Catalog, page: int) -> dict[str, Any]:
    """Return a page of the standard sets."""
    all_sets = await catalog.sets()
    items = [_set(each, counted=all_sets.counted) for each in all_sets.sets]
    return {"complete": all_sets.complete, **_page(SETS, "sets", items, page)}


async def subjects(catalog: Catalog, page: int) -> dict[str, Any]:
    """Return a page of the subjects, in alphabetical order."""
    values = await catalog.values("subject")
    items = [_with_count({"subject": name}, name, values) for name in sorted(values.counts)]
    return {"complete": values.complete, **_page(SUBJECTS, "subjects", items, page)}


async def grades(catalog: Catalog) -> dict[str, Any]:
    """Return the education levels, the youngest first."""
    values = await catalog.values("education_levels")
    levels = sorted(values.counts, key=lambda level: (grade_order(level), level))
    items = [
        _with_count({"education_level": level, "name": grade_name(level)}, level, values)
        for level in levels
    ]
    return {"complete": values.complete, "grades": items}


async def standard_set(catalog: Catalog, set_id: str, page: int) -> dict[str, Any]:
    """Return a set and a page of its standards, each followed by its subtree.

    Raises:
        NotFoundError: The set or the page does not exist.
    """
    set_id, all_sets = checked_identifier(set_id, "id"), await catalog.sets()
    found = sets_named(set_id, all_sets.sets)
    if len(found) > 1:
        ids = ", ".join(
            f"{each.id} ({each.jurisdiction_title}, {each.subject})"
            for each in found[:_MOST_NAMESAKES]
        )
        raise NotFoundError(f"{len(found)} sets are called {set_id!r}. Read one by its id: {ids}.")
    records = await outline_of_set(catalog, found[0].id if found else set_id)
    if not records:
        raise NotFoundError(f"No standard set is called {set_id!r}. {SETS} lists the sets.")
    about = _set(found[0], counted=all_sets.counted) if found else _set_of(records[0], set_id)
    return {**about, **_outline(about["uri"], records, page)}


async def standard(catalog: Catalog, standard_id: str) -> dict[str, Any]:
    """Return one standard with its relatives and their URIs.

    Raises:
        NotFoundError: The standard does not exist.
    """
    record, *others = await standards_named(catalog, standard_id)
    references = {
        each.id: _reference(each)
        for each in await catalog.fetch([*record.ancestor_ids, *record.child_ids])
    }
    return {
        "uri": _standard_uri(record.id),
        "tree": f"{_standard_uri(record.id)}/tree",
        "set": _set_uri(record.standard_set_id),
        "standard": record.to_dict(),
        "ancestors": [references[each] for each in record.ancestor_ids if each in references],
        "children": [references[each] for each in record.child_ids if each in references],
        "same_code": [_reference(each) for each in others],
    }


async def tree(catalog: Catalog, standard_id: str, page: int) -> dict[str, Any]:
    """Return a page of a standard and all below it, each followed by its children.

    Raises:
        NotFoundError: The standard or the page does not exist.
    """
    root = (await standards_named(catalog, standard_id))[0]
    uri = f"{_standard_uri(root.id)}/tree"
    return {"uri": uri, **_outline(uri, await outline_below(catalog, root), page)}


def _outline(uri: str, records: Sequence[StandardRecord], page: int) -> dict[str, Any]:
    shown = _page(uri, "standards", records, page)
    shown["standards"] = [_summary(each) for each in shown["standards"]]
    return {"complete": len(records) < MAX_STANDARDS, **shown}


def _page(uri: str, name: str, items: Sequence[Any], page: int) -> dict[str, Any]:
    """Return one page of *items*, the total number of items, and the URI of the next page.

    Raises:
        NotFoundError: The page does not exist.
    """
    pages = -(-len(items) // PAGE) or 1
    if page > pages:
        raise NotFoundError(f"The last page of {uri} is {pages}, and {page} was asked for.")
    shown = {"total": len(items), "page": page, "pages": pages}
    following = {"next": f"{uri}?page={page + 1}"} if page < pages else {}
    return {**shown, **following, name: items[(page - 1) * PAGE : page * PAGE]}


def _set(item: StandardSet, *, counted: bool) -> dict[str, Any]:
    data = {"uri": _set_uri(item.id), **item.to_dict()}
    del data["source_url"]  # the address of a standard, not of the set
    if not counted:
        del data["records"]
    return {name: value for name, value in data.items() if value is not None}


def _set_of(record: StandardRecord, set_id: str) -> dict[str, Any]:
    """Describe a set that the catalog does not list, by the fields of one of its standards."""
    membership = memberships(record).get(set_id)
    return {
        "uri": _set_uri(set_id),
        "id": set_id,
        **({"title": membership.title} if membership else {}),
        "subject": record.subject,
        "jurisdiction_id": record.jurisdiction_id,
        "jurisdiction_title": record.jurisdiction_title,
    }


def _with_count(item: Mapping[str, str], value: str, values: FieldValues) -> dict[str, Any]:
    """Return an item with its number of records, if the catalog counts them."""
    return {**item, "records": values.counts[value]} if values.counted else {**item}


def _summary(record: StandardRecord) -> dict[str, Any]:
    """Return a standard as a list of standards shows it."""
    return {
        **_reference(record),
        "statement_label": record.statement_label,
        "education_levels": record.education_levels,
        "depth": record.depth,
        "children": len(record.child_ids),
    }


def _reference(record: StandardRecord) -> dict[str, Any]:
    reference = {
        "uri": _standard_uri(record.id),
        "id": record.id,
        "statement_notation": record.statement_notation,
        "description": record.description,
    }
    status = {"text_status": record.text_status} if record.text_status else {}
    return {**reference, **status}


def _set_uri(set_id: str) -> str:
    return f"{SETS}/{quote(set_id, safe='')}"


def _standard_uri(standard_id: str) -> str:
    return f"{STANDARDS}/{quote(standard_id, safe='')}"
