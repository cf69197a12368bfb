"""The outcome of a run: each pair with its status, and who decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from standards_mcp_alignment.inputs import Item, SkippedFile
from standards_mcp_alignment.provenance import Provenance

from .correlator import Pair

Status: TypeAlias = Literal["proposed", "accepted", "rejected", "replaced"]
DecidedBy: TypeAlias = Literal["", "auto", "person"]
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A pair with its status.

    Attributes:
        status: ``proposed`` until a person or ``--auto`` decides.
    """

    pair: Pair
    status: Status = "proposed"
    decided_by: DecidedBy = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdicts of one item, the accepted ones first, and notes about it."""

    item: Item
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AlignmentReport:
    """The content of a report.

    Attributes:
        settings: The options of the run.
        notes: Sentences about the whole run.
    """

    outcomes: Sequence[Outcome]
    skipped: Sequence[SkippedFile]
    settings: Mapping[str, Any]
    provenance: Provenance
    notes: Sequence[str] = ()

    def summary(self) -> dict[str, Any]:
        """Return the numbers of files, items and pairs as JSON-ready data."""
        verdicts = [verdict for outcome in self.outcomes for verdict in outcome.verdicts]
        by_status = Counter(verdict.status for verdict in verdicts)
        auto = sum(verdict.decided_by == "auto" for verdict in verdicts)
        return {
            "files": len(self.provenance.inputs),
            "skipped": len(self.skipped),
            "items": len(self.outcomes),
            "items_without_standard": sum(not outcome.verdicts for outcome in self.outcomes),
            "pairs": len(verdicts),
            **{status: by_status[status] for status in ("proposed", "accepted", "rejected")},
            "replaced": by_status["replaced"],
            "accepted_automatically": auto,
            "share_accepted_automatically": round(auto / len(verdicts), 4) if verdicts else 0.0,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {
            "summary": self.summary(),
            "notes": list(self.notes),
            "settings": dict(self.settings),
            "provenance": self.provenance.to_dict(),
            "skipped": [asdict(file) for file in self.skipped],
            "items": [
                {
                    **asdict(outcome.item),
                    "digest": outcome.item.digest,
                    "standards": [
                        {
                            **asdict(verdict.pair),
                            "status": verdict.status,
                            "decided_by": verdict.decided_by,
                        }
                        for verdict in outcome.verdicts
                    ],
                    "notes": list(outcome.notes),
                }
                for outcome in self.outcomes
            ],
        }


def spreadsheet_cell(text: str) -> str:
    """Return a text that a spreadsheet does not run as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
