"""Datasets: found in folders, opened once to see whether they are right, or left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from .errors import DatasetError, Kind, one_line
from .manifests import (
    ENDING,
    NAME,
    Files,
    Manifest,
    Source,
    find_files,
    id_in,
    manifest_of,
    read_values,
)
from .workers.pool import OverdueError, Pool, UnavailableError
from .workers.tasks import Facts, inspect

if TYPE_CHECKING:
    from .workers.opened import Opened

RETRY: Final = 30.0
"""Seconds after which what may have passed is tried again, although no file has changed."""
RETRY_OF_CRASH: Final = 300.0
"""The same for what ended workers: another try may end two more."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that is served."""

    source: Source
    facts: Facts

    @property
    def id(self) -> str:
        """What searches name it by."""
        return self.source.manifest.id


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A dataset that is not served.

    Attributes:
        id: The manifest's, or the folder's name.
        path: The manifest file.
        reason: In one line.
        manifest: What it says, if that is right.
        retry_at: When it is tried again though no file has changed; None: never.
        cause: What was raised by what reads the files.
    """

    id: str
    path: Path
    kind: Kind
    reason: str
    manifest: Manifest | None = None
    retry_at: float | None = None
    cause: BaseException | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Make what is told of it text that every client takes: names of files may be none."""
        object.__setattr__(self, "id", one_line(self.id))
        object.__setattr__(self, "reason", one_line(self.reason))


Entry: TypeAlias = Dataset | LeftOut


@dataclass(frozen=True, slots=True)
class Shelf:
    """All datasets at one time. It does not change: a call keeps the one that it began with.

    Attributes:
        opening: Ids of those of which it is not known yet whether they are right.
    """

    ready: Mapping[str, Dataset] = field(default_factory=dict[str, Dataset])
    left_out: tuple[LeftOut, ...] = ()
    opening: frozenset[str] = frozenset()

    @property
    def entries(self) -> list[Entry]:
        """All datasets by id; one that is served before what else has its id."""
        return sorted([*self.ready.values(), *self.left_out], key=lambda each: each.id)


def manifests_in(root: Path) -> list[Path]:
    """Return the manifests of a folder, in order. A missing folder has none."""
    found = [*root.glob(f"*/{NAME}"), *root.glob(f"*{ENDING}")]
    # Unlike Path.is_file, this raises nothing for what may not be read.
    return sorted(path for path in found if os.path.isfile(path))  # noqa: PTH113


def read_source(path: Path, roots: Sequence[Path]) -> Source | LeftOut:
    """Return the dataset of a manifest, as far as its own text and the names of files tell.

    Args:
        roots: The folders that it and its files must be in.
    """
    real = [Path(os.path.realpath(root)) for root in roots]
    values: Mapping[str, object] = {}
    manifest: Manifest | None = None
    try:
        values = read_values(path)
        manifest = manifest_of(values)
        return find_files(path, manifest, real)
    except DatasetError as error:
        kind, reason, cause = error.kind, error.reason, error.__cause__
    except OSError as error:
        kind, reason, cause = "path", f"{error.filename} cannot be read: {error.strerror}", error
    return LeftOut(id_in(values) or name_of(path), path, kind, reason, manifest, cause=cause)


def name_of(path: Path) -> str:
    """Return what a manifest that says no id is called."""
    return path.parent.name if path.name == NAME else path.name.removesuffix(ENDING)


async def look_into(
    pool: Pool, source: Source, look: Callable[[Opened, Files], Facts] = inspect
) -> Entry:
    """Open a dataset in a worker, and return it or why it is left out.

    Args:
        look: The function of `tasks` that opens it.
    """
    unread = f"Index cannot be read: {source.files.index}"
    try:
        return Dataset(source, await pool.run(look, source.files, seconds=pool.times.start))
    except DatasetError as error:
        return left_out_for(source, error)
    except UnavailableError as error:
        if pool.is_failing:
            return _left_out(source, "worker", "No worker can be started; see the log", error, 0)
        reason = f"{unread}: the worker that opens it ends"
        return _left_out(source, "worker", reason, error, RETRY_OF_CRASH)
    except OverdueError as error:
        reason = f"{unread}: opening it takes longer than {pool.times.start:g} s"
        return _left_out(source, "worker", reason, error, RETRY_OF_CRASH)
    except Exception as error:  # noqa: BLE001  - the others shall be served
        return _left_out(source, "index", f"{unread}: {type(error).__name__}", error, None)


def left_out_for(source: Source, error: DatasetError) -> LeftOut:
    """Return a dataset as one that breaks a rule."""
    cause = error if error.kind in {"index", "metadata"} else None
    retry = RETRY if error.is_passing else None
    return _left_out(source, error.kind, error.reason, cause, retry)


def _left_out(
    source: Source, kind: Kind, reason: str, cause: BaseException | None, retry: float | None
) -> LeftOut:
    retry_at = None if retry is None else anyio.current_time() + retry
    return LeftOut(source.manifest.id, source.path, kind, reason, source.manifest, retry_at, cause)


def counts_still(entry: Entry | None) -> bool:
    """Tell whether an entry needs no new look while its files are the same."""
    if isinstance(entry, LeftOut):
        return entry.retry_at is None or anyio.current_time() < entry.retry_at
    return entry is not None


def shelved(entries: Iterable[Entry], opening: Collection[str] = ()) -> Shelf:
    """Return a shelf of datasets in the order of their paths: of one id, the first is served.

    Args:
        opening: Ids of others that are not known yet, and may come first.
    """
    ready: dict[str, Dataset] = {}
    left_out: list[LeftOut] = []
    for each in entries:
        if isinstance(each, LeftOut):
            left_out.append(each)
        elif each.id in opening:
            continue
        elif (first := ready.setdefault(each.id, each)) is not each:
            reason = f"Duplicate id '{each.id}': also in {first.source.path}"
            manifest = each.source.manifest
            left_out.append(LeftOut(each.id, each.source.path, "duplicate", reason, manifest))
    return Shelf(ready, tuple(left_out), frozenset(opening))
