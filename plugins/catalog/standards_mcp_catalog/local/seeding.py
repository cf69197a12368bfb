"""Fill a new catalog with a seed, and update it to newer editions of the seed.

The database keeps the applied editions of the seed and a hash of each seeded record. So an update
replaces records that are unchanged since they were seeded, keeps records that a user changed, and
does not restore records that a user deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from .database import Database, fingerprint

if TYPE_CHECKING:
    from standards_mcp_catalog.records import StandardRecord
    from standards_mcp_catalog.results import Seed

_EDITIONS = "seed"
_FINGERPRINTS = "seeded"
_OPTED_OUT = "none"


class SeedSource(NamedTuple):
    """A lazily loaded `Seed`.

    Attributes:
        name: Name of the seed in messages.
        edition: Returns a short text that changes with the seed, without loading the seed.
    """

    name: str
    edition: Callable[[], str]
    load: Callable[[], Seed]


def is_new(database: Database) -> bool:
    """Return True if the database has neither a seed nor an opt-out."""
    return not database.meta(_EDITIONS, "")


def opt_out(database: Database) -> None:
    """Exclude a new catalog from seeding for good."""
    if is_new(database):
        database.set_meta(_EDITIONS, _OPTED_OUT)


def has_update(database: Database, edition: str) -> bool:
    """Return True if *database* did not opt out and lacks this edition."""
    # Editions have no order: two installed versions that share a catalog must not undo each other.
    editions = database.meta(_EDITIONS, "").split(",")
    return editions != [_OPTED_OUT] and edition not in editions


def has_other_records(database: Database) -> bool:
    """Return True if *database* has more records than the seed wrote."""
    return database.count() > len(_load_fingerprints(database))


def has_own_records(database: Database) -> bool:
    """Return True if *database* has records or crosswalks that the seed did not write."""
    seeded = _load_fingerprints(database)
    stored = database.fingerprints(list(seeded))
    return (
        database.count() > len(stored)
        or any(seeded[id_] != known for id_, known in stored.items())
        or any(database.relations.crosswalks())
    )


@contextmanager
def applied(database: Database, source: SeedSource) -> Generator[None, None, None]:
    """Write the changes of the seed, and record its edition after a block that succeeds.

    The block updates the index.
    """
    seed = source.load()
    apply(database, seed)
    yield
    save_edition(database, seed, source.edition())


def apply(database: Database, seed: Seed) -> None:
    """Write the changes of *seed*; call `save_edition` when the index has them."""
    save_vectors(database, seed)
    database.write(*_changes(database, seed.records))


def save_vectors(database: Database, seed: Seed) -> None:
    """Save the vectors of *seed*, so that its texts are not embedded."""
    from .index import engine  # noqa: PLC0415  - imports NumPy

    engine.save_vectors(database, seed.model, seed.hashes, seed.vectors)


def save_edition(database: Database, seed: Seed, edition: str) -> None:
    """Record this edition of *seed* as applied."""
    editions = set(database.meta(_EDITIONS, "").split(",")) - {"", _OPTED_OUT}
    fingerprints = {record.id: fingerprint(record) for record in seed.records}
    # The edition comes last: after an interruption the seed is applied again.
    database.set_meta(_FINGERPRINTS, json.dumps(_load_fingerprints(database) | fingerprints))
    database.set_meta(_EDITIONS, ",".join(sorted({*editions, edition})))


def _changes(
    database: Database, records: Sequence[StandardRecord]
) -> tuple[list[StandardRecord], list[str]]:
    """Return the records to write, and the ids of the records to delete."""
    seeded = _load_fingerprints(database)
    new = {record.id: record for record in records}
    stored = database.fingerprints([*{**seeded, **new}])
    untouched = {id_ for id_, known in seeded.items() if stored.get(id_) == known}
    # A user who changed or deleted every record of the seed does not want another edition.
    if seeded and not untouched:
        return [], []
    # A new edition adds no records to a set in which a user changed or deleted all of them.
    seeded_sets = {record.standard_set_id for record in records if record.id in seeded}
    kept_sets = {new[id_].standard_set_id for id_ in untouched if id_ in new}
    settled, closed_sets = {*seeded, *stored}, seeded_sets - kept_sets
    written = [
        record
        for id_, record in new.items()
        if id_ in untouched or not (id_ in settled or record.standard_set_id in closed_sets)
    ]
    return written, [id_ for id_ in untouched if id_ not in new]


def _load_fingerprints(database: Database) -> dict[str, str]:
    found: dict[str, str] = json.loads(database.meta(_FINGERPRINTS, "{}"))
    return found
