"""The interface of every store of standards, and the types that it takes and returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic import SecretStr

from standards_mcp.errors import FilterError
from standards_mcp.filters import FilterExpression, Node, fields, parse_filter

from .errors import CatalogError
from .records import StandardRecord
from .relations import KINDS, StatedRelation, of_kinds, stated_in
from .sets import StandardSet

MAX_QUERY_CHARACTERS: Final = 8000

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how much is done, and of how much."""

SEARCHED_FIELDS: Final = frozenset({"content", "description"})
"""The fields that are searched and therefore not filtered by."""


def parse_search_filter(expression: object) -> Node | None:
    """Return the filter of a search, see `standards_mcp.filters.parse_filter`.

    Raises:
        FilterError: The filter is wrong, or asks for a text that is searched, not filtered.
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
        also_in: The other records of the catalog with the same text, which this hit stands for.
    """

    record: StandardRecord
    score: float
    also_in: tuple[StandardRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits of one search, best first, and what the caller should be told about it.

    Attributes:
        notes: Full sentences about how the search had to be done, for example without a model.
        weak_below: Hits with a lower score hardly ever fit, by measurement; 0 if that was not
            measured for the store, as with Pinecone, whose results are never marked as weak.
    """

    hits: tuple[SearchHit, ...]
    notes: tuple[str, ...] = ()
    weak_below: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The distinct values of the catalog's main fields, each with its number of records."""

    subjects: Mapping[str, int]
    education_levels: Mapping[str, int]
    jurisdictions: Mapping[str, int]
    standard_sets: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldValues:
    """The distinct texts that a field has, each with a number of records.

    Attributes:
        complete: Whether these are all. A store that cannot list them gives what it has come
            across.
        counted: Whether the numbers are those of all records, and not of a sample.
    """

    counts: Mapping[str, int]
    complete: bool = True
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardSets:
    """The standard sets of a catalog, in the order of jurisdiction, subject and title.

    Attributes:
        complete: Whether these are all. A store that cannot list them gives what it has come
            across.
        counted: Whether their numbers of records are those of all records, and not of a sample.
    """

    sets: tuple[StandardSet, ...]
    complete: bool = True
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogStats:
    """What a catalog holds and where.

    Attributes:
        backend: ``local`` or ``pinecone``.
        location: A folder or an index name.
        model: The name of the text encoder, or None when search is lexical only.
        size_bytes: Bytes on disk, or None where that is not known.
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
    """What a new catalog is filled with, so that nothing has to be embedded first.

    Attributes:
        model: The name of the encoder that made the vectors.
        hashes: For each vector the `texts.text_hash` of its text.
        vectors: An array of shape (len(hashes), dimensions), of any floating-point type.
    """

    records: Sequence[StandardRecord]
    model: str
    hashes: Sequence[str]
    vectors: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PineconeAccess:
    """Where the index in Pinecone is and how to get in.

    Attributes:
        host: The host of the index, which saves asking for it; http only on loopback.
        deadline: Seconds for one call.
        fallback: Whether the embedded catalog answers while Pinecone cannot be reached.
    """

    api_key: SecretStr
    index_name: str
    namespace: str
    host: str | None = None
    deadline: float = 20.0
    fallback: bool = False


class Catalog(ABC):
    """A store of standards. Every method may raise `CatalogError`."""

    @abstractmethod
    async def search(
        self,
        query_text: str,
        top_k: int = 5,
        filter: FilterExpression | None = None,  # noqa: A002
    ) -> SearchResult:
        """Return the *top_k* best records for a text of up to 8,000 characters.

        The text is never parsed as query syntax. Records that *filter* excludes are never scored.
        """

    @abstractmethod
    async def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        """Return the records with these ids, in the order of *ids*; unknown ids are left out."""

    @abstractmethod
    async def find(self, identifier: str) -> list[StandardRecord]:
        """Return the records that a GUID, an ASN id, a CASE URI or a notation names, best first."""

    async def find_all(self, identifiers: Sequence[str]) -> list[list[StandardRecord]]:
        """Return for each of *identifiers* what `find` returns, in their order.

        A store whose calls take long answers all of them at once.
        """
        return [await self.find(identifier) for identifier in identifiers]

    async def relations(
        self, records: Sequence[StandardRecord], kinds: Collection[str] = KINDS, limit: int = 50
    ) -> list[tuple[StatedRelation, ...]]:
        """Return for each of *records* at most *limit* relations that sources state, by kind.

        A store that looks from one end only knows what the records themselves state.

        Args:
            kinds: Which of `relations.KINDS` to return.
        """
        wanted = of_kinds(kinds)
        stated = [
            [each for each in stated_in(record.model_extra or {}) if each[0] in wanted][:limit]
            for record in records
        ]
        ids = list(dict.fromkeys(id_ for each in stated for _, id_ in each))
        loaded = {record.id: record for record in await self.fetch(ids)} if ids else {}
        return [
            tuple(
                StatedRelation(
                    kind=kind, identifier=id_, record=loaded.get(id_), origin=_origin(record)
                )
                for kind, id_ in each
            )
            for record, each in zip(records, stated, strict=True)
        ]

    async def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        """Return the records whose notation is nearest to one that `find` did not know."""
        del identifier, limit
        return []

    @abstractmethod
    async def select(self, filter: FilterExpression, limit: int) -> list[StandardRecord]:  # noqa: A002
        """Return the records that a filter lets through, in the order of their ids.

        Where there are more than *limit*, the store decides which of them it returns.
        """

    @abstractmethod
    async def sets(self) -> StandardSets:
        """Return the standard sets."""

    @abstractmethod
    async def facets(self) -> Facets:
        """Return the values that the catalog really holds."""

    @abstractmethod
    async def values(self, name: str) -> FieldValues:
        """Return the texts that a field has, which a filter may ask for."""

    @abstractmethod
    async def stats(self) -> CatalogStats:
        """Return what the catalog holds and where."""

    def notes(self) -> tuple[str, ...]:
        """Return what to tell about the last answer, such as that another store gave it.

        The store is not asked for this. Notes on a search are in its result.
        """
        return ()

    async def check(self) -> tuple[str, ...]:
        """Try everything that a search needs, without searching.

        Returns:
            The notes that a search would have, see `SearchResult`.

        Raises:
            CatalogError: No search can be done; the message says what to do.
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

    async def aclose(self) -> None:  # noqa: B027  - most catalogs hold something open
        """Release what the catalog holds open. It may be called more than once."""


def _origin(record: StandardRecord) -> str:
    extra = record.model_extra or {}
    return str(extra.get("document_title") or record.standard_set_title)


def check_query(text: str, top_k: int) -> None:
    """Refuse what no search accepts.

    Raises:
        CatalogError: The text is too long, or no result is asked for.
    """
    if len(text) > MAX_QUERY_CHARACTERS:
        raise CatalogError(
            f"the text has {len(text):,} characters and at most {MAX_QUERY_CHARACTERS:,} are "
            "searched; shorten it to what students do"
        )
    if top_k < 1:
        raise CatalogError(f"top_k is {top_k}; ask for at least 1 result")
