"""The starter set: standards by their official codes and ids, described in this project's words.

Codes, GUIDs, grades and structure are facts and are the official ones. Every text is a paraphrase
written for this project; each record says so and links to the official wording. The tables hold one
line for each standard; everything else about a record follows from its code:

    CCSS.Math.Content.3.NF             a domain, the root
    CCSS.Math.Content.3.NF.A           a cluster
    CCSS.Math.Content.3.NF.A.2         a standard
    CCSS.Math.Content.3.NF.A.2a        a component of it
    CCSS.Math.Content.HSF-LE.A.1a      the same in high school
    CCSS.Math.Practice.MP1             a mathematical practice, alone
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from standards_mcp.catalog.embedding import MINILM_NAME
from standards_mcp.catalog.local import Seed
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.texts import text_hash

_CONTENT: Final = "CCSS.Math.Content."
_PRACTICE: Final = "CCSS.Math.Practice."
_CODE: Final = re.compile(
    r"(?P<domain>(?P<grade>[K1-8])\.[A-Z]+|HS[A-Z]-[A-Z]+)"
    r"(\.(?P<cluster>[A-Z])(\.(?P<number>\d+)(?P<part>[a-z])?)?)?"
)
_SITE: Final = "https://www.thecorestandards.org/Math"
_JURISDICTION: Final = "67810E9EF6944F9383DCC602A3484C23"
_DOCUMENT: Final = "D10003FB"
_HIGH_SCHOOL: Final = ("09", "10", "11", "12")
_ALL_GRADES: Final = ("K", *(f"{grade:02}" for grade in range(1, 13)))
_LABELS: Final = ("Domain", "Cluster", "Standard", "Component")
_CATEGORIES: Final = {
    "HSN": "Number and Quantity",
    "HSA": "Algebra",
    "HSF": "Functions",
    "HSG": "Geometry",
    "HSS": "Statistics and Probability",
}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a code stands.

    Attributes:
        path: The codes from the root down to this one.
        set_key: The last part of the standard set's id.
        short: Short forms of the code that teachers use.
    """

    path: tuple[str, ...]
    label: str
    education_levels: tuple[str, ...]
    set_key: str
    set_title: str
    short: tuple[str, ...]
    url: str


def starter_records() -> list[StandardRecord]:
    """Return every record of the starter set, each domain followed by what stands under it."""
    rows = {row["notation"]: row for row in _rows()}
    places = {notation: _place(notation) for notation in rows}
    children: dict[str, list[str]] = defaultdict(list)
    for notation, place in places.items():
        if len(place.path) > 1:
            children[place.path[-2]].append(notation)
    return [_record(rows, places[notation], children) for notation in rows]


def starter_seed() -> Seed:
    """Return the starter set with its embeddings, to fill a new catalog with.

    The vectors, one of float16 for each record in the order of `starter_records`, are made by
    ``scripts/embed_starter.py``.
    """
    import numpy as np  # noqa: PLC0415  - heavy, and needed only when a catalog is first filled

    records = starter_records()
    with (files(__name__) / "vectors.npy").open("rb") as file:
        vectors = np.load(file, allow_pickle=False)
    hashes = [text_hash(record.description) for record in records]
    return Seed(records=records, model=MINILM_NAME, hashes=hashes, vectors=vectors)


def _rows() -> Iterator[dict[str, str]]:
    folder = files(__name__) / "mathematics"
    for table in sorted(folder.iterdir(), key=lambda item: item.name):
        with table.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def _place(notation: str) -> _Place:
    if notation.startswith(_PRACTICE):
        name = notation.removeprefix(_PRACTICE)
        return _Place(
            (notation,),
            "Mathematical Practice",
            _ALL_GRADES,
            "practices",
            "Common Core Mathematics: Practices",
            (name, f"MP.{name[2:]}"),
            f"{_SITE}/Practice/{name}/",
        )
    code = notation.removeprefix(_CONTENT)
    match = _CODE.fullmatch(code)
    if match is None:
        raise ValueError(f"{notation!r} is not a Common Core Mathematics code")
    path = _path(match)
    grade = match["grade"]
    levels = _HIGH_SCHOOL if grade is None else ("K" if grade == "K" else f"0{grade}",)
    return _Place(
        tuple(_CONTENT + item for item in path),
        _LABELS[len(path) - 1],
        levels,
        _set_key(code, grade),
        f"Common Core Mathematics: {_course(code, grade)}",
        _short_forms(match),
        _url(match),
    )


