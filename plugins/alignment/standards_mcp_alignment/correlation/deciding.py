"""Decide on pairs: by the review file first, then by ``--auto``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from standards_mcp_alignment.inputs import Item

from .correlator import Correlation, Correlator, Pair
from .features import MEASURED_WORDS, words_in
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
        self._decisions = defaultdict[str, dict[str, Decision]](dict)
        for (item, standard_id), decision in decisions.items():
            self._decisions[item][standard_id] = decision
        self._least = least

    async def decide(self, item: Item, correlation: Correlation) -> Outcome:
        """Return the outcome of an item.

        Raises:
            CatalogError: The catalog cannot be read.
        """
        # The precision was measured on standards of one jurisdiction.
        least = self._least if self._scope.of(item).jurisdictions == 1 else None
        pairs = {pair.id: pair for pair in correlation.pairs}
        decisions = self._decisions.get(review_key(item.digest, "")[0], {})
        verdicts: dict[str, Verdict] = {}
        notes = list(correlation.notes)
        if least is not None and len(words_in(item.content)) > MEASURED_WORDS:
            least = None
            notes.append(
                f"probabilities were measured on texts of up to {MEASURED_WORDS} different words; "
                "this one has more, so nothing is accepted automatically"
            )
        for standard_id, decision in decisions.items():
            pair = pairs.pop(standard_id, None)
            for verdict in await self._decided(standard_id, pair, decision, notes):
                verdicts[verdict.pair.id] = verdict
        for pair in pairs.values():
            verdicts.setdefault(pair.id, _verdict(pair, least))
        ordered = sorted(verdicts.values(), key=lambda verdict: _ORDER[verdict.status])
        return Outcome(item, tuple(ordered), tuple(notes))

    async def _decided(
        self, standard_id: str, pair: Pair | None, decision: Decision, notes: list[str]
    ) -> list[Verdict]:
        """Return what a person's decision makes of a pair.

        Args:
            pair: None if this run did not find the standard, for example with a smaller ``--top``.
        """
        if decision.choice == "replace":
            added = await self._replacement(decision.replacement, notes)
            if added is None:  # no decision yet
                return [Verdict(pair)] if pair else []
            replaced = [Verdict(pair, "replaced", "person")] if pair else []
            return [*replaced, Verdict(added, "accepted", "person")]
        if decision.choice == "reject":
            return [Verdict(pair, "rejected", "person")] if pair else []
        pair = pair or await self._correlator.chosen(standard_id)
        if pair is None:
            notes.append(f"review file: the accepted standard {standard_id} is not loaded any more")
            return []
        return [Verdict(pair, "accepted", "person")]

    async def _replacement(self, code: str, notes: list[str]) -> Pair | None:
        """Return the pair of a code that a person wrote, or None with a note."""
        base = self._scope.base
        records, problems = await self._correlator.named([code], base, certain=[code])
        notes += [f"review file: {problem}" for problem in problems]
        return next((Pair.of(record, basis="review") for record in records.values()), None)


def _verdict(pair: Pair, least: float | None) -> Verdict:
    is_certain = least is not None and (pair.probability or 0) >= least and not pair.is_retired
    return Verdict(pair, "accepted", "auto") if is_certain else Verdict(pair)
