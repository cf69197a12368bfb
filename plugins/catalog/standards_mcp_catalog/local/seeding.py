"""What a new catalog begins with, and how a catalog takes a newer edition of that.

The database keeps the editions of the seed that it was given and, for each record that ever was in
one, a hash of what it was given. So a record that still is as it was given gives way to its new
form, one that a user changed stays, and one that a user deleted stays deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from standards_mcp_catalog.base import Seed
from standards_mcp_catalog.records import StandardRecord

from .database import Database, fingerprint

_EDITIONS = "seed"
_FINGERPRINTS = "seeded"
_OPTED_OUT = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSource:
    """Where a `Seed` comes from; it is loaded only when a catalog needs it.

    Attributes:
        name: What people call it.
        edition: Returns a short text that changes whenever the seed does; cheap.
    """

    name: str
    edition: Callable[[], str]
    load: Callable[[], Seed]


def is_new(database: Database) -> bool:
    """Return whether nothing has been decided about the seed yet."""
    return not database.meta(_EDITIONS, "")


def opt_out(database: Database) -> None:
    """Let a catalog that is new do without a seed for good."""
    if is_new(database):
        database.set_meta(_EDITIONS, _OPTED_OUT)


def has_update(database: Database, edition: str) -> bool:
    """Return whether *database* takes seeds and was not given this edition yet."""
    editions = database.meta(_EDITIONS, "").split(",")
    return editions != [_OPTED_OUT] and edition not in editions


def has_other_records(database: Database) -> bool:
    """Return whether there are more records than all seeds had."""
    return database.count() > len(_load_fingerprints(database))


def apply(database: Database, seed: Seed) -> None:
    """Write what is new in *seed*; `save_edition` has to follow."""
    save_vectors(database, seed)
    database.write(*_changes(database, seed.records))


def save_vectors(database: Database, seed: Seed) -> None:
    """Save the vectors of *seed*, so that its texts are not embedded."""
    from . import vectors  # noqa: PLC0415  - imports NumPy

    vectors.save_vectors(database, seed.model, seed.hashes, seed.vectors)


def save_edition(database: Database, seed: Seed, edition: str) -> None:
    """Save that *database* was given all of *seed*."""
    known = set(database.meta(_EDITIONS, "").split(",")) - {"", _OPTED_OUT}
    now = {record.id: fingerprint(record) for record in seed.records}
    # The edition comes last: whoever is interrupted before it is given the seed once more.
    database.set_meta(_FINGERPRINTS, json.dumps(_load_fingerprints(database) | now))
    database.set_meta(_EDITIONS, ",".join(sorted({*known, edition})))


def _changes(
    database: Database, records: Sequence[StandardRecord]
) -> tuple[list[StandardRecord], list[str]]:
    given = _load_fingerprints(database)
    new = {record.id: record for record in records}
    stored = database.fingerprints([*{**given, **new}])
    untouched = {id_ for id_, known in given.items() if stored.get(id_) == known}
    # Whoever changed or deleted every record of the seed does not want another one.
    if given and not untouched:
        return [], []
    # A set that was deleted stays deleted, even where an edition adds records to it.
    known_sets = {record.standard_set_id for record in records if record.id in given}
    kept_sets = {new[id_].standard_set_id for id_ in untouched if id_ in new}
    settled, gone_sets = {*given, *stored}, known_sets - kept_sets
    written = [
        record
        for id_, record in new.items()
        if id_ in untouched or not (id_ in settled or record.standard_set_id in gone_sets)
    ]
    return written, [id_ for id_ in untouched if id_ not in new]


def _load_fingerprints(database: Database) -> dict[str, str]:
    found: dict[str, str] = json.loads(database.meta(_FINGERPRINTS, "{}"))
    return found
