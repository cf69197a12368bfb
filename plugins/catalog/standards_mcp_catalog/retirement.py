"""Which standards are no longer in force, and what stands in their place."""

from __future__ import annotations

import re
import time
from calendar import monthrange
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from .base import Catalog
from .records import StandardRecord
from .relations import StatedRelation

_RETIRED: Final = ("deprecated", "superseded", "retired", "withdrawn", "obsolete", "expired")
_REPLACED: Final = ("replacedBy",)
_MOST_SUCCESSORS: Final = 10
_MOST_STEPS: Final = 10
_MOST_TOLD: Final = 3
_OVER: Final = " (retired too)"
_ISO: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?(?:[T ].*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """That a standard is retired.

    Attributes:
        status: What its source says, such as ``Superseded``.
        ended: The day on which it ended or will end, as the source writes it, or "".
        successors: What replaces it, the nearest first: what replaces a successor that is retired
            too comes after that.
        in_force: The ids of those successors that are loaded and not retired.
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
        """Return in words that the standard *name* is retired, and what replaces it."""
        wanted = [each for each in self.successors if each.identifier in self.in_force]
        names = [_name(each) for each in wanted]
        names = names or [
            f"{_name(each)}{_OVER if each.record else ''}" for each in self.successors[:1]
        ]
        by = f"; replaced by {', '.join(names)}" if names else "; no successor is known"
        return f"{name} is retired ({self.status}){by}"


async def retirements(
    catalog: Catalog, records: Iterable[StandardRecord], today: str = ""
) -> dict[str, Retirement]:
    """Return for those of *records* that are retired by their ids what is known of that.

    A chain of successors is followed some steps only, so that a long one or a circle ends.

    Args:
        today: As ``2030-12-31``; by default the present day.

    Raises:
        CatalogError: The catalog cannot be read.
    """
    today = today or time.strftime("%Y-%m-%d")
    asked = {record.id: record for record in records}
    # By the ids of the records; a record that nobody replaces has no successors.
    successors: dict[str, tuple[StatedRelation, ...]] = {}
    pending: Sequence[StandardRecord] = list(asked.values())
    for _ in range(_MOST_STEPS):
        if not pending:
            break
        stated = await catalog.relations(pending, _REPLACED, _MOST_SUCCESSORS)
        successors |= {each.id: found for each, found in zip(pending, stated, strict=True)}
        reached = [each.record for found in stated for each in found if each.record is not None]
        pending = list({each.id: each for each in reached if each.id not in successors}.values())
    return {
        id_: _retirement(record, successors, today)
        for id_, record in asked.items()
        if _is_over(record, today) or successors[id_]
    }


def told_of(records: Iterable[StandardRecord], retired: Mapping[str, Retirement]) -> Iterator[str]:
    """Yield in words which of *records* are retired; of many, the others are only counted."""
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
    while pending and len(found) < _MOST_SUCCESSORS:
        each = pending.pop(0)
        if each.identifier not in found and each.identifier != record.id:
            found[each.identifier] = each
            pending += successors.get(each.identifier, ())
    in_force = [
        each.identifier
        for each in found.values()
        # One that the chain did not reach any more may be replaced, too.
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
