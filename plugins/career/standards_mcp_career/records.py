"""Atoms, opportunities and interactions: their fields, normal forms and rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Final

from .primitives import Split, lower, tags, trim

_TAGS: Final = "tags must be normalized (lowercase, sorted, deduplicated)"
_STATES: Final = 5
_MOST_TRANSITIONS: Final = 10**9
"""Well below the precision of Redis, whose scripts write numbers with 14 digits."""


@dataclass(frozen=True, slots=True)
class Atom:
    """A claim about a person that can be proved.

    Attributes:
        verified: True if the atom may be matched.
        evidence_refs: Where the proof is.
    """

    atom_id: str
    domain: str = ""
    title: str = ""
    claim: str = ""
    tags: tuple[str, ...] = ()
    verified: bool = False
    evidence_refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of an opportunity.

    Attributes:
        required: True for must-have requirements.
    """

    text: str
    tags: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A job opening.

    Attributes:
        source: Where the opening was published.
        requirements: In their order.
    """

    opportunity_id: str
    company: str = ""
    role_title: str = ""
    source: str = ""
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Interaction:
    """An application for an opportunity.

    Attributes:
        state: 0 Draft, 1 Ready, 2 Sent, 3 Responded, 4 Closed.
        transition_index: Number of applied events.
    """

    interaction_id: str
    opportunity_id: str
    state: int = 0
    transition_index: int = 0


def normalised_atom(atom: Atom, words: Split) -> Atom:
    """Return an atom with trimmed texts, and with tags split by *words*."""
    return replace(
        atom,
        domain=lower(trim(atom.domain)),
        title=trim(atom.title),
        claim=trim(atom.claim),
        tags=tags(atom.tags, words),
        evidence_refs=tuple(ref for ref in map(trim, atom.evidence_refs) if ref),
    )


def normalised_opportunity(opportunity: Opportunity, words: Split) -> Opportunity:
    """Return an opportunity with trimmed texts, and with tags split by *words*."""
    return replace(
        opportunity,
        company=trim(opportunity.company),
        role_title=trim(opportunity.role_title),
        source=trim(opportunity.source),
        requirements=tuple(
            replace(each, text=trim(each.text), tags=tags(each.tags, words))
            for each in opportunity.requirements
        ),
    )


def _are_normalised(names: tuple[str, ...]) -> bool:
    return names == tuple(sorted({lower(tag) for tag in names}))


@singledispatch
def problem(record: object) -> str | None:
    """Return the first error of a record, None for a valid one.

    Raises:
        TypeError: The object is not a record.
    """
    raise TypeError(f"{type(record).__name__} is not a record")


@problem.register
def _(atom: Atom) -> str | None:
    if not atom.atom_id:
        return "atom_id must not be empty"
    if not atom.claim:
        return "claim must not be empty"
    if not _are_normalised(atom.tags):
        return _TAGS
    return "domain must be normalized (lowercase)" if atom.domain != lower(atom.domain) else None


@problem.register
def _(requirement: Requirement) -> str | None:
    if not requirement.text:
        return "requirement text must not be empty"
    return None if _are_normalised(requirement.tags) else _TAGS


@problem.register
def _(opportunity: Opportunity) -> str | None:
    for name in ("opportunity_id", "company", "role_title"):
        if not getattr(opportunity, name):
            return f"{name} must not be empty"
    error = next(filter(None, map(problem, opportunity.requirements)), None)
    return f"invalid requirement: {error}" if error else None


@problem.register
def _(interaction: Interaction) -> str | None:
    for name in ("interaction_id", "opportunity_id"):
        if not getattr(interaction, name):
            return f"{name} must not be empty"
    if interaction.state not in range(_STATES):
        return f"state must be 0 to {_STATES - 1}"
    is_countable = 0 <= interaction.transition_index <= _MOST_TRANSITIONS
    return None if is_countable else f"transition_index must be 0 to {_MOST_TRANSITIONS}"
