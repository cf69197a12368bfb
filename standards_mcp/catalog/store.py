"""The embedded store as plain functions of one folder; `local` makes it asynchronous.

<path>/catalog.sqlite3  the truth
<path>/catalog.lock     held by whoever writes the truth or builds the index
<path>/index/           see `generation`
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock

from . import CatalogStats, Facets, FilterExpression, SearchResult
from .database import create_database
from .errors import CatalogError, CatalogUnavailableError
from .grades import grade_order
from .local import Seed
from .manifest import current_folder, read_manifest
from .notation import canonical_key, codes_in, lookup_keys
from .record_store import StandardSet
from .records import StandardRecord
from .suggestions import nearest
from .truth import Truth

if TYPE_CHECKING:
    from .engine import Engine, Progress
    from .ranking import Mode

MAX_QUERY_CHARACTERS = 8000
_LONGEST_CODE = 60
_MOST_CODES = 20


class LocalStore:
    """A catalog in one folder. Its methods may be called from several threads.

    Args:
        path: The folder; it is created when something is written.
        model: Which text encoder to use, see `encoders.open_encoder`.
        seed: What a catalog that does not exist yet is filled with.
        lock_timeout: Seconds to wait for another process that writes or builds.
    """

    def __init__(
        self,
        path: Path,
        model: str = "minilm",
        *,
        seed: Callable[[], Seed] | None = None,
        lock_timeout: float = 600,
    ) -> None:
        self._path = path
        self._model = model
        self._seed = seed
        self._lock_timeout = lock_timeout
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
        _check_query(text, top_k)
        truth = self._open_truth()
        if truth is None:
            return SearchResult(hits=(), notes=(self._empty_note(),))
        return self._engine.search(truth, text, top_k, expression, self._named_in(text), mode)

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

    def facets(self) -> Facets:
        """Return the distinct values of the main fields."""
        truth = self._open_truth()
        if truth is None:
            return Facets(subjects={}, education_levels={}, jurisdictions={}, standard_sets={})
        revision = truth.revision
        if self._facets is None or self._facets[0] != revision:
            facets = Facets(
                subjects=truth.counts("subject"),
                education_levels=truth.counts("education_level"),
                jurisdictions=truth.counts("jurisdiction"),
                standard_sets=truth.counts("standard_set"),
            )
            self._facets = revision, facets
        return self._facets[1]

    def stats(self) -> CatalogStats:
        """Return what the catalog holds; an index that cannot be read is told in the details.

        It only looks: a catalog that does not exist yet is not filled.
        """
        truth = self._open_truth() if self._truth_path.exists() else None
        if truth is None:
            unbuilt = {"index": "not built yet; the first search does it"} if self._seed else {}
            return CatalogStats(
                backend="local", location=str(self._path), records=0, details=unbuilt
            )
        model, details = None, dict[str, Any]()
        try:
            manifest = read_manifest(current_folder(self._index))
            model = manifest.model
            details["index"] = "current" if manifest.revision == truth.revision else "outdated"
            details["indexed_records"] = manifest.records
        except CatalogUnavailableError as error:
            details["index"] = str(error)
        facets = self.facets()
        details["changed"] = _last_changed(self._truth_path)
        details["jurisdictions"] = facets.jurisdictions
        details["subjects"] = facets.subjects
        levels = facets.education_levels
        details["education_levels"] = {
            level: levels[level] for level in sorted(levels, key=grade_order)
        }
        details["licenses"] = truth.counts("license")
        return CatalogStats(
            backend="local", location=str(self._path), records=truth.count(), model=model,
            size_bytes=_size(self._path), details=details,
        )  # fmt: skip

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

    @property
    def _index(self) -> Path:
        return self._path / "index"

    @cached_property
    def _engine(self) -> Engine:
        from .engine import Engine  # noqa: PLC0415  - imports NumPy, tantivy and onnxruntime

        return Engine(self._index, self._model)

    @property
    def _truth_path(self) -> Path:
        return self._path / "catalog.sqlite3"

    def _empty_note(self) -> str:
        return (
            f"The catalog at {self._path} is empty; fill it with `standards-mcp data import FILE`."
        )

    def _open_truth(self) -> Truth | None:
        """Return the truth, filled from the seed when it is new; None when there is none."""
        with self._opening:
            if self._truth is None:
                if self._seed is None and not self._truth_path.exists():
                    return None
                self._fill_once()
                self._truth = Truth(self._truth_path)
            return self._truth

    def _fill_once(self) -> None:
        if self._seed is None:
            return
        if self._truth_path.exists():
            with Truth(self._truth_path) as truth:
                if truth.state("seed", ""):
                    return
        with self._locked_truth() as truth:
            if not truth.state("seed", ""):
                self._engine.fill(truth, self._seed())
                truth.remember("seed", "done")

    @contextmanager
    def _writing(self) -> Generator[Truth, None, None]:
        self._open_truth()
        with self._locked_truth() as truth:
            if not truth.state("seed", ""):
                truth.remember("seed", "none")
            yield truth

    @contextmanager
    def _locked_truth(self) -> Generator[Truth, None, None]:
        lock = self._path / "catalog.lock"
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(lock, timeout=self._lock_timeout):
                if not self._truth_path.exists():
                    create_database(self._truth_path)
                with Truth(self._truth_path) as truth:
                    yield truth
        except filelock.Timeout as error:
            raise CatalogUnavailableError(
                f"another process has been writing to {self._path} for {self._lock_timeout:g} "
                f"seconds ({lock} is locked); try again when it is done"
            ) from error


def _last_changed(database: Path) -> str:
    files = (database, database.with_name(f"{database.name}-wal"))
    newest = max(file.stat().st_mtime for file in files if file.exists())
    return datetime.fromtimestamp(newest, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _check_query(text: str, top_k: int) -> None:
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


def _looks_like_code(text: str) -> bool:
    """Return whether *text* may be a code such as ``3.NF.A.1`` and nothing else."""
    return len(text) <= _LONGEST_CODE and any(mark in text for mark in "0123456789.-")
