"""The starter set's texts beside the texts of the same standards.

Official texts and descriptions of activities have few words in common; the starter set says the
same standards in a teacher's words. So what it says of a standard is searched together with the
text of each record of that standard, and helps to place records that resemble it. What is shown
stays the record's own text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from standards_mcp_catalog.starter import starter_vectors, starter_wordings
from standards_mcp_catalog.vocabulary.names import are_one_jurisdiction
from standards_mcp_catalog.vocabulary.notation import canonical_key
from standards_mcp_encoders.minilm import MINILM_NAME, Vectors, normalised

# All were chosen on real queries, see docs/benchmarks.md.
_LEAST_LIKENESS: Final = 0.45  # below it an equal code elsewhere is that of another standard
_NEIGHBOUR: Final = 0.6  # from here on the nearest wording says what a record means


class Link(NamedTuple):
    """What the starter set has for a record.

    Attributes:
        number: Which of its texts; None if it has none for this standard.
        is_own: Whether the record is the starter set's own.
        is_same: Whether the record is the same standard in the same framework, under another id.
    """

    number: int | None = None
    is_own: bool = False
    is_same: bool = False


class Wordings:
    """The texts of the starter set, and their vectors if *model* is the one that made them."""

    def __init__(self, model: str | None) -> None:
        wordings = starter_wordings()
        self.texts = [each.text for each in wordings]
        self._jurisdictions = [each.jurisdiction for each in wordings]
        self._by_id = {each.id: number for number, each in enumerate(wordings)}
        self._by_code = {canonical_key(each.notation): n for n, each in enumerate(wordings)}
        self._vectors: Vectors | None = None
        if model == MINILM_NAME:
            self._vectors = normalised(starter_vectors())

    def links(self, records: Sequence[Mapping[str, Any]], vectors: Vectors) -> list[Link]:
        """Return what the starter set has for each of *records*, by id or else by code.

        A code counts within its framework; in another one, states say their own under codes of the
        Common Core, so that the texts must be alike as well.

        Args:
            vectors: Of the records, shape (records, dimensions).
        """
        return [self._link(*each) for each in zip(records, vectors, strict=True)]

    def joined(self, vectors: Vectors, links: Sequence[Link]) -> Vectors:
        """Return the means of *vectors* and those of their wordings, else of the nearest one.

        The starter set's own records, and those that no wording is near to, keep theirs. Means are
        not scaled to length 1, so that a record counts less whose two texts say different things.
        """
        if self._vectors is None:
            return vectors
        beside = np.array([-1 if link.number is None else link.number for link in links])
        unlinked = np.flatnonzero(beside < 0)
        likeness = vectors[unlinked] @ self._vectors.T
        is_near = likeness.max(axis=1, initial=0) >= _NEIGHBOUR
        beside[unlinked[is_near]] = likeness[is_near].argmax(axis=1)
        rows = [row for row, link in enumerate(links) if beside[row] >= 0 and not link.is_own]
        found = vectors.copy()
        found[rows] = (vectors[rows] + self._vectors[beside[rows]]) / 2
        return found

    def _link(self, record: Mapping[str, Any], vector: Vectors) -> Link:
        number = self._by_id.get(record["_id"])
        if number is not None:
            return Link(number, is_own=record.get("text_status") == "paraphrase")
        number = self._by_code.get(canonical_key(record.get("statement_notation") or ""))
        if number is None:
            return Link()
        if _are_one(record["jurisdiction_title"], self._jurisdictions[number]):
            return Link(number, is_same=True)
        if self._vectors is None or vector @ self._vectors[number] < _LEAST_LIKENESS:
            return Link()
        return Link(number)


@cache  # a build of a small catalog takes less time than to read them again
def open_wordings(model: str | None) -> Wordings:
    """Return the `Wordings` for *model*."""
    return Wordings(model)


_are_one = cache(are_one_jurisdiction)  # thousands of records have one title
