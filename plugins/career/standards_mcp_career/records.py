"""Atoms, opportunities and interactions: their fields, normal forms and rules.

The classes check nothing when code makes them, so stored records are read fast and as they are.
Pydantic applies the annotations to the data of callers and files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from .language.clauses import surface_words
from .primitives import lower, tokens, trim

Tokens: TypeAlias = Literal["meaningful", "original"]
"""The rule that says which words are evidence, and how tags are split into words."""
_MOST_REQUIREMENTS: Final = 1000
_MOST_TRANSITIONS: Final = 10**9
"""Well below the precision of Redis, whose scripts write numbers with 14 digits."""

_FURTHER_KEYS: Final = ConfigDict(extra="ignore")
"""Callers may send more than a record has. Files may not: a key may be misspelt."""


def _not_empty(text: str, info: ValidationInfo) -> str:
    if not text:
        raise PydanticCustomError("empty", "{name} must not be empty", {"name": info.field_name})
    return text


def _asks_something(text: str) -> str:
    if not text:
        raise PydanticCustomError(
            "empty", "invalid requirement: requirement text must not be empty"
        )
    return text


def _trimmed_refs(refs: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(ref for ref in map(trim, refs) if ref)


_Trimmed: TypeAlias = Annotated[str, AfterValidator(trim)]
_Id: TypeAlias = Annotated[str, AfterValidator(_not_empty)]
_Text: TypeAlias = Annotated[
    str, AfterValidator(trim), AfterValidator(_not_empty), Field(validate_default=True)
]


@dataclass(frozen=True, slots=True)
class Atom:
    """A claim about a person that can be proved.

    Attributes:
        verified: True if the atom may be matched.
        evidence_refs: Where the proof is.
    """

    atom_id: _Id
    domain: Annotated[str, AfterValidator(trim), AfterValidator(lower)] = ""
    title: _Trimmed = ""
    claim: _Text = ""
    tags: tuple[str, ...] = ()
    verified: bool = False
    evidence_refs: Annotated[tuple[str, ...], AfterValidator(_trimmed_refs)] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of an opportunity; an optional one has ``required`` false."""

    __pydantic_config__ = _FURTHER_KEYS

    text: Annotated[str, AfterValidator(trim), AfterValidator(_asks_something)]
    tags: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A job opening with its requirements in order."""

    __pydantic_config__ = _FURTHER_KEYS

    opportunity_id: _Id
    company: _Text
    role_title: _Text
    source: _Trimmed = ""
    requirements: Annotated[tuple[Requirement, ...], Field(max_length=_MOST_REQUIREMENTS)] = ()


@dataclass(frozen=True, slots=True)
class Interaction:
    """An application for an opportunity.

    Attributes:
        state: 0 Draft, 1 Ready, 2 Sent, 3 Responded, 4 Closed.
        transition_index: Number of applied events.
    """

    interaction_id: _Id
    opportunity_id: _Id
    state: Annotated[int, Field(ge=0, le=4)] = 0
    transition_index: Annotated[int, Field(ge=0, le=_MOST_TRANSITIONS)] = 0


def split_tags(tags: Iterable[str], rule: Tokens) -> tuple[str, ...]:
    """Return the words of all tags, sorted, each once."""
    words = tokens if rule == "original" else surface_words
    return tuple(sorted({word for tag in tags for word in words(tag)}))


def with_split_tags(opportunity: Opportunity, rule: Tokens) -> Opportunity:
    """Return an opportunity with the tags of its requirements split into words."""
    requirements = tuple(
        replace(requirement, tags=split_tags(requirement.tags, rule))
        for requirement in opportunity.requirements
    )
    return replace(opportunity, requirements=requirements)