def _path(match: re.Match[str]) -> list[str]:
    domain, cluster, number, part = (
        match["domain"],
        match["cluster"],
        match["number"],
        match["part"],
    )
    path = [domain]
    if cluster:
        path.append(f"{domain}.{cluster}")
    if number:
        path.append(f"{domain}.{cluster}.{number}")
    if part:
        path.append(f"{domain}.{cluster}.{number}{part}")
    return path


def _course(code: str, grade: str | None) -> str:
    if grade is None:
        return f"High School, {_CATEGORIES[code[:3]]}"
    return "Kindergarten" if grade == "K" else f"Grade {grade}"


def _set_key(code: str, grade: str | None) -> str:
    if grade is None:
        return f"high-school-{_CATEGORIES[code[:3]].lower().replace(' ', '-')}"
    return "grade-k" if grade == "K" else f"grade-0{grade}"


def _short_forms(match: re.Match[str]) -> tuple[str, ...]:
    """Return the code without its prefix and, for a standard, without its cluster letter too."""
    domain, number, part = match["domain"], match["number"], match["part"] or ""
    forms = [match[0]]
    if number:
        forms.append(f"{domain.removeprefix('HS').replace('-', '.')}.{number}{part and '.'}{part}")
    return tuple(forms)


def _url(match: re.Match[str]) -> str:
    """Return the page of the official wording; clusters stand on their domain's page."""
    parts = match["domain"].replace("-", ".").split(".")
    if match["number"]:
        parts += [match["cluster"], match["number"], match["part"] or ""]
    return f"{_SITE}/Content/{'/'.join(part for part in parts if part)}/"


def _record(
    rows: Mapping[str, Mapping[str, str]],
    place: _Place,
    children: Mapping[str, Sequence[str]],
) -> StandardRecord:
    *ancestors, notation = place.path
    row = rows[notation]
    below = children.get(notation, ())
    siblings = children[ancestors[-1]] if ancestors else [notation]
    ids = [rows[ancestor]["guid"] for ancestor in ancestors]
    return StandardRecord.model_validate(
        {
            "_id": row["guid"],
            "content": "\n".join(
                f"Depth {depth} ({code}): {rows[code]['text']}"
                for depth, code in enumerate(place.path)
            ),
            "standard_set_id": f"{_JURISDICTION}_{_DOCUMENT}_{place.set_key}",
            "standard_set_title": place.set_title,
            "subject": "Mathematics",
            "normalized_subject": "Math",
            "education_levels": place.education_levels,
            "document_id": _DOCUMENT,
            "document_valid": "2010",
            "publication_status": "Published",
            "jurisdiction_id": _JURISDICTION,
            "jurisdiction_title": "Common Core State Standards",
            "asn_identifier": row["asn_id"] or None,
            "case_uuid": row["case_uuid"] or None,
            "statement_notation": notation,
            "alt_statement_notations": place.short,
            "statement_label": place.label,
            "depth": len(ancestors),
            "is_leaf": not below,
            "is_root": not ancestors,
            "parent_id": ids[-1] if ids else None,
            "root_id": ids[0] if ids else row["guid"],
            "ancestor_ids": ids,
            "child_ids": [rows[child]["guid"] for child in below],
            "sibling_count": len(siblings) - 1,
            "description": row["text"],
            "source_url": place.url,
            "license": "Apache-2.0",
            "text_status": "paraphrase",
        }
    )
