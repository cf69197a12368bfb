"""Read standard sets of the Common Standards Project, from its API or its dumps.

https://commonstandardsproject.com/developers describes the API. The real form of the data follows
from ``models/standard_set.rb`` in https://github.com/commonstandardsproject/api:

* everything may be wrapped in ``{"data": ...}``, and ``{"data": {}}`` means an unknown id;
* ``standards`` is a map by id, or an array;
* ``ancestorIds`` has the parent first and the root last;
* ``parentId`` is null if a level is skipped, although there are ancestors;
* an element of ``educationLevels`` may hold several, such as ``"01,02"``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from standards_mcp_catalog.importing.report import Problem, lost, note
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.vocabulary.grades import GRADES, normalize_levels, spoken_levels

from .tree import Node, build_tree
from .values import Fields, array_of, is_array, is_object, present, unwrapped

_NO_SUBJECT = "Unspecified"


def is_csp(value: object) -> bool:
    """Return whether a JSON value looks like a standard set, a jurisdiction or a list of them."""
    first = next((unwrapped(each) for each in array_of(unwrapped(value))), None)
    if not is_object(first):
        return False
    is_jurisdiction = {"id", "title", "type"} <= set(first)
    return is_jurisdiction or not {"standards", "standardSets", "educationLevels"}.isdisjoint(first)


def read_csp(value: object, source: str) -> Iterator[StandardRecord | Problem]:
    """Yield the records of standard sets, and of jurisdictions that contain standard sets.

    Args:
        value: The parsed JSON of one answer of the API, or a list of such answers.
        source: The name of the document, for problems.
    """
    for element in array_of(unwrapped(value)):
        inner = unwrapped(element)
        if not is_object(inner):
            yield lost("not a standard set", source, records=0)
        elif not inner:
            yield lost("empty answer", source, detail="the API knows no such id", records=0)
        else:
            yield from _read_object(inner, source)


def _read_object(data: Mapping[str, object], source: str) -> Iterator[StandardRecord | Problem]:
    problems: list[Problem] = []
    fields = Fields(data, source, "", problems)
    sets = list(fields.parts("standardSets")) if "standardSets" in data else [fields]
    sets = [each for each in sets if "standards" in each.data]
    yield from problems
    if not sets:
        yield note("listing without standards", source, fields.text("title", "id"))
    for each in sets:
        yield from _read_set(each.data, source)


def _read_set(data: Mapping[str, object], source: str) -> Iterator[StandardRecord | Problem]:
    problems: list[Problem] = []
    fields = Fields(data, source, str(data.get("id", ""))[:120], problems)
    standards = data.get("standards")
    count = len(standards) if is_object(standards) or is_array(standards) else 0
    if not fields.text("id"):
        yield from problems
        yield lost("standard set without id", source, fields.text("title"), records=count)
        return
    if fields.part("cspStatus").text("value").casefold() == "hidden":
        yield lost("hidden set", source, fields.text("id"), records=count)
        return
    common = _set_fields(fields)
    nodes = list(_nodes(fields))
    yield from problems
    yield from build_tree(nodes, lambda _: common, source)


def _set_fields(fields: Fields) -> dict[str, Any]:
    document, license_ = fields.part("document"), fields.part("license")
    jurisdiction, set_id = fields.part("jurisdiction"), fields.text("id")
    jurisdiction_id = jurisdiction.text("id") or set_id.partition("_")[0]
    levels = noted_levels(fields, "educationLevels")
    return present(
        {
            "standard_set_id": set_id,
            "standard_set_title": fields.text("title")
            or levels_title(levels)
            or document.text("title")
            or set_id,
            "subject": fields.text("subject", "normalizedSubject") or _NO_SUBJECT,
            "normalized_subject": fields.text("normalizedSubject"),
            "education_levels": levels,
            "document_id": document.text("id"),
            "document_title": document.text("title"),
            "document_valid": document.text("valid"),
            "publication_status": document.text("publicationStatus"),
            "source_url": document.text("sourceURL"),
            "jurisdiction_id": jurisdiction_id,
            "jurisdiction_title": jurisdiction.text("title") or jurisdiction_id,
            "license": license_.text("title"),
            "license_url": license_.text("URL"),
            "rights_holder": license_.text("rightsHolder"),
            "text_status": "official",
        }
    )


def levels_title(levels: tuple[str, ...]) -> str:
    """Return a title such as ``Grades 9-12`` for these education levels, or "" without any."""
    return f"Grade{'' if len(levels) == 1 else 's'} {spoken_levels(levels)}" if levels else ""


def noted_levels(fields: Fields, name: str) -> tuple[str, ...]:
    """Return the education levels in a field as codes; keep unknown levels, and note a problem."""
    levels = normalize_levels(fields.texts(name))
    if unknown := [level for level in levels if level not in GRADES]:
        fields.note("unknown education level", ", ".join(unknown)[:200])
    return levels


def _nodes(fields: Fields) -> Iterator[Node]:
    levels = normalize_levels(fields.texts("educationLevels"))
    is_map = is_object(fields.data.get("standards"))
    for position, (key, standard) in enumerate(fields.elements("standards", "standard", "id")):
        if id_ := standard.text("id") or (key if is_map else ""):
            yield _node(standard, id_, position, levels)
        else:
            standard.skip("standard without id")


def _node(standard: Fields, id_: str, position: int, levels: tuple[str, ...]) -> Node:
    parent, ancestors = standard.text("parentId"), standard.texts("ancestorIds")
    exact = (each.removeprefix("urn:guid:") for each in standard.texts("exactMatch"))
    extra = {
        "asn_identifier": standard.text("asnIdentifier"),
        "alt_statement_notations": standard.texts("altStatementNotation"),
        "statement_label": standard.text("statementLabel"),
        "list_id": standard.text("listId"),
        "comments": list(standard.texts("comments")),
        "exact_match_of": list(exact),
    }
    return Node(
        id=id_,
        description=standard.text("description"),
        notation=standard.text("statementNotation"),
        parents=tuple(dict.fromkeys(filter(None, (parent, *ancestors)))),
        order=standard.number("position", position),
        levels=levels,
        fields=present(extra),
    )
