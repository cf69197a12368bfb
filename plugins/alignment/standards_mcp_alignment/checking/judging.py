"""Decide the status of a code that the catalog has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.relations import Retirement
from standards_mcp_catalog.vocabulary.grades import spoken_levels

from .envelope import STATUSES, Status
from .quotations import Quotation
from .scope import Scope

_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of one code, and the standard that fits best.

    Attributes:
        note: The reasons, the most important first, or "".
    """

    record: StandardRecord
    status: Status
    note: str
    quotation: Quotation | None = None


def judge(
    records: Sequence[StandardRecord],
    scope: Scope,
    retired: Mapping[str, Retirement],
    quotations: Mapping[str, Quotation],
    place: str = "",
) -> Verdict:
    """Return the verdict on the standards with one code; of several, the one with the least faults.

    Args:
        records: At least one.
        retired: Retirements, by the ids of the retired records.
        quotations: Quotations of the official texts next to the code, by the ids of the records.
        place: The state that is written before the code, if none of *records* is of it.
    """
    inside = [each for each in records if each.jurisdiction_title in scope.jurisdictions]
    # The words next to a code show which of several standards is meant.
    quoted = [each for each in inside or records if each.id in quotations]
    meant = quoted or inside or records
    verdicts = [_judge(each, scope, retired, quotations.get(each.id), place) for each in meant]
    best = min(verdicts, key=lambda verdict: STATUSES.index(verdict.status))
    titles = list(dict.fromkeys(record.jurisdiction_title for record in records))
    if len(titles) > 1 and not scope.jurisdictions:
        several = f"{len(titles)} jurisdictions have this code: {_named(titles)}"
        note = "; ".join(filter(None, (best.note, several)))
        return Verdict(best.record, best.status, note, best.quotation)
    return best


def _judge(
    record: StandardRecord,
    scope: Scope,
    retired: Mapping[str, Retirement],
    quotation: Quotation | None,
    place: str,
) -> Verdict:
    reasons: dict[Status, str] = {}
    if record.id in retired:
        reasons["retired"] = retired[record.id].told(record.statement_notation or record.id)
    wanted = place or (
        scope.jurisdiction if record.jurisdiction_title not in scope.jurisdictions else ""
    )
    if wanted:
        reasons["other_jurisdiction"] = (
            f"a standard of {record.jurisdiction_title}, not of {wanted}"
        )
        if not place and scope.missing_family:
            family = scope.missing_family
            reasons["other_jurisdiction"] += (
                f"; {family.name} are not loaded here, so they may have this code, too"
            )
    if scope.subject and record.subject not in scope.subjects:
        reasons["wrong_subject"] = f"a standard of {record.subject}, not of {scope.subject}"
    if (
        scope.levels
        and record.education_levels
        and not {*scope.levels} & {*record.education_levels}
    ):
        its_grade = spoken_levels(record.education_levels)
        reasons["wrong_grade"] = (
            f"a standard of grade {its_grade}; the lesson is for grade {scope.grades}"
        )
    if quotation and quotation.diff:
        reasons["misquoted"] = "the wording differs from the official text"
    elif quotation and not reasons:
        reasons["ok"] = (
            "quotes the official text"
            if quotation.is_whole
            else "quotes a part of the official text"
        )
    statuses: list[Status] = [*reasons, "ok"]
    return Verdict(record, statuses[0], "; ".join(reasons.values()), quotation)


def _named(titles: Sequence[str]) -> str:
    shown = ", ".join(titles[:_MOST_NAMED])
    return f"{shown} and {len(titles) - _MOST_NAMED} more" if len(titles) > _MOST_NAMED else shown
