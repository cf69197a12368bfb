"""Find the standards of an item: those that it states, and those that its text fits."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from standards_mcp.filters import Node, matches
from standards_mcp_alignment.inputs import Item
from standards_mcp_catalog import Catalog, SearchHit, StandardRecord
from standards_mcp_catalog.base import MAX_QUERY_CHARACTERS
from standards_mcp_catalog.relations import retirements
from standards_mcp_catalog.vocabulary.grades import spoken_levels
from standards_mcp_catalog.vocabulary.notation import codes_in

from .calibration import Calibration
from .features import DEPTH, features_of
from .scope import Scope

Basis: TypeAlias = Literal["found", "stated", "review"]
_LONGEST_STATEMENT: Final = 400
_LONGEST_CODE: Final = 60
_MOST_CODES: Final = 50
_MOST_CHARACTERS: Final = 100_000
"""Number of characters of an item in which codes are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A standard for an item.

    Attributes:
        id: The id of the record.
        code: Its code, or an empty string.
        grades: Its grades, such as ``K-2``.
        score: Relevance from 0 to 1; None if the search did not find it.
        probability: See `calibration`; None without a calibration or a score.
        basis: ``stated`` if the item names the standard, ``review`` if a person did in the review
            file, else ``found``.
        why: The words that the search matched.
        is_retired: True if the standard is no longer in force.
    """

    id: str
    code: str
    statement: str
    jurisdiction: str
    standard_set: str
    grades: str
    score: float | None = None
    probability: float | None = None
    basis: Basis = "found"
    why: str = ""
    is_retired: bool = False

    @classmethod
    def of(cls, record: StandardRecord, **values: Any) -> Self:
        """Return the pair of a record."""
        return cls(
            id=record.id,
            code=record.statement_notation or "",
            statement=textwrap.shorten(record.description, _LONGEST_STATEMENT, placeholder=" ..."),
            jurisdiction=record.jurisdiction_title,
            standard_set=record.standard_set_title,
            grades=spoken_levels(record.education_levels),
            **values,
        )


@dataclass(frozen=True, slots=True)
class Correlation:
    """The standards of one item, the stated ones first, then by probability.

    Attributes:
        notes: Codes that are not loaded or ambiguous, and limits of the search.
    """

    pairs: tuple[Pair, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the correlation as JSON-ready data."""
        return {"pairs": [asdict(pair) for pair in self.pairs], "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the correlation of `to_dict`.

        Raises:
            KeyError, TypeError: The data has another shape.
        """
        return cls(tuple(Pair(**pair) for pair in data["pairs"]), tuple(data["notes"]))


class Correlator:
    """Finds the standards of items in a catalog.

    Args:
        calibration: None if the catalog's text encoder is not the one that was measured.
        top: Number of found standards for an item, at most `features.DEPTH` - 1.
    """

    def __init__(
        self, catalog: Catalog, scope: Scope, calibration: Calibration | None, top: int
    ) -> None:
        self._catalog = catalog
        self._scope = scope
        self._calibration = calibration
        self._top = top

    async def correlate(self, item: Item) -> Correlation:
        """Return the standards of an item.

        Raises:
            CatalogError: The catalog cannot be read.
        """
        scope = self._scope.of(item)
        text = item.content[:_MOST_CHARACTERS]
        codes_in_text = codes_in(text)
        listed_codes = _listed_codes(item)
        codes = list(dict.fromkeys((*listed_codes, *codes_in_text)))[:_MOST_CODES]
        stated, notes = await self.named(codes, scope.filter, certain=listed_codes)
        notes = [*scope.notes, *notes]
        for code in codes_in_text:
            # A search would put named codes first; the probability is about the other words.
            text = text.replace(code, " ")
        if len(text) > MAX_QUERY_CHARACTERS:
            notes.append(f"only the first {MAX_QUERY_CHARACTERS:,} characters were compared")
            text = text[:MAX_QUERY_CHARACTERS]
        hits: Sequence[SearchHit] = ()
        if text.strip():
            hits = (await self._catalog.search(text, DEPTH, scope.filter)).hits
        values = self._values(text, hits, is_graded=scope.is_graded)
        records = {hit.record.id: hit.record for hit in hits}
        best = [id_ for id_ in values if id_ not in stated][: self._top]
        listed = [*stated.values(), *(records[id_] for id_ in best)]
        retired = await retirements(self._catalog, listed)
        notes += [
            retired[record.id].told(name_of(record)) for record in listed if record.id in retired
        ]
        pairs = (
            Pair.of(
                record,
                basis="stated" if record.id in stated else "found",
                is_retired=record.id in retired,
                **values.get(record.id, {}),
            )
            for record in listed
        )
        return Correlation(tuple(pairs), tuple(notes))

    async def chosen(self, standard_id: str) -> Pair | None:
        """Return the pair of a standard that a person has accepted, or None if it is not loaded.

        Raises:
            CatalogError: The catalog cannot be read.
        """
        records = await self._catalog.fetch([standard_id])
        return Pair.of(records[0], basis="review") if records else None

    async def named(
        self, codes: Sequence[str], expression: Node | None, certain: Collection[str]
    ) -> tuple[dict[str, StandardRecord], list[str]]:
        """Return the standards of these codes that pass a filter, by id, and notes on other codes.

        Args:
            certain: Codes that are reported if they are not loaded. Others may be numbers of
                versions or rooms, which only look like codes.
        """
        records: dict[str, StandardRecord] = {}
        notes: list[str] = []
        for code, loaded in zip(codes, await self._catalog.find_all(codes), strict=True):
            inside = [record for record in loaded if matches(expression, record.to_dict())]
            places = sorted({record.jurisdiction_title for record in inside})
            shown = textwrap.shorten(code, _LONGEST_CODE, placeholder="...")
            if len(places) > 1:
                notes.append(
                    f"the code {shown} is used in {' and '.join(places)}; add --jurisdiction"
                )
            elif inside:
                records[inside[0].id] = inside[0]
            elif loaded:
                notes.append(f"the code {shown} is of another grade, subject, set or jurisdiction")
            elif code in certain:
                notes.append(f"the code {shown} is not loaded, or does not exist")
        return records, notes

    def _values(
        self, text: str, hits: Sequence[SearchHit], *, is_graded: bool
    ) -> dict[str, dict[str, Any]]:
        """Return score, probability and matched words of each hit by id, the most probable first.

        Without a calibration, the hits keep their order.
        """
        features = features_of(text, hits, is_graded=is_graded)
        values: dict[str, dict[str, Any]] = {}
        for hit, numbers in zip(hits, features, strict=True):
            probability = self._calibration and self._calibration.probability(numbers)
            values[hit.record.id] = {
                "score": round(hit.score, 4),
                "probability": probability,
                "why": hit.why,
            }
        by_probability = sorted(values.items(), key=lambda entry: -(entry[1]["probability"] or 0))
        return dict(by_probability)


def name_of(record: StandardRecord) -> str:
    """Return the code of a standard, or its id if it has none."""
    return record.statement_notation or record.id


def _listed_codes(item: Item) -> list[str]:
    """Return the codes that a file lists for an item, without texts beside them."""
    codes: list[str] = []
    for entry in item.codes:
        codes += (codes_in(entry) if " " in entry else ()) or (entry,)
    return codes
