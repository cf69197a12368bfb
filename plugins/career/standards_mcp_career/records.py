"""Atoms, opportunities and interactions: their fields, normal forms and rules, and their storage.

The constructors of the classes check nothing, so stored records are read fast and unchanged.
Pydantic applies the annotations to the data of callers and files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from sqlite3 import Connection, Row
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from .database import next_number
from .language.clauses import surface_words
from .primitives import compact_json, lower, parse_texts, tokens, trim

Tokens: TypeAlias = Literal["meaningful", "original"]
"""The rule by which words count as evidence, and by which tags are split into words."""
_MAX_REQUIREMENTS: Final = 1000
_MAX_TRANSITIONS: Final = 10**9
"""Well below the limit of Redis, whose scripts write numbers with 14 digits."""

_IGNORE_UNKNOWN_KEYS: Final = ConfigDict(extra="ignore")
"""For callers. Files may not have unknown keys, because these may be misspelt."""


def _not_empty(text: str, info: ValidationInfo) -> str:
    if not text:
        raise PydanticCustomError("empty", "{name} must not be empty", {"name": info.field_name})
    return text


def _requirement_not_empty(text: str) -> str:
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

    __pydantic_config__ = _IGNORE_UNKNOWN_KEYS

    text: Annotated[str, AfterValidator(trim), AfterValidator(_requirement_not_empty)]
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


_REVISION_COUNTER: Final = "atoms"
# Files of the original program may have the columns in another order, so queries name them.
_ATOM_COLUMNS: Final = "atom_id, domain, title, claim, tags_json, verified, evidence_refs_json"
_OPPORTUNITY_COLUMNS: Final = "opportunity_id, company, role_title, source"
_SELECT_OPPORTUNITIES: Final = (
    f"SELECT {_OPPORTUNITY_COLUMNS}, text, tags_json, required FROM opportunities "  # noqa: S608
    "LEFT JOIN requirements USING (opportunity_id)"
)
_SELECT_INTERACTIONS: Final = (
    "SELECT interaction_id, opportunity_id, state, transition_index FROM interactions"
)


def upsert_atoms(connection: Connection, records: Sequence[Atom]) -> None:
    """Insert or replace atoms."""
    if not records:
        return
    rows = (
        {
            **asdict(record),
            "tags": compact_json(record.tags),
            "evidence_refs": compact_json(record.evidence_refs),
        }
        for record in records
    )
    connection.executemany(
        f"INSERT OR REPLACE INTO atoms ({_ATOM_COLUMNS}) "  # noqa: S608
        "VALUES (:atom_id, :domain, :title, :claim, :tags, :verified, :evidence_refs)",
        rows,
    )
    next_number(connection, _REVISION_COUNTER)


def atoms_revision(connection: Connection) -> int:
    """Return a number that increases with each `upsert_atoms` by any process."""
    query = "SELECT value FROM id_counters WHERE name = ?"
    row = connection.execute(query, (_REVISION_COUNTER,)).fetchone()
    return row["value"] if row else -1


def get_atom(connection: Connection, atom_id: str) -> Atom | None:
    """Return an atom, None for an unknown id."""
    query = f"SELECT {_ATOM_COLUMNS} FROM atoms WHERE atom_id = ?"  # noqa: S608
    row = connection.execute(query, (atom_id,)).fetchone()
    return _atom_of(row) if row else None


def all_atoms(connection: Connection) -> list[Atom]:
    """Return all atoms, in the order of their ids."""
    rows = connection.execute(f"SELECT {_ATOM_COLUMNS} FROM atoms ORDER BY atom_id")  # noqa: S608
    return [_atom_of(row) for row in rows]


def _atom_of(row: Row) -> Atom:
    atom_id, domain, title, claim, tags_json, verified, refs_json = row
    tags, refs = _stored_texts(tags_json), _stored_texts(refs_json)
    return Atom(atom_id, domain, title, claim, tags, bool(verified), refs)


def _stored_texts(stored: object) -> tuple[str, ...]:
    return parse_texts(stored) if stored else ()


def upsert_opportunities(connection: Connection, records: Sequence[Opportunity]) -> None:
    """Insert or replace opportunities."""
    for record in records:
        connection.execute(
            f"INSERT INTO opportunities ({_OPPORTUNITY_COLUMNS}) VALUES (?, ?, ?, ?) "  # noqa: S608
            "ON CONFLICT DO UPDATE SET company = excluded.company, "
            "role_title = excluded.role_title, source = excluded.source",
            (record.opportunity_id, record.company, record.role_title, record.source),
        )
        connection.execute(
            "DELETE FROM requirements WHERE opportunity_id = ?", (record.opportunity_id,)
        )
        rows = (
            (record.opportunity_id, idx, part.text, compact_json(part.tags), part.required)
            for idx, part in enumerate(record.requirements)
        )
        connection.executemany(
            "INSERT INTO requirements (opportunity_id, idx, text, tags_json, required) "
            "VALUES (?, ?, ?, ?, ?)",
            rows,
        )


def get_opportunity(connection: Connection, opportunity_id: str) -> Opportunity | None:
    """Return an opportunity, None for an unknown id."""
    query = f"{_SELECT_OPPORTUNITIES} WHERE opportunity_id = ? ORDER BY idx"
    return next(_opportunities(connection.execute(query, (opportunity_id,))), None)


def all_opportunities(connection: Connection) -> list[Opportunity]:
    """Return all opportunities, in the order of their ids."""
    query = f"{_SELECT_OPPORTUNITIES} ORDER BY opportunity_id, idx"
    return list(_opportunities(connection.execute(query)))


def _opportunities(rows: Iterable[Row]) -> Iterator[Opportunity]:
    for opportunity_id, group in groupby(rows, key=itemgetter("opportunity_id")):
        parts = list(group)
        requirements = tuple(
            Requirement(part["text"], _stored_texts(part["tags_json"]), bool(part["required"]))
            for part in parts
            if part["text"] is not None
        )
        _, company, role_title, source, *_ = parts[0]
        yield Opportunity(opportunity_id, company, role_title, source, requirements)


def upsert_interactions(connection: Connection, records: Sequence[Interaction]) -> None:
    """Insert or update interactions. Existing ones keep their state, which only events change."""
    for record in records:
        # No code reads contact_id, a column of the original program.
        connection.execute(
            "INSERT INTO interactions "
            "(interaction_id, contact_id, opportunity_id, state, transition_index) "
            "VALUES (:interaction_id, '', :opportunity_id, :state, :transition_index) "
            "ON CONFLICT DO UPDATE SET opportunity_id = excluded.opportunity_id",
            asdict(record),
        )


def get_interaction(connection: Connection, interaction_id: str) -> Interaction | None:
    """Return an interaction, None for an unknown id."""
    query = f"{_SELECT_INTERACTIONS} WHERE interaction_id = ?"
    row = connection.execute(query, (interaction_id,)).fetchone()
    return Interaction(*row) if row else None


def all_interactions(connection: Connection) -> list[Interaction]:
    """Return all interactions, in the order of their ids."""
    rows = connection.execute(f"{_SELECT_INTERACTIONS} ORDER BY interaction_id")
    return [Interaction(*row) for row in rows]
