"""The embedded store, synchronous; `catalog.LocalCatalog` runs it in worker threads.

A lookup needs no `results`, whose import takes some milliseconds, so methods import them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from standards_mcp_catalog.base import Filter, Progress, check_query
from standards_mcp_catalog.errors import CatalogUnavailableError
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.relations import CrosswalkLinks, StatedRelation
from standards_mcp_catalog.sets import GivenNames, StandardSet, without_replaced
from standards_mcp_catalog.vocabulary.grades import grade_order
from standards_mcp_catalog.vocabulary.notation import canonical_key, codes_in, lookup_keys
from standards_mcp_catalog.vocabulary.relation_kinds import KINDS
from standards_mcp_catalog.vocabulary.suggestions import nearest

from . import seeding
from .copies import check_changeable, copy_of
from .database import Database
from .folder import CatalogFolder
from .index.manifest import current_folder, read_manifest
from .relations import stated_relations
from .seeding import SeedSource

if TYPE_CHECKING:
    from standards_mcp_catalog.results import CatalogStats, Facets, FieldValues, SearchResult

    from .index.engine import Engine
    from .index.ranking import Mode

_LONGEST_CODE = 60
_MOST_CODES = 20


class LocalStore:
    """A catalog in one folder. Its methods may be called from several threads.

    Every method may raise `CatalogError`.

    Attributes:
        folder: The files of the catalog.

    Args:
        path: The folder; it is created at the first use.
        model: Text encoder, see `standards_mcp_encoders.spec`.
        key: API key of the encoder, if it needs one.
        seed: Records to fill a new catalog with, see `seeding`.
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
        self._model = model
        self._key = key
        self._seed = seed
        self._is_seed_checked = False
        self.folder = CatalogFolder(path, lock_timeout)
        self._opening = threading.RLock()
        self._database: Database | None = None
        self._facets: tuple[object, Facets] | None = None
        self._keys: tuple[object, frozenset[str]] | None = None

    # -- reading

    def search(
        self,
        query_text: str,
        top_k: int = 5,
        filter: Filter | None = None,  # noqa: A002
        mode: Mode = "hybrid",
    ) -> SearchResult:
        """Return the best records for *query_text*, see `standards_mcp_catalog.Catalog.search`.

        Args:
            mode: ``lexical`` searches by words only and ``dense`` by vectors only, for benchmarks.
        """
        from standards_mcp_catalog.results import SearchResult  # noqa: PLC0415  - see the module

        check_query(query_text, top_k)
        database = self.database
        if not database.revision:
            return SearchResult(hits=(), notes=(self._empty_note(),))
        named = self._codes_in(query_text)
        result = self._engine.search(database, query_text, top_k, filter, named, mode)
        if not result.hits and not database.count():
            return replace(result, notes=(self._empty_note(),))
        return result

    def fetch(self, ids: Sequence[str]) -> list[StandardRecord]:
        """Return the records with these ids, in the order of *ids*; unknown ids are left out."""
        return self.database.fetch(ids)

    def find(self, identifier: str) -> list[StandardRecord]:
        """Return the records that an id, a URI or a notation names, best first.

        Records that write their notation exactly like *identifier* come first. Paraphrases are
        left out if the official text of the standard is loaded.
        """
        database = self.database
        found = without_replaced(database.fetch(database.find(lookup_keys(identifier))))
        return sorted(found, key=lambda record: record.statement_notation != identifier.strip())

    def find_all(self, identifiers: Sequence[str]) -> list[list[StandardRecord]]:
        """Return the result of `find` for each of *identifiers*, in their order."""
        return [self.find(identifier) for identifier in identifiers]

    def relations(
        self, records: Sequence[StandardRecord], kinds: Collection[str] = KINDS, limit: int = 50
    ) -> list[tuple[StatedRelation, ...]]:
        """Return the relations of each record, see `standards_mcp_catalog.Catalog.relations`."""
        return stated_relations(self.database, records, kinds, limit)

    def suggest(self, identifier: str, limit: int = 5) -> list[StandardRecord]:
        """Return the records whose notation is nearest to *identifier*."""
        database = self.database
        keys = nearest(canonical_key(identifier), self._keys_of(database), limit)
        found = (database.fetch(database.find([f"code:{key}"])) for key in keys)
        return [record for records in found for record in without_replaced(records)[:1]]

    def select(self, filter: Filter, limit: int) -> list[StandardRecord]:  # noqa: A002
        """Return the first *limit* records that pass a filter, in the order of ids."""
        database = self.database
        return database.fetch(self._engine.select(filter, limit)) if database.revision else []

    def facets(self) -> Facets:
        """Return the distinct values of the main fields."""
        return self._facets_of(self.database)

    def values(self, name: str) -> FieldValues:
        """Return the texts that a field has in the index."""
        from standards_mcp_catalog.results import FieldValues  # noqa: PLC0415  - see the module

        return FieldValues(counts=self._engine.values(name) if self.database.revision else {})

    def stats(self) -> CatalogStats:
        """Return size and state; the details report an unreadable index.

        A new catalog is not filled from the seed.
        """
        from standards_mcp_catalog.results import CatalogStats  # noqa: PLC0415  - see the module

        database = self._open_existing()
        if database is None or (self._seed and seeding.is_new(database)):
            seed = self._seed
            pending = {"pending": f"{seed.name}, loaded at the first search"} if seed else {}
            return CatalogStats(
                backend="local", location=str(self.folder.path), records=0, details=pending
            )
        facets, model, details = self._facets_of(database), None, dict[str, Any]()
        try:
            manifest = read_manifest(current_folder(self.folder.index))
            model = manifest.model
            details["index"] = "current" if manifest.revision == database.revision else "outdated"
            details["indexed_records"] = manifest.records
        except CatalogUnavailableError as error:
            details["index"] = str(error)
        if copy := copy_of(database):
            details["copy"] = f"snapshot {copy.counter} of {copy.publisher}"
        if changed := database.changed_at:
            details["changed"] = f"{changed:%Y-%m-%d %H:%M} UTC"
        details["jurisdictions"] = facets.jurisdictions
        details["subjects"] = facets.subjects
        levels = sorted(facets.education_levels, key=grade_order)
        details["education_levels"] = {level: facets.education_levels[level] for level in levels}
        details["licenses"] = database.counts("license")
        return CatalogStats(
            backend="local", location=str(self.folder.path), records=database.count(),
            model=model, size_bytes=self.folder.size(), details=details,
        )  # fmt: skip

    def check(self) -> tuple[str, ...]:
        """Try all parts of a search, see `standards_mcp_catalog.Catalog.check`.

        A new catalog is not filled from the seed; instead, a trial write checks the folder.
        """
        database = self._open_existing()
        if database is not None and not (self._seed and seeding.is_new(database)):
            return self._engine.check(database)
        if self._seed is None:
            return (self._empty_note(),)
        self.folder.check_writable()
        return self._engine.check_encoder()

    def sets(self) -> list[StandardSet]:
        """Return every standard set, in the order of jurisdiction, subject and title."""
        return self.database.sets()

    def records(self, set_ids: Collection[str] | None = None) -> Iterator[StandardRecord]:
        """Yield the records of these sets, of all by default, in the order of their ids.

        A record belongs to its ``standard_set_id`` and to each of its ``also_in_set_ids``.
        """
        return self.database.records(set_ids)

    # -- writing

    @contextmanager
    def filling_without_index(self) -> Generator[None, None, None]:
        """Fill a new catalog from the seed, and leave its index to a `write` within the block.

        Until that write ends, calls of other processes wait as for any catalog that is being
        filled. Without a write, the next call after the block builds the index.
        """
        with self._opening:
            if self._seed is not None and not self._is_seed_checked:
                with self.folder.writing() as database:
                    if seeding.is_new(database):
                        seeding.apply(database, self._seed.load())
                        self._is_seed_checked = True
        try:
            yield
        finally:
            with self._opening:
                self._is_seed_checked = False

    def load_seed(self) -> Sequence[StandardRecord]:
        """Save the vectors and the edition of the seed, and return its records for `write`.

        Afterwards, newer editions of the seed update these records.
        """
        if self._seed is None:
            return ()
        with self._writing() as database:
            seed = self._seed.load()
            seeding.save_vectors(database, seed)
            seeding.save_edition(database, seed, self._seed.edition())
        return seed.records

    def upsert(self, records: Iterable[StandardRecord], progress: Progress | None = None) -> int:
        """Add or replace records and return how many changed, see `write`."""
        return self.write(records, (), progress)

    def write(
        self,
        records: Iterable[StandardRecord],
        deleted: Iterable[str] = (),
        progress: Progress | None = None,
        crosswalks: Iterable[CrosswalkLinks] = (),
        names: GivenNames | None = None,
        *,
        dry_run: bool = False,
    ) -> int:
        """Add, replace and delete records in one transaction, and update the index.

        If *records* or *deleted* raise an exception, nothing changes. Searches use the old state
        until the end. Generators run after the lock is taken, so that the records that they read
        from this store are still current when they are written.

        Args:
            progress: Called with (done, total) while texts are embedded.
            crosswalks: Crosswalks with their new relations.
            names: New names of sets, kept for later imports of these sets and forgotten with the
                set; *records* have these names already.
            dry_run: True to iterate over *records* and write nothing.

        Returns:
            Number of new, changed and deleted records.
        """
        if dry_run:
            deque(records, maxlen=0)
            return 0
        with self._writing() as database:
            changed = database.write(records, deleted, crosswalks, names)
            self._engine.update(database, progress)
        return changed

    def delete(self, ids: Iterable[str]) -> int:
        """Delete records and return the number of deleted ones, see `write`."""
        return self.write((), ids)

    def remove_crosswalk(self, crosswalk_id: str) -> None:
        """Delete a crosswalk with its relations."""
        with self._writing() as database:
            database.relations.remove_crosswalk(crosswalk_id)

    def build(self, progress: Progress | None = None) -> CatalogStats:
        """Embed missing texts and rebuild the index, whatever its state."""
        with self._writing() as database:
            self._engine.build(database, progress)
        return self.stats()

    @contextmanager
    def frozen(
        self, progress: Progress | None = None
    ) -> Generator[tuple[Database, Path], None, None]:
        """Hold the lock, and yield the database and the folder of its index, which is current."""
        with self._writing() as database:
            self._engine.update(database, progress)
            yield database, current_folder(self.folder.index)

    def model_name(self) -> str | None:
        """Return the name of the text encoder, or None if searches go by words only."""
        return self._engine.model_name()

    def check_changeable(self) -> None:
        """Raise a `CatalogError` if the catalog is a copy that only `data pull` changes."""
        if database := self._open_existing():
            check_changeable(database)

    def close(self) -> None:
        """Close the database and the index; the next call opens them again."""
        with self._opening:
            if self._database is not None:
                self._database.close()
            self._database = None
            self._is_seed_checked = False
            # Closing must not be what imports NumPy and the index.
            if "_engine" in vars(self):
                self._engine.close()

    # -- helpers

    def _codes_in(self, text: str) -> dict[str, str]:
        """Return the codes that *text* is or contains, by the ids of their records, in turn."""
        # A text that only looks like a code, such as `linear3-fitting-models`, finds no record and
        # does no harm.
        codes = codes_in(text)[:_MOST_CODES]
        if not codes and _looks_like_code(text):
            codes = (text,)
        found = ([(record.id, code) for record in self.find(code)] for code in codes)
        return dict(pair for turn in zip_longest(*found) for pair in turn if pair is not None)

    @cached_property
    def _engine(self) -> Engine:
        from .index.engine import Engine  # noqa: PLC0415  - imports NumPy, tantivy and onnxruntime

        return Engine(self.folder.index, self._model, self._key)

    def _facets_of(self, database: Database) -> Facets:
        from standards_mcp_catalog.results import Facets  # noqa: PLC0415  - see the module

        version = database.version
        if self._facets is None or self._facets[0] != version:
            self._facets = (
                version,
                Facets(
                    subjects=database.counts("subject"),
                    education_levels=database.counts("education_level"),
                    jurisdictions=database.counts("jurisdiction"),
                    standard_sets=database.counts("standard_set"),
                ),
            )
        return self._facets[1]

    def _keys_of(self, database: Database) -> frozenset[str]:
        version = database.version
        if self._keys is None or self._keys[0] != version:
            self._keys = (version, frozenset(database.keys("code:")))
        return self._keys[1]

    def _empty_note(self) -> str:
        return (
            f"The catalog at {self.folder.path} is empty; fill it with `standards-mcp data import "
            "FILE`, or with the starter set by `standards-mcp data import starter`."
        )

    def _open_existing(self) -> Database | None:
        """Return the database without filling it, or None if it is missing."""
        with self._opening:
            exists = self._database is not None or self.folder.exists()
            return self._open() if exists else None

    def _open(self) -> Database:
        if self._database is None:
            self._database = Database(self.folder.database)
        return self._database

    @property
    def database(self) -> Database:
        """The open database; a new one is filled from the seed."""
        with self._opening:
            if not self._is_seed_checked and self._seed is not None:
                self._update_from_seed(self._seed)
            self._is_seed_checked = True
            if self._database is None and not self.folder.exists():
                with self.folder.writing():  # creates an empty file
                    pass
            return self._open()

    def _update_from_seed(self, source: SeedSource) -> None:
        database, edition = self._open_existing(), source.edition()
        if database is None or seeding.is_new(database):
            with self.folder.writing() as writable:
                # Another process may have filled the catalog while this one waited for the lock.
                if seeding.is_new(writable):
                    self._apply(source, writable)
        elif (
            seeding.has_update(database, edition)
            and not seeding.has_other_records(database)
            and copy_of(database) is None
        ):
            # A larger catalog is updated by its next write, which builds the index anyway. A folder
            # that is locked or read-only can still be searched.
            with suppress(CatalogUnavailableError), self.folder.writing(timeout=0) as writable:
                self._apply(source, writable)

    def _apply(self, source: SeedSource, database: Database) -> None:
        with seeding.applied(database, source):
            self._engine.update(database, None)

    @contextmanager
    def _writing(self) -> Generator[Database, None, None]:
        _ = self.database  # fills it from the seed before the lock is taken
        with self.folder.writing() as database:
            check_changeable(database)
            if self._seed is None:
                seeding.opt_out(database)
            elif seeding.has_update(database, self._seed.edition()):
                with seeding.applied(database, self._seed):
                    yield database
                return
            yield database


def _looks_like_code(text: str) -> bool:
    """Return True if the whole *text* may be a code such as ``3.NF.A.1``."""
    return len(text) <= _LONGEST_CODE and any(mark in text for mark in "0123456789.-")
