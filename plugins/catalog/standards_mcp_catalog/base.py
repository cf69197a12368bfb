"""The interface of every store of standards, and the types that it takes and returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar, cast

from standards_mcp.errors import FilterError
from standards_mcp.filters import FilterExpression, Node, fields, parse_filter

from .errors import CatalogError
from .records import StandardRecord
from .relations import KINDS, StatedRelation, of_kinds, stated_in
from .sets import StandardSet

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A record that a search found.

    Attributes:
        score: Relevance from 0 to 1; falls with rank within one search.
        also_in: The other records of the catalog with the same text; they get no hit of their own.
        why: What the store matched, in at most ten words: a code or words of the query, or a phrase
            in teachers' words for the standard. Empty if only the meaning matched.
        replaced_by: The successors of the record, if the store read them together with it.
    """

    record: StandardRecord
    score: float
    also_in: tuple[StandardRecord, ...] = ()
    why: str = ""
    replaced_by: tuple[StatedRelation, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits of one search, best first, and notes for the caller.

    Attributes:
        notes: Full sentences about limits of the search, for example without a model.
        weak_below: Measured score below which hits hardly ever fit; 0 if there is no measurement
            for the store, as with Pinecone, whose results are never marked as weak.
        subjects: The probability of each school subject that the text may be about, see
            `vocabulary.subject_model`; empty if the store does not know.
        read_as: The text that was searched in place of the query, with misspelt words corrected;
            empty if no word was corrected.
    """

    hits: tuple[SearchHit, ...]
    notes: tuple[str, ...] = ()
    weak_below: float = 0
    subjects: Mapping[str, float] = field(default_factory=dict[str, float])
    read_as: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The distinct values of the catalog's main fields, each with its number of records."""

    subjects: Mapping[str, int]
    education_levels: Mapping[str, int]
    jurisdictions: Mapping[str, int]
    standard_sets: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """What a store lists.

    Attributes:
        complete: True if it is all known. A store that cannot list it returns what it has seen.
        counted: True if the numbers count all records, False if they count a sample.
    """

    complete: bool = True
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValues(_Listing):
    """The distinct texts that a field has, each with a number of records."""

    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardSets(_Listing):
    """The standard sets of a catalog, in the order of jurisdiction, subject and title."""

    sets: tuple[StandardSet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStats:
    """Size, place and state of a catalog.

    Attributes:
        backend: ``local`` or ``pinecone``.
        location: A folder or an index name.
        model: The name of the text encoder, or None when search is lexical only.
        size_bytes: Bytes on disk, or None if unknown.
        details: More facts of the backend, for display.
    """

    backend: str
    location: str
    records: int
    model: str | None = None
    size_bytes: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """The records of a new catalog, with their vectors, so that no text has to be embedded.

    Attributes:
        model: The name of the encoder that made the vectors.
        hashes: For each vector the `records.text_hash` of its text.
        vectors: An array of shape (len(hashes), dimensions), of any floating-point type.
    """

    records: Sequence[StandardRecord]
    model: str
    hashes: Sequence[str]
    vectors: Any


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
            kinds: The `relations.KINDS` to return.
        """
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
