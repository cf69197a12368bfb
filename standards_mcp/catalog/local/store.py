"""The embedded store as plain functions of one `folder`; `local` makes it asynchronous."""

from __future__ import annotations

import threading
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from standards_mcp.catalog.base import (
    CatalogStats,
    Facets,
    FieldValues,
    FilterExpression,
    SearchResult,
    check_query,
)
from standards_mcp.catalog.errors import CatalogUnavailableError
from standards_mcp.catalog.records import StandardRecord
from standards_mcp.catalog.sets import StandardSet
from standards_mcp.catalog.vocabulary.notation import canonical_key, codes_in, lookup_keys
from standards_mcp.catalog.vocabulary.suggestions import nearest

from .folder import CatalogFolder
from .seeding import (
    SeedSource,
    begin_without,
    holds_more,
    is_awaited,
    is_new,
    keep,
    plant,
    remember,
)
from .stats import facets_of, stats_of
from .truth import Truth

if TYPE_CHECKING:
    from .index.engine import Engine, Progress
    from .index.ranking import Mode

_LONGEST_CODE = 60
_MOST_CODES = 20


class LocalStore:
    """A catalog in one folder. Its methods may be called from several threads.

    Args:
        path: The folder; it is created when something is written.
        model: Which text encoder to use, see `models`.
        key: The key of the encoder, where it needs one.
        seed: What a catalog that does not exist yet is filled with, see `seeding`.
        lock_timeout: Seconds to wait for another process that writes or builds.
    """

    def __init__(
        self,
        path: Path,
        model: str = "minilm",
        *,
        key: SecretStr | None = None,
        seed: SeedSource | None = None,
        lock_timeout: float = 600,
    ) -> None:
        self._path = path
        self._model = model
        self._key = key
        self._seed = seed
        self._planted = False
        self._folder = CatalogFolder(path, lock_timeout)
        self._opening = threading.RLock()
        self._truth: Truth | None = None
        self._facets: tuple[int, Facets] | None = None

    # -- reading

    def search(
        self,
        text: str,
        top_k: int = 5,
        expression: FilterExpression | None = None,
        mode: Mode = "hybrid",
    ) -> SearchResult:
        """Return the best records for *text*, see `standards_mcp.catalog.Catalog.search`.

        Args:
            mode: ``lexical`` and ``dense`` use one half of the index, to compare them.

        Raises:
            CatalogError: The text is too long, *top_k* is not positive, the filter is wrong, or
                the catalog cannot be read.
        """
        check_query(text, top_k)
        truth = self._open_truth()
        if truth is None:
            return SearchResult(hits=(), notes=(self._empty_note(),))
        result = self._engine.search(truth, text, top_k, expression, self._named_in(text), mode)
        if not result.hits and not truth.count():
            return replace(result, notes=(self._empty_note(),))
        return result

    def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        """Return the records with these ids, in the order of *ids*; unknown ids are left out."""
        truth = self._open_truth()
        return [] if truth is None else truth.fetch(ids)

    def find(self, identifier: str) -> list[StandardRecord]:
        """Return the records that an id, a URI or a notation names, best first.

        Records that write their notation exactly like *identifier* come before the others.
        """
        truth = self._open_truth()
        if truth is None:
            return []
        found = truth.fetch(truth.find(lookup_keys(identifier)))
        return sorted(found, key=lambda record: record.statement_notation != identifier.strip())

    def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        """Return the records whose notation is nearest to *identifier*."""
        truth = self._open_truth()
        if truth is None:
            return []
        keys = nearest(canonical_key(identifier), truth.keys("code:"), limit)
        first_of_each = (truth.find([f"code:{key}"])[:1] for key in keys)
        return truth.fetch([id_ for ids in first_of_each for id_ in ids])

    def select(self, expression: FilterExpression, limit: int) -> list[StandardRecord]:
        """Return the first *limit* records that a filter lets through, in the order of their ids.

        Raises:
            CatalogError: The filter is wrong, or the catalog cannot be read.
        """
        truth = self._open_truth()
        return [] if truth is None else truth.fetch(self._engine.select(expression, limit))

    def facets(self) -> Facets:
        """Return the distinct values of the main fields."""
        truth = self._open_truth()
        if truth is None:
            return Facets(subjects={}, education_levels={}, jurisdictions={}, standard_sets={})
        return self._facets_of(truth)

    def _facets_of(self, truth: Truth) -> Facets:
        revision = truth.revision
        if self._facets is None or self._facets[0] != revision:
            self._facets = revision, facets_of(truth)
        return self._facets[1]

    def values(self, name: str) -> FieldValues:
        """Return the texts that a field has in the index."""
        truth = self._open_truth()
        return FieldValues(counts={} if truth is None else self._engine.values(name))

    def stats(self) -> CatalogStats:
        """Return what the catalog holds; an index that cannot be read is told in the details.

        It only looks: a catalog that does not exist yet is not filled.
        """
        truth = self._look()
        if truth is None or (self._seed and is_new(truth)):
            seed = self._seed
            pending = {"pending": f"{seed.name}, loaded at the first search"} if seed else {}
            return CatalogStats(
                backend="local", location=str(self._path), records=0, details=pending
            )
        return stats_of(self._folder, truth, self._facets_of(truth))

    def check(self) -> tuple[str, ...]:
        """Try everything that a search needs, see `standards_mcp.catalog.Catalog.check`.

        A catalog that does not exist yet is not filled; whether it can be is tried.
        """
        truth = self._look()
        if truth is not None and not (self._seed and is_new(truth)):
            return self._engine.check(truth)
        if self._seed is None:
            return (self._empty_note(),)
        self._folder.check_writable()
        return self._engine.check_encoder()

    def offer_seed(self) -> Sequence[StandardRecord]:
        """Return the records of the seed, ready to be written without embedding anything.

        From then on newer editions of them are taken up.
        """
        if self._seed is None:
            return ()
        with self._writing() as truth:
            seed = self._seed.load()
            keep(truth, seed)
            remember(truth, seed, self._seed.edition())
        return seed.records

    # -- writing

    def upsert(self, records: Iterable[StandardRecord], progress: Progress | None = None) -> int:
        """Add or replace records, rebuild the index, and return how many changed.

        *progress* is told (done, total) while texts are embedded.
        """
        return self.write(records, (), progress)

    def write(
        self,
        records: Iterable[StandardRecord],
        deleted: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> int:
        """Add, replace and delete in one transaction, see `record_store.RecordStore.write`."""
        with self._writing() as truth:
            changed = truth.write(records, deleted)
            self._engine.bring_up_to_date(truth, progress)
        return changed

    def sets(self) -> list[StandardSet]:
        """Return every standard set, in the order of jurisdiction, subject and title."""
        truth = self._open_truth()
        return [] if truth is None else truth.sets()

    def records(self, set_ids: Collection[str] | None = None) -> Iterator[StandardRecord]:
        """Yield the records of these sets, of all by default, in the order of their ids."""
        truth = self._open_truth()
        return iter(()) if truth is None else truth.records(set_ids)

    def delete(self, ids: Iterable[str]) -> int:
        """Delete records, rebuild the index, and return how many there were."""
        return self.write((), ids)

    def build(self, progress: Progress | None = None) -> CatalogStats:
        """Embed what is not embedded yet and build the index anew, whatever state it is in."""
        with self._writing() as truth:
            self._engine.build(truth, progress)
        return self.stats()

    def close(self) -> None:
        """Release what is held open; the next call opens it again."""
        with self._opening:
            if self._truth is not None:
                self._truth.close()
            self._truth = None
            self._planted = False
            # Closing must not be what imports NumPy and the index.
            if "_engine" in vars(self):
                self._engine.close()

    # -- parts

    def _named_in(self, text: str) -> list[str]:
        """Return the ids of the records whose codes *text* is or contains, code by code in turn."""
        codes = codes_in(text)[:_MOST_CODES]
        if not codes and _looks_like_code(text):
            codes = (text,)
        found = ([record.id for record in self.find(code)] for code in codes)
        turns = zip_longest(*found)
        return list(dict.fromkeys(id_ for turn in turns for id_ in turn if id_ is not None))

    @cached_property
    def _engine(self) -> Engine:
        from .index.engine import Engine  # noqa: PLC0415  - imports NumPy, tantivy and onnxruntime

        return Engine(self._folder.index, self._model, self._key)

    def _empty_note(self) -> str:
        return (
            f"The catalog at {self._path} is empty; fill it with `standards-mcp data import FILE`, "
            "or with the starter set by `standards-mcp data import starter`."
        )

    def _look(self) -> Truth | None:
        """Return the truth as it is, None when there is none."""
        with self._opening:
            if self._truth is None and self._folder.holds_a_catalog():
                self._truth = Truth(self._folder.truth)
            return self._truth

    def _open_truth(self) -> Truth | None:
        """Return the truth, filled from the seed when it is new; None when there is none."""
        with self._opening:
            if self._seed is not None and not self._planted:
                self._take_up(self._seed)
                self._planted = True
            return self._look()

    def _take_up(self, seed: SeedSource) -> None:
        truth, edition = self._look(), seed.edition()
        if truth is None or is_new(truth):
            with self._folder.writing() as writable:
                if is_new(writable):
                    self._plant(writable, seed)
        elif is_awaited(truth, edition) and not holds_more(truth):
            # A larger catalog takes up the edition with its next write, which builds anyway.
            with suppress(CatalogUnavailableError), self._folder.writing(timeout=0) as writable:
                self._plant(writable, seed)

    def _plant(self, truth: Truth, source: SeedSource) -> None:
        seed = source.load()
        plant(truth, seed)
        self._engine.bring_up_to_date(truth, None)
        remember(truth, seed, source.edition())

    @contextmanager
    def _writing(self) -> Generator[Truth, None, None]:
        self._open_truth()
        with self._folder.writing() as truth:
            if self._seed is None:
                begin_without(truth)
            elif is_awaited(truth, self._seed.edition()):
                seed = self._seed.load()
                plant(truth, seed)
                remember(truth, seed, self._seed.edition())
            yield truth


def _looks_like_code(text: str) -> bool:
    """Return whether *text* may be a code such as ``3.NF.A.1`` and nothing else."""
    return len(text) <= _LONGEST_CODE and any(mark in text for mark in "0123456789.-")
