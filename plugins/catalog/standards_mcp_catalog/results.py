"""The types that a store of standards returns, and the seed of a new store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .records import StandardRecord
from .relations import StatedRelation
from .sets import StandardSet


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
