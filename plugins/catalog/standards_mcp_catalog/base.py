"""The interface of every store of standards. The types that it returns are in `results`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from standards_mcp.errors import FilterError
from standards_mcp.filters import FilterExpression, Node, fields, parse_filter

from .errors import CatalogError
from .vocabulary.relation_kinds import KINDS

# A server imports this module before it can list its tools, and the other ones with the first call.
if TYPE_CHECKING:
    from .records import StandardRecord
    from .relations import StatedRelation
    from .results import CatalogStats, Facets, FieldValues, SearchResult, StandardSets

MAX_QUERY_CHARACTERS: Final = 8000

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the finished and the total number of items."""

SEARCHED_FIELDS: Final = frozenset({"content", "description"})
"""Fields that are searched, so that no filter may name them."""

Filter: TypeAlias = FilterExpression | Node
"""A filter as JSON data, or parsed."""


def parse_search_filter(expression: Filter | None) -> Node | None:
    """Return the filter of a search, see `standards_mcp.filters.parse_filter`.

    Raises:
        FilterError: The filter is invalid, or names one of `SEARCHED_FIELDS`.
    """
    node = parse_filter(expression)
    if searched := fields(node) & SEARCHED_FIELDS:
        raise FilterError(
            f"{min(searched)!r} is searched and cannot be filtered; put its words into the query."
        )
    return node


# Methods are asynchronous, because a deadline can interrupt the retries of Pinecone's client only
# in the event loop. The embedded store runs in threads.
class Catalog(ABC):
    """A store of standards. Every method may raise `CatalogError`."""

    @abstractmethod
    async def search(
        self,
        query_text: str,
        top_k: int = 5,
        filter: Filter | None = None,  # noqa: A002
    ) -> SearchResult:
        """Return the *top_k* best records for a text of up to 8,000 characters.

        The text is never parsed as query syntax. Records that *filter* excludes are never scored.
        """

    @abstractmethod
    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        """Return the records with these ids, in the order of *ids*; unknown ids are left out."""

    @abstractmethod
    async def find(self, identifier: str) -> list[StandardRecord]:
        """Return the records with this GUID, ASN id, CASE URI or notation, best first."""

    async def find_all(self, identifiers: Sequence[str]) -> list[list[StandardRecord]]:
        """Return the result of `find` for each of *identifiers*, in their order.

        A store with slow calls overrides it to answer all of them together.
        """
        return [await self.find(identifier) for identifier in identifiers]

    async def relations(
        self, records: Sequence[StandardRecord], kinds: Collection[str] = KINDS, limit: int = 50
    ) -> list[tuple[StatedRelation, ...]]:
        """Return at most *limit* stated relations for each of *records*, by kind.

        Without an index of relations, a store returns the relations that the records themselves
        state.

        Args:
            kinds: The `KINDS` to return.
        """
        from .relations import StatedRelation, of_kinds, stated_in  # noqa: PLC0415  - as above

        wanted = of_kinds(kinds)
        stated = [
            [pair for pair in stated_in(record.model_extra or {}) if pair[0] in wanted][:limit]
            for record in records
        ]
        ids = list(dict.fromkeys(id_ for pairs in stated for _, id_ in pairs))
        loaded = {record.id: record for record in await self.fetch(ids)} if ids else {}
        return [
            tuple(
                StatedRelation(
                    kind=kind, identifier=id_, record=loaded.get(id_), origin=_origin(record)
                )
                for kind, id_ in pairs
            )
            for record, pairs in zip(records, stated, strict=True)
        ]

    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        """Return the records with notations close to an *identifier* that `find` did not find."""
        del identifier, limit
        return []

    @abstractmethod
    async def select(self, filter: Filter, limit: int) -> list[StandardRecord]:  # noqa: A002
        """Return the records that pass a filter, in the order of their ids.

        If there are more than *limit*, the store chooses among them.
        """

    @abstractmethod
    async def sets(self) -> StandardSets:
        """Return the standard sets."""

    @abstractmethod
    async def facets(self) -> Facets:
        """Return the values of the main fields in this catalog."""

    @abstractmethod
    async def values(self, name: str) -> FieldValues:
        """Return the texts of a field, as values for a filter."""

    @abstractmethod
    async def stats(self) -> CatalogStats:
        """Return the size, place and state of the catalog."""

    def notes(self) -> tuple[str, ...]:
        """Return notes on the last answer, such as that a fallback gave it.

        This sends no request. Notes on a search are in its result.
        """
        return ()

    async def check(self) -> tuple[str, ...]:
        """Try all parts of a search, without searching.

        Returns:
            The notes that a search would have, see `SearchResult`.

        Raises:
            CatalogError: No search is possible; the message names the remedy.
        """
        await self.stats()
        return ()

    async def upsert(self, records: Iterable[StandardRecord]) -> int:
        """Add or replace records, make them searchable, and return how many changed."""
        del records
        raise CatalogError("this catalog is for reading only")

    async def delete(self, ids: Iterable[str]) -> int:
        """Delete the records with these ids and return how many there were."""
        del ids
        raise CatalogError("this catalog is for reading only")

    async def aclose(self) -> None:  # noqa: B027  - most catalogs have some
        """Close files and connections. It may be called more than once."""


_Method = TypeVar("_Method", bound=Callable[..., Coroutine[Any, Any, Any]])


def _forwarded(method: _Method) -> _Method:
    """Return a method of the same signature that forwards each call to `_ask`."""

    async def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._ask(method.__name__, *args, **kwargs)

    return cast("_Method", forward)


class ForwardingCatalog(Catalog):
    """Forwards every call to a store, which a subclass chooses in `_ask`.

    The store may have synchronous methods of the same names, which `_ask` runs in a thread. So a
    subclass does not repeat the interface.
    """

    @abstractmethod
    async def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call *method* of the store, and return its result."""

    search = _forwarded(Catalog.search)
    fetch = _forwarded(Catalog.fetch)
    find = _forwarded(Catalog.find)
    find_all = _forwarded(Catalog.find_all)
    relations = _forwarded(Catalog.relations)
    suggest = _forwarded(Catalog.suggest)
    select = _forwarded(Catalog.select)
    sets = _forwarded(Catalog.sets)
    facets = _forwarded(Catalog.facets)
    values = _forwarded(Catalog.values)
    stats = _forwarded(Catalog.stats)
    check = _forwarded(Catalog.check)
    upsert = _forwarded(Catalog.upsert)
    delete = _forwarded(Catalog.delete)


def _origin(record: StandardRecord) -> str:
    extra = record.model_extra or {}
    return str(extra.get("document_title") or record.standard_set_title)


def check_query(text: str, top_k: int) -> None:
    """Raise an error for a query that no store accepts.

    Raises:
        CatalogError: The text is too long, or *top_k* is less than 1.
    """
    if len(text) > MAX_QUERY_CHARACTERS:
        raise CatalogError(
            f"the text has {len(text):,} characters and at most {MAX_QUERY_CHARACTERS:,} are "
            "searched; shorten it to what students do"
        )
    if top_k < 1:
        raise CatalogError(f"top_k is {top_k}; ask for at least 1 result")
