"""Retired standards and their successors."""

from __future__ import annotations

import re
import time
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Any, Final

from .base import Catalog, SearchHit
from .records import StandardRecord
from .relations import MOST_SUCCESSORS, SUCCESSION, StatedRelation

_RETIRED: Final = ("deprecated", "superseded", "retired", "withdrawn", "obsolete", "expired")
_MOST_STEPS: Final = 10
_MOST_TOLD: Final = 3
_OVER: Final = " (retired too)"
_ISO: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?(?:[T ].*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """The retirement of one standard.

    Attributes:
        status: The status in its source, such as ``Superseded``.
        ended: The last day of its validity, as the source writes it, or "".
        successors: Its successors, the nearest first; the successors of a retired successor
            follow it.
        in_force: The ids of the successors that are loaded and not retired.
    """

    status: str
    ended: str = ""
    successors: tuple[StatedRelation, ...] = ()
    in_force: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready data, as the tools show it."""
        found = [
            {
                "_id": each.identifier,
                "statement_notation": each.record.statement_notation if each.record else None,
                "loaded": each.record is not None,
                "in_force": each.identifier in self.in_force,
                "origin": each.origin,
            }
            for each in self.successors
        ]
        ended = {"ended": self.ended} if self.ended else {}
        return {"status": self.status, **ended, "replaced_by": found}

    def told(self, name: str) -> str:
        """Return a sentence with the status and the successors of the standard *name*."""
        wanted = [each for each in self.successors if each.identifier in self.in_force]
        names = [_name(each) for each in wanted]
        names = names or [
            f"{_name(each)}{_OVER if each.record else ''}" for each in self.successors[:1]
        ]
        by = f"; replaced by {', '.join(names)}" if names else "; no successor is known"
        return f"{name} is retired ({self.status}){by}"


async def retirements(
    catalog: Catalog,
    records: Iterable[StandardRecord],
    today: str = "",
    known: Mapping[str, tuple[StatedRelation, ...]] = MappingProxyType({}),
) -> dict[str, Retirement]:
    """Return the retirements of the retired ones among *records*, by their ids.

    A chain of successors is followed for a few steps only, so that a long one or a circle ends.

    Args:
        today: As ``2030-12-31``; by default the present day.
        known: Successors by the ids of records, if they were read before.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    today = today or time.strftime("%Y-%m-%d")
    asked = {record.id: record for record in records}
    successors = dict(known)  # a record without successors has an empty tuple
    reached, visited = asked, set(asked)
    for _ in range(_MOST_STEPS):
        unread = [record for id_, record in reached.items() if id_ not in successors]
        if unread:
            stated = await catalog.relations(unread, SUCCESSION, MOST_SUCCESSORS)
            successors |= {record.id: found for record, found in zip(unread, stated, strict=True)}
        following = [relation.record for id_ in reached for relation in successors[id_]]
        reached = {each.id: each for each in following if each and each.id not in visited}
        visited.update(reached)
        if not reached:
            break
    return {
        id_: _retirement(record, successors, today)
        for id_, record in asked.items()
        if _is_over(record, today) or successors[id_]
    }


async def retired_hits(catalog: Catalog, hits: Iterable[SearchHit]) -> dict[str, Retirement]:
    """Return the retirements of hits; most stores read the successors together with a hit."""
    hits = list(hits)
    known = {hit.record.id: hit.replaced_by for hit in hits if hit.replaced_by is not None}
    return await retirements(catalog, [hit.record for hit in hits], known=known)


def told_of(records: Iterable[StandardRecord], retired: Mapping[str, Retirement]) -> Iterator[str]:
    """Yield a sentence for each retired record; the last one counts the rest of many."""
    found = list({each.id: each for each in records if each.id in retired}.values())
    for each in found[:_MOST_TOLD]:
        yield retired[each.id].told(each.statement_notation or each.id)
    if len(found) > _MOST_TOLD:
        yield f"{len(found) - _MOST_TOLD} more are retired (see retired)"


def _retirement(
    record: StandardRecord, successors: Mapping[str, tuple[StatedRelation, ...]], today: str
) -> Retirement:
    found: dict[str, StatedRelation] = {}
    pending = list(successors[record.id])
    while pending and len(found) < MOST_SUCCESSORS:
        each = pending.pop(0)
        if each.identifier not in found and each.identifier != record.id:
            found[each.identifier] = each
            pending += successors.get(each.identifier, ())
    in_force = [
        each.identifier
        for each in found.values()
        # A successor beyond the last step may itself be replaced.
        if each.record
        and not _is_over(each.record, today)
        and successors.get(each.identifier) == ()
    ]
    status = record.publication_status or ""
    return Retirement(
        status=status if _says_retired(record) else "Superseded" if found else "Expired",
        ended=_end(record),
        successors=tuple(found.values()),
        in_force=tuple(in_force),
    )


def _name(stated: StatedRelation) -> str:
    if stated.record is None:
        return f"{stated.identifier} (not loaded here)"
    return stated.record.statement_notation or stated.identifier


def _is_over(record: StandardRecord, today: str) -> bool:
    end = _end(record)
    return _says_retired(record) or "" < _last_day(end) <= today


def _last_day(text: str) -> str:
    """Return the last day of an ISO date, which may be a year or a month; "" for anything else."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        return ""
    year, month, day = (int(each) for each in found.groups("0"))
    try:
        month = month or 12
        return date(year, month, day or monthrange(year, month)[1]).isoformat()
    except ValueError:
        return ""


def _says_retired(record: StandardRecord) -> bool:
    return (record.publication_status or "").strip().casefold() in _RETIRED


def _end(record: StandardRecord) -> str:
    end = (record.model_extra or {}).get("status_end_date")
    return end if isinstance(end, str) else ""
