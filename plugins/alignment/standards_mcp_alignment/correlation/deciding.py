"""Decide on pairs: by the review file first, then by ``--auto``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from standards_mcp_alignment.inputs import Item

from .correlator import Correlation, Correlator, Pair
from .outcomes import Outcome, Status, Verdict
from .review import Decision, ReviewKey, review_key
from .scope import Scope

_ORDER: Final[Mapping[Status, int]] = {"accepted": 0, "proposed": 1, "replaced": 2, "rejected": 3}


class Decider:
    """Gives each pair of an item its status.

    Args:
        least: The least probability of a pair that is accepted without a person; None accepts none.
    """

    def __init__(
        self,
        correlator: Correlator,
        scope: Scope,
        decisions: Mapping[ReviewKey, Decision],
        least: float | None,
    ) -> None:
        self._correlator = correlator
        self._scope = scope
        self._decisions = decisions
        self._least = least

    async def decide(self, item: Item, correlation: Correlation) -> Outcome:
        """Return the outcome of an item.

        Raises:
            CatalogError: The catalog cannot be read.
        """
        verdicts: dict[str, Verdict] = {}
        # The precision was measured on standards of one jurisdiction.
        least = self._least if self._scope.of(item).is_one_jurisdiction else None
        notes = list(correlation.notes)
        for pair in correlation.pairs:
            decision = self._decisions.get(review_key(item.digest, pair.id))
            if decision is None:
                verdicts[pair.id] = _verdict(pair, least)
            elif decision.choice == "replace":
                added = await self._replacement(decision.replacement, notes)
                # Without the other standard, nobody has decided yet.
                verdicts[pair.id] = Verdict(pair, "replaced", "person") if added else Verdict(pair)
                if added:
                    verdicts[added.id] = Verdict(added, "accepted", "person")
            else:
                status: Status = "accepted" if decision.choice == "accept" else "rejected"
                verdicts.setdefault(pair.id, Verdict(pair, status, "person"))
        ordered = sorted(verdicts.values(), key=lambda verdict: _ORDER[verdict.status])
        return Outcome(item, tuple(ordered), tuple(notes))

    async def _replacement(self, code: str, notes: list[str]) -> Pair | None:
        """Return the pair of a code that a person wrote, or None with a note."""
        base = self._scope.base
        records, problems = await self._correlator.named([code], base, certain=[code])
        notes += [f"review file: {problem}" for problem in problems]
        return Pair.of(records[0], basis="review") if records else None


def _verdict(pair: Pair, least: float | None) -> Verdict:
    is_certain = least is not None and pair.probability is not None and pair.probability >= least
    return Verdict(pair, "accepted", "auto") if is_certain else Verdict(pair)
