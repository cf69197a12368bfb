"""Judge whether an atom meets a requirement, by their meaningful words and quantities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from .clauses import Clause, read_clauses
from .quantities import Quantity
from .tokens import stem

# Word lists and rules decide instead of a model: equal inputs give equal reports on every machine,
# and a verdict is explained by its words.
MIN_SHARE: Final = 0.75
"""The share of a requirement's meaningful words that evidence must have.

Chosen with ``benchmarks/career_evidence.py``.
"""


@dataclass(frozen=True, slots=True)
class Slot:
    """One condition of a requirement: a word, alternatives such as "Go or Rust", or a quantity.

    Attributes:
        words: The text of each word by its stem.
        quantity: None for words.
        subject: Slots of the subject of a quantity, such as "Go" in "five years of Go".
    """

    words: dict[str, str]
    quantity: Quantity | None = None
    subject: tuple[Slot, ...] = ()

    @property
    def keys(self) -> Collection[str]:
        """The keys of the slot in `AtomText.keys`."""
        return self.words if self.quantity is None else list(map(_key, self.quantity.wanted))

    @property
    def is_number(self) -> bool:
        """True for a quantity, which has no words, and for a number that is a name.

        Such a slot must be met.
        """
        return all(key.lstrip("!").replace(".", "").isdecimal() for key in self.words)

    @property
    def text(self) -> str:
        """The slot as text for messages."""
        return " or ".join(self.words.values()) if self.quantity is None else self.quantity.text

    def matched_words(self, stems: Collection[str]) -> list[str]:
        """Return the texts of the slot's words whose stems are in *stems*."""
        return [text for key, text in self.words.items() if key in stems]


@dataclass(frozen=True, slots=True)
class AtomText:
    """The parsed text of an atom.

    Attributes:
        clauses: Clauses of the claim and of the title.
        heading: Stems of the title, which apply to every clause.
        tags: Stems of the tags, which also apply to every clause. A tag is never the subject of a
            quantity: "five years of Java" may have a tag "go".
    """

    clauses: Sequence[Clause]
    heading: frozenset[str]
    tags: frozenset[str]

    def keys(self) -> set[str]:
        """Return all stems, and a key for the noun of each quantity."""
        counted = [part.quantity for clause in self.clauses for part in clause.quantities]
        nouns = {_key(noun) for quantity in counted for noun in quantity.nouns}
        return nouns.union(self.tags, *(clause.words for clause in self.clauses))


class Verdict(NamedTuple):
    """The share of a requirement's slots that are met, 0 below the minimum, and the evidence."""

    share: float
    words: list[str]


def parse_requirement(text: str) -> tuple[Slot, ...]:
    """Parse a requirement into slots."""
    slots, slot_of = list[Slot](), dict[str, int]()
    for clause in read_clauses(text):
        for key in clause.words:
            if key not in slot_of:
                keys = [
                    stem_key
                    for stem_key in clause.alternatives.get(key, [key])
                    if stem_key not in slot_of
                ]
                slot_of |= dict.fromkeys(keys, len(slots))
                slots.append(Slot({stem_key: clause.words[stem_key] for stem_key in keys}))
        for counted in clause.quantities:
            places = dict.fromkeys(slot_of[key] for key in counted.words)
            slots.append(Slot({}, counted.quantity, tuple(slots[place] for place in places)))
    return tuple(slots)


@lru_cache(maxsize=20_000)  # unchanged atoms are not parsed again
def parse_atom(claim: str, title: str, tags: tuple[str, ...]) -> AtomText:
    """Parse an atom."""
    titled = read_clauses(title, is_claim=True)
    heading = frozenset(key for clause in titled for key in clause.words)
    return AtomText(
        [*read_clauses(claim, is_claim=True), *titled], heading, frozenset(map(stem, tags))
    )


def judge(slots: Sequence[Slot], atom: AtomText, min_share: float = MIN_SHARE) -> Verdict:
    """Return the share of a requirement that the best clause of an atom meets.

    One clause must meet the minimum share: words of different clauses mean something else. It must
    also have every quantity, and every number that is a name.
    """
    best = Verdict(0.0, [])
    for clause in atom.clauses:
        stems = atom.heading.union(atom.tags, clause.words)
        words, met = list[str](), 0
        for slot in slots:
            matched = slot.matched_words(stems)
            if slot.quantity is not None and _has_quantity(
                slot, slot.quantity, clause, atom.heading
            ):
                matched = [slot.quantity.text]
            if slot.is_number and not matched:
                break
            words, met = words + matched, met + bool(matched)
        else:
            share = met / len(slots) if slots else 0.0
            best = max(best, Verdict(share, sorted(words)), key=lambda verdict: verdict.share)
    return best if best.share >= min_share else Verdict(0.0, [])


def _has_quantity(slot: Slot, quantity: Quantity, clause: Clause, heading: frozenset[str]) -> bool:
    """Return True if a clause has the quantity, with the subject of the slot in its phrase."""
    for counted in clause.quantities:
        if quantity.is_met_by(counted.quantity):
            stems = {*counted.words, *(() if counted.is_named else heading)}
            if all(part.matched_words(stems) for part in slot.subject):
                return True
    return False


def thin_evidence_reason(text: str, evidence: Iterable[str]) -> str | None:
    """Return why the evidence of a report is thin for a requirement, None if it suffices.

    Args:
        text: The requirement.
        evidence: Its evidence_tokens.
    """
    words = set(evidence)
    stems = words.union(map(stem, words), (f"!{stem(word)}" for word in words))
    met, missing = list[Slot](), list[Slot]()
    for slot in parse_requirement(text):
        is_met = slot.quantity.text in words if slot.quantity else stems & slot.words.keys()
        (met if is_met else missing).append(slot)
    if not any(slot.words for slot in (*met, *missing)):
        return "the requirement names no skill or subject; add one"
    share = len(met) / (len(met) + len(missing))
    if share >= MIN_SHARE and not any(slot.is_number for slot in missing):
        return None
    return f"it lacks {', '.join(slot.text for slot in missing)}"


def _key(noun: str) -> str:
    return f"#{noun}"
