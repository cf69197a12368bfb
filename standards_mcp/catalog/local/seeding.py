"""What a new catalog begins with, and how a catalog takes up a newer edition of that.

The truth remembers the editions it was offered and, for each record that ever was, a hash of what
it was offered as. So a record that is still as it was offered gives way to its new form; one that
was changed stays; and one that was deleted stays deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from standards_mcp.catalog.records import StandardRecord

from .truth import Truth, fingerprint

_EDITIONS = "seed"
_OFFERED = "seeded"
_NONE = "none"


def is_new(truth: Truth) -> bool:
    """Return whether nothing has been decided about the seed yet."""
    return not truth.state(_EDITIONS, "")


def begin_without(truth: Truth) -> None:
    """Let a catalog that is new do without a seed for good."""
    if is_new(truth):
        truth.remember(_EDITIONS, _NONE)


def is_awaited(truth: Truth, edition: str) -> bool:
    """Return whether *truth* began with a seed and has not been offered this edition of it."""
    editions = truth.state(_EDITIONS, "").split(",")
    return editions != [_NONE] and edition not in editions


def holds_more(truth: Truth) -> bool:
    """Return whether there are more records than were ever offered."""
    return truth.count() > len(_offered(truth))


def plant(truth: Truth, seed: Seed) -> None:
    """Write what *truth* has to take from *seed*; `remember` has to follow."""
    keep(truth, seed)
    changes = _changes(truth, seed.records)
    truth.write(changes.written, changes.deleted)


def keep(truth: Truth, seed: Seed) -> None:
    """Keep the vectors of *seed*, so that its texts are not embedded."""
    from .vectors import keep_vectors  # noqa: PLC0415  - imports NumPy

    keep_vectors(truth, seed.model, seed.hashes, seed.vectors)


def remember(truth: Truth, seed: Seed, edition: str) -> None:
    """Remember that *truth* was offered all of *seed*."""
    known = set(truth.state(_EDITIONS, "").split(",")) - {"", _NONE}
    now = {record.id: fingerprint(record) for record in seed.records}
    truth.remember(_OFFERED, json.dumps({**_offered(truth), **now}))
    truth.remember(_EDITIONS, ",".join(sorted({*known, edition})))


class _Changes(NamedTuple):
    written: list[StandardRecord]
    deleted: list[str]


def _changes(truth: Truth, records: Sequence[StandardRecord]) -> _Changes:
    offered = _offered(truth)
    new = {record.id: record for record in records}
    stored = truth.fingerprints([*{**offered, **new}])
    untouched = {id_ for id_, known in offered.items() if stored.get(id_) == known}
    if offered and not untouched:
        return _Changes([], [])
    # Of a set that was deleted nothing comes back, not even what is new in it.
    known_sets = {record.standard_set_id for record in records if record.id in offered}
    kept_sets = {new[id_].standard_set_id for id_ in untouched if id_ in new}
    gone_sets = known_sets - kept_sets
    return _Changes(
        written=[
            record
            for id_, record in new.items()
            if id_ in untouched
            or not (id_ in offered or id_ in stored or record.standard_set_id in gone_sets)
        ],
        deleted=[id_ for id_ in untouched if id_ not in new],
    )


def _offered(truth: Truth) -> Mapping[str, str]:
    found: dict[str, str] = json.loads(truth.state(_OFFERED, "{}"))
    return found


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
class SeedSource:
    """Where a `Seed` comes from; it is loaded only when a catalog needs it.

    Attributes:
        name: What people call it.
        edition: Returns a short text that changes whenever the seed does; cheap.
    """

    name: str
    edition: Callable[[], str]
    load: Callable[[], Seed]
