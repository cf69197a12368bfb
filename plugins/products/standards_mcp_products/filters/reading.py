"""Reads the filters of a call into what Chroma takes.

Chroma wants one operator in each object and one key in each ``where``, and raises errors of many
kinds for all else. So everything is checked here, and a refusal names the place in the filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from .fractions import told
from .values import DOCUMENT_OPERATORS, OPERATORS, scalar, text, wrong

Where: TypeAlias = dict[str, Any]
DEEPEST: Final = 8
MOST_CONDITIONS: Final = 64
DOCUMENT: Final = "document"
_LONGEST_KEY: Final = 64
_RESERVED: Final = ("$", "#", "chroma:")


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a product must fulfil, as Chroma takes it.

    Attributes:
        where: About its fields.
        document: About its text.
    """

    where: Where | None = None
    document: Where | None = None


def read_filters(filters: Mapping[str, Any] | None) -> Conditions:
    """Return the conditions of the argument ``filters``.

    Raises:
        InvalidInputError: They have no meaning here; the message begins with the place.
    """
    if not filters:
        return Conditions()
    reader = _Reader()
    members = list(reader.members(filters, "filters", 1, document=True))
    return Conditions(_all(members), _all(reader.documents))


class _Reader:
    """Reads one object of filters.

    Attributes:
        documents: The conditions about the text.
    """

    def __init__(self) -> None:
        self.documents = list[Where]()
        self._count = 0

    def members(
        self, filters: Mapping[str, Any], place: str, depth: int, *, document: bool
    ) -> Iterator[Where]:
        """Yield conditions that must all be true, in the order of the keys.

        Args:
            depth: How many objects of filters this one is in, with itself.
            document: Whether it may have conditions about the text.
        """
        if depth > DEEPEST:
            raise wrong(place, f"filters may be nested {DEEPEST} deep")
        for key, value in filters.items():
            inner = f"{place}.{_short(key)}"
            if key in ("$and", "$or"):
                for_all = key == "$and"
                may_have = document and for_all and depth == 1
                yield from self._group(value, inner, depth, document=may_have, for_all=for_all)
            elif key == DOCUMENT:
                self._document(value, inner, is_allowed=document)
            else:
                yield from self._field(key, value, place)

    def _group(
        self, value: object, place: str, depth: int, *, document: bool, for_all: bool
    ) -> Iterator[Where]:
        if not isinstance(value, list) or not value:
            raise wrong(place, "a list of at least one filter is needed")
        given = cast("list[object]", value)
        found = list[list[Where]]()
        for position, each in enumerate(given):
            inner = f"{place}[{position}]"
            if not isinstance(each, dict) or not each:
                raise wrong(inner, "an object with at least one key is needed")
            filters = cast("dict[str, Any]", each)
            found.append(list(self.members(filters, inner, depth + 1, document=document)))
        if for_all or len(found) == 1:
            yield from (each for members in found for each in members)
        else:
            yield {"$or": [_all(members) for members in found]}

    def _field(self, key: str, value: object, place: str) -> Iterator[Where]:
        if key.startswith(_RESERVED) or not key:
            raise wrong(place, f"unknown key {_short(key)!r}; use names of fields, $and or $or")
        inner = f"{place}.{_short(text(key, place))}"
        if isinstance(value, dict):
            for operator, given in self._operators(cast("Where", value), inner, OPERATORS):
                yield from told(key, {operator: given})
        elif isinstance(value, list):
            raise wrong(inner, 'a list is given by {"$in": [...]}')
        else:
            self._add(inner)
            yield from told(key, scalar(value, inner))

    def _document(self, value: object, place: str, *, is_allowed: bool) -> None:
        if not is_allowed:
            raise wrong(place, "may stand at the top level or in a $and at the top level")
        if not isinstance(value, dict):
            raise wrong(place, f"use {_listed(DOCUMENT_OPERATORS)}")
        for operator, given in self._operators(cast("Where", value), place, DOCUMENT_OPERATORS):
            self.documents.append({operator: given})

    def _operators(
        self, operators: Where, place: str, known: Mapping[str, Any]
    ) -> Iterator[tuple[str, object]]:
        if not operators:
            raise wrong(place, f"an operator is needed; use {_listed(known)}")
        for operator, given in operators.items():
            if operator in DOCUMENT_OPERATORS and operator not in known:
                raise wrong(place, f"{operator} is for the name {DOCUMENT!r} only")
            if operator not in known:
                problem = f"unknown operator {_short(operator)!r}; use {_listed(known)}"
                raise wrong(place, problem)
            self._add(place)
            yield operator, known[operator](given, f"{place}.{operator}")

    def _add(self, place: str) -> None:
        self._count += 1
        if self._count > MOST_CONDITIONS:
            raise wrong(place, f"there may be {MOST_CONDITIONS} conditions")


def _all(members: list[Where]) -> Where | None:
    if not members:
        return None
    return members[0] if len(members) == 1 else {"$and": members}


def _short(key: str) -> str:
    """Return a key as messages have it: those of any length must fit."""
    return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}..."


def _listed(operators: Mapping[str, Any]) -> str:
    return ", ".join(operators)
