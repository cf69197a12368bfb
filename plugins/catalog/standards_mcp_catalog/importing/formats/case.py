"""CASE packages, versions 1.0 and 1.1: https://www.imsglobal.org/spec/case/v1p1.

A package is one framework: a CFDocument, its CFItems, and the CFAssociations between them. CASE
has no standard sets; here a set is the part of a framework for one combination of education levels.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from standards_mcp_catalog.importing.report import Item, Problem, Statement, lost, note
from standards_mcp_catalog.relations import Crosswalk, field_of, inverse, parse_kind
from standards_mcp_catalog.vocabulary.subjects import match_subjects

from .csp import levels_title, noted_levels
from .tree import Node, build_tree
from .values import Fields, Object, array_of, is_object, present, unwrapped

# The vocabulary of the Common Standards Project's `normalizedSubject`.
_SUBJECTS = (
    "Math", "English", "Science", "Social Studies", "Technology", "The Arts", "Health",
    "Physical Education", "Foreign Language", "Career Education", "Financial Literacy",
)  # fmt: skip


def is_case(value: object) -> bool:
    """Return whether a JSON value looks like a CASE package or a list of them."""
    keys = {"CFDocument", "CFItems", "CFPackage", "CFPackages", "CFDocuments", "CFAssociations"}
    first = array_of(unwrapped(value))[:1]
    return any(is_object(each) and bool(keys & set(each)) for each in first)


def read_case(value: object, source: str, today: str) -> Iterator[Item]:
    """Yield the records of CASE packages.

    Args:
        value: The parsed JSON: a package, a list of them, or an object around either.
        source: The name of the document, for problems.
        today: As ``2030-12-31``. Items that have ended by then or are replaced get the publication
            status ``Superseded``.
    """
    for element in array_of(unwrapped(value)):
        if not is_object(element):
            yield lost("not a CASE package", source, records=0)
        elif "CFPackages" in element or "CFPackage" in element:
            yield from read_case(element.get("CFPackages", element.get("CFPackage")), source, today)
        elif "CFDocuments" in element:
            yield note("listing without standards", source)
        else:
            yield from _read_package(element, source, today)


def _read_package(data: Object, source: str, today: str) -> Iterator[Item]:
    problems: list[Problem] = []
    package = Fields(data, source, "", problems)
    document = package.part("CFDocument")
    document_id = identifier(document)
    if not document_id:
        yield from problems
        count = len(array_of(data.get("CFItems") or []))
        yield lost("CASE package without CFDocument", source, records=count)
        return
    items = list(_items(package))
    links = _read_links(package, document_id, {id_ for id_, _ in items})
    licences = _licences(package)
    common = _document_fields(document, document_id, licences)
    nodes = [_node(item, id_, links, licences, today) for id_, item in items]
    yield from problems
    yield from build_tree(nodes, lambda levels: common | _set_fields(common, levels), source)
    crosswalk = Crosswalk(document_id, str(common["document_title"]))
    for start, kind, end in links.between_others:
        yield Statement(
            crosswalk=crosswalk, start=start, relation=kind, end=end, source=source, where="",
            by_identifier=True,
        )  # fmt: skip
    yield crosswalk


def _items(package: Fields) -> Iterator[tuple[str, Fields]]:
    for _, item in package.elements("CFItems", "CFItem", "identifier"):
        if id_ := identifier(item):
            yield id_, item
        else:
            item.skip("item without identifier")


def _licences(package: Fields) -> Mapping[str, str]:
    # Some servers send an empty list in place of the definitions.
    definitions = package.data.get("CFDefinitions")
    for each in array_of(definitions):
        if is_object(each) and "CFLicenses" in each:
            found = Fields(each, "", "", []).parts("CFLicenses")
            return {identifier(licence): licence.text("title") for licence in found}
    return {}


def _licence_fields(fields: Fields, licences: Mapping[str, str]) -> dict[str, Any]:
    value = fields.data.get("licenseURI")
    if isinstance(value, str):
        return {"license": fields.text("licenseURI"), "license_url": fields.text("licenseURI")}
    link = fields.part("licenseURI")
    title = licences.get(identifier(link)) or link.text("title")
    return {"license": title, "license_url": link.text("uri")}


def _document_fields(
    document: Fields, document_id: str, licences: Mapping[str, str]
) -> dict[str, Any]:
    creator = document.text("creator", "publisher") or "Unknown"
    subjects = document.texts("subject")
    title = document.text("title") or (subjects[0] if subjects else f"Standards of {creator}")
    normalized = _normalized_subject(*subjects, title)
    if not subjects:
        document.note("no subject", f"taken from the title: {normalized or 'Unspecified'}")
    return present(
        {
            "standard_set_id": document_id,
            "standard_set_title": title,
            "subject": subjects[0] if subjects else normalized or "Unspecified",
            "subjects": list(subjects[1:]),
            "normalized_subject": normalized,
            "document_id": document_id,
            "document_title": title,
            "document_valid": document.text("version", "statusStartDate"),
            "publication_status": document.text("adoptionStatus"),
            "jurisdiction_id": re.sub(r"\W+", "-", creator.casefold()).strip("-") or "unknown",
            "jurisdiction_title": creator,
            "source_url": document.text("officialSourceURL", "uri"),
            "rights_holder": document.text("publisher", "creator"),
            "framework_type": document.text("frameworkType"),
            "language": document.text("language"),
            "text_status": "official",
            **_licence_fields(document, licences),
        }
    )


def _normalized_subject(*names: str) -> str:
    for name in names:
        found = [subject for subject in _SUBJECTS if match_subjects(subject, [name])]
        if found:
            return found[0]
    return ""


def _set_fields(common: Mapping[str, Any], levels: tuple[str, ...]) -> dict[str, Any]:
    if not levels:
        return {}
    grades = "grade" if len(levels) == 1 else "grades"
    return {
        "standard_set_id": f"{common['standard_set_id']}_{grades}-{'-'.join(levels).lower()}",
        "standard_set_title": f"{common['standard_set_title']} ({levels_title(levels)})",
    }


def _node(item: Fields, id_: str, links: _Links, licences: Mapping[str, str], today: str) -> Node:
    parents = links.parents.get(id_, ())
    first = parents[0] if parents else None
    other = [parent.id for parent in parents[1:] if parent.id != links.document_id]
    is_child = first is not None and first.id != links.document_id
    order = first.order if first is not None else float("inf")
    end_date, crosswalk = item.text("statusEndDate"), links.crosswalk.get(id_, {})
    is_over = bool(end_date and end_date[:10] <= today) or "replaced_by" in crosswalk
    extra = {
        "case_uuid": id_,
        "case_uri": item.text("uri"),
        "statement_label": item.text("CFItemType"),
        "abbreviated_statement": item.text("abbreviatedStatement"),
        "list_id": item.text("listEnumeration"),
        "keywords": list(item.texts("conceptKeywords")),
        "notes": item.text("notes"),
        "language": item.text("language"),
        "subject": item.text("subject") if isinstance(item.data.get("subject"), str) else "",
        "status_start_date": item.text("statusStartDate"),
        "status_end_date": end_date,
        "publication_status": "Superseded" if is_over else "",
        "other_parent_ids": other,
        **crosswalk,
        **_licence_fields(item, licences),
    }
    return Node(
        id=item.text("identifier") or id_,
        description=item.text("fullStatement", "abbreviatedStatement"),
        notation=item.text("humanCodingScheme"),
        parents=(first.id,) if is_child and first is not None else (),
        order=order,
        levels=noted_levels(item, "educationLevel"),
        fields=present(extra),
    )


_Crosswalk: TypeAlias = defaultdict[str, defaultdict[str, list[str]]]


class _Parent(NamedTuple):
    """A parent, and the sort key of the child among its children."""

    order: float
    id: str


@dataclass(frozen=True, slots=True)
class _Links:
    """The associations of one package, by the identifiers of its items.

    Attributes:
        parents: The parents of each item, by ascending sequence number.
        crosswalk: For each item, the related ones by field of the record, such as ``replaced_by``.
        between_others: The other links as (origin, kind, destination): neither end is in the
            package.
    """

    document_id: str
    parents: Mapping[str, Sequence[_Parent]]
    crosswalk: Mapping[str, Mapping[str, list[str]]]
    between_others: Sequence[tuple[str, str, str]]


def _read_links(package: Fields, document_id: str, item_ids: Collection[str]) -> _Links:
    """Return the associations of *package*, which has the items *item_ids*.

    Only ``isChildOf`` makes the tree. Its origin is the child, and its destination the parent: an
    item, or the document for a root.
    """
    parents: defaultdict[str, list[_Parent]] = defaultdict(list)
    crosswalk: _Crosswalk = defaultdict(lambda: defaultdict(list))
    between_others: list[tuple[str, str, str]] = []
    for number, link in enumerate(package.parts("CFAssociations")):
        origin, destination = _node_id(link, "originNodeURI"), _node_id(link, "destinationNodeURI")
        kind = link.text("associationType")
        if not (origin and destination and kind):
            link.note("association without ends or type", f"number {number + 1}")
        elif kind == "isChildOf":
            order = link.number("sequenceNumber", float("inf"))
            parents[origin].append(_Parent(order, destination))
        elif document_id in (origin, destination):
            link.note("association of the document", f"{kind}; only items are related")
        elif origin in item_ids or destination in item_ids:
            _relate(crosswalk, item_ids, origin, kind, destination)
        else:
            between_others.append((origin, kind, destination))
    for found in parents.values():
        found.sort(key=lambda parent: parent.order)
    unique = {
        id_: {kind: list(dict.fromkeys(ids)) for kind, ids in kinds.items()}
        for id_, kinds in crosswalk.items()
    }
    return _Links(document_id, parents, unique, between_others)


def _relate(
    crosswalk: _Crosswalk, item_ids: Collection[str], origin: str, kind: str, destination: str
) -> None:
    """Add a relation to those of its two ends that are items of the package."""
    known = parse_kind(kind)
    if origin in item_ids:
        field = field_of(known or kind) or "related"
        crosswalk[origin][field].append(destination)
    if destination in item_ids and known and (inverse(known) == known or origin not in item_ids):
        crosswalk[destination][field_of(inverse(known))].append(origin)


def _node_id(link: Fields, name: str) -> str:
    """Return the identifier at one end of a link, which some publishers write as a bare URI."""
    if isinstance(link.data.get(name), str):
        return link.text(name).rpartition("/")[2].lower()
    return identifier(link.part(name))


def identifier(fields: Fields) -> str:
    """Return the identifier of a CASE object, or the last part of its URI, in lower case."""
    return (fields.text("identifier") or fields.text("uri").rpartition("/")[2]).lower()
