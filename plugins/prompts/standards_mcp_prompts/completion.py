"""Complete the arguments of prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from standards_mcp_catalog import Catalog

_GRADES: Final = ("K", *map(str, range(1, 13)))


class Completion:
    """Completes arguments from the catalog; without a catalog, only grades."""

    def __init__(self, catalog: Callable[[], Catalog | None]) -> None:
        self._catalog = catalog

    def grades(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return the grades that begin with *typed*, from the argument ``first_grade`` on."""
        first = others.get("first_grade", "").strip().upper()
        later = _GRADES[_GRADES.index(first) :] if first in _GRADES else _GRADES
        return [grade for grade in later if grade.startswith(typed.strip().upper())]

    async def subjects(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return the subjects of the catalog with *typed* in them, the largest first."""
        del others
        if (catalog := self._catalog()) is None:
            return []
        counts = (await catalog.facets()).subjects
        found = [name for name in counts if typed.strip().casefold() in name.casefold()]
        return sorted(found, key=lambda name: (-counts[name], name))

    async def codes(self, typed: str, others: Mapping[str, str]) -> list[str]:
        """Return the codes of the catalog that contain *typed*; matches at the start come first."""
        del others
        text = typed.strip().casefold()
        catalog = self._catalog()
        if not text or catalog is None:
            return []
        codes = (await catalog.values("statement_notation")).counts
        found = [code for code in codes if text in code.casefold()]
        return sorted(
            found, key=lambda code: (not code.casefold().startswith(text), len(code), code)
        )
