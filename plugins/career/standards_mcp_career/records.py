"""The stored records: their fields, normal forms and rules.

The constructors of the classes check nothing, so stored records are read fast and unchanged.
Pydantic applies the annotations to the data of callers and files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from .language.clauses import surface_words
from .primitives import lower, tokens, trim

Tokens: TypeAlias = Literal["meaningful", "original"]
"""The rule by which words count as evidence, and by which tags are split into words."""
_MAX_REQUIREMENTS: Final = 1000
_MAX_TRANSITIONS: Final = 10**9
"""Well below the limit of Redis, whose scripts write numbers with 14 digits."""

_IGNORE_UNKNOWN_KEYS: Final = ConfigDict(extra="ignore")
"""For callers. Files may not have unknown keys, because these may be misspelt."""


def _not_empty(text: str, info: ValidationInfo) -> str:
    name = info.field_name
    if not text:
        name = "invalid requirement: requirement text" if name == "text" else name
        raise PydanticCustomError("empty", "{name} must not be empty", {"name": name})
    return text


def _without_empty(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for text in texts if text)


_Trimmed: TypeAlias = Annotated[str, AfterValidator(trim)]
_Id: TypeAlias = Annotated[str, AfterValidator(_not_empty)]
_Text: TypeAlias = Annotated[_Trimmed, AfterValidator(_not_empty), Field(validate_default=True)]


@dataclass(frozen=True, slots=True)
class Atom:
    """A claim about a person that can be proved.

    Attributes:
        verified: True if the atom may be matched.
        evidence_refs: Where the proof is.
    """

    atom_id: _Id
    domain: Annotated[_Trimmed, AfterValidator(lower)] = ""
    title: _Trimmed = ""
    claim: _Text = ""
    tags: tuple[str, ...] = ()
    verified: bool = False
    evidence_refs: Annotated[tuple[_Trimmed, ...], AfterValidator(_without_empty)] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of an opportunity; an optional one has ``required`` false."""

    __pydantic_config__ = _IGNORE_UNKNOWN_KEYS

    text: Annotated[_Trimmed, AfterValidator(_not_empty)]
    tags: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class Opportunity:
    """A job opening with its requirements in order."""

    __pydantic_config__ = _IGNORE_UNKNOWN_KEYS

    opportunity_id: _Id
    company: _Text
    role_title: _Text
    source: _Trimmed = ""
    requirements: Annotated[tuple[Requirement, ...], Field(max_length=_MAX_REQUIREMENTS)] = ()


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
    transition_index: Annotated[int, Field(ge=0, le=_MAX_TRANSITIONS)] = 0


@dataclass(frozen=True, slots=True)
class Resume:
    """A resume, as Markdown, with its origin. The origin is None for a resume of another program.

    Attributes:
        resume_hash: ``sha256:`` and the hash of the Markdown.
        source_path: The real path, with symbolic links resolved.
        source_hash: SHA-256 of the file's bytes, in hexadecimal digits.
        extracted_at: UTC, as 2026-01-01T00:00:00Z.
    """

    resume_id: str
    markdown: str
    resume_hash: str
    created_at: str
    source_path: str | None = None
    source_hash: str | None = None
    extraction_method: str | None = None
    extracted_at: str | None = None
    ingestion_version: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the index.

    Attributes:
        status: pending, running, completed or failed.
    """

    run_id: str
    started_at: str | None
    completed_at: str | None
    provider_id: str
    model_id: str
    prompt_version: str
    status: str
    summary: Any


@dataclass(frozen=True, slots=True)
class Entry:
    """An artifact that a run has indexed.

    Attributes:
        stale: True if the text has changed since the previous run.
    """

    artifact_type: str
    artifact_id: str
    source_hash: str
    vector_hash: str
    stale: bool


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A decision of a match, as JSON data."""

    decision_id: str
    trace_id: str
    decision: Any


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the audit log.

    Attributes:
        payload: Compact JSON of an object.
        refs: Ids of related records.
        created_at: UTC, as 2026-01-01T00:00:00Z.
        previous_hash: The hash of the preceding event in the trace.
        event_hash: 64 hexadecimal digits.
    """

    event_id: str
    trace_id: str
    event_type: str
    payload: str
    created_at: str
    refs: tuple[str, ...]
    previous_hash: str = ""
    event_hash: str = ""


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
