"""Records of standards for tests of the catalog, made or read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from standards_mcp_catalog.importing.report import Problem
from standards_mcp_catalog.records import StandardRecord


def record(number: int, description: str, **fields: Any) -> StandardRecord:
    """Return the record with the id R and the code XQ of a number."""
    data: dict[str, Any] = {
        "_id": f"R{number:03}",
        "content": f"Depth 0: {description}",
        "standard_set_id": "set-math",
        "standard_set_title": "Mathematics of Somewhere",
        "subject": "Mathematics",
        "education_levels": ["03"],
        "jurisdiction_id": "somewhere",
        "jurisdiction_title": "Somewhere",
        "statement_notation": f"XQ.{number}",
        "description": description,
    }
    return StandardRecord.from_dict(data | fields)


_TEXTS = (
    ("Compare two fractions that have the same denominator.", "03", "Mathematics"),
    ("Add and subtract fractions with unlike denominators.", "05", "Mathematics"),
    ("Tell time to the nearest minute on an analog clock.", "03", "Mathematics"),
    ("Retell a folk tale and explain its central message.", "03", "Language Arts"),
    ("Write an opinion piece and support it with reasons.", "04", "Language Arts"),
    ("Describe how plants use sunlight to make their food.", "05", "Science"),
    ("Model how water moves between ocean, air and land.", "05", "Science"),
    ("Measure the area of a rectangle by counting unit squares.", "03", "Mathematics"),
)
SMALL_CATALOG = [
    record(number, text, education_levels=[level], subject=subject)
    for number, (text, level, subject) in enumerate(_TEXTS)
]


def read_and_told(items: Iterable[object]) -> tuple[list[StandardRecord], list[Problem]]:
    """Return the records that a reader gives, and the problems that it tells."""
    found = list(items)
    return (
        [item for item in found if isinstance(item, StandardRecord)],
        [item for item in found if isinstance(item, Problem)],
    )
