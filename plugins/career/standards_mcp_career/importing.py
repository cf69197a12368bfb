"""Import records from JSON or YAML files into the database, all or none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from .primitives import Split, words_by
from .records import (
    Atom,
    Interaction,
    Opportunity,
    Requirement,
    normalised_atom,
    normalised_opportunity,
    problem,
)
from .settings import Tokens
from .store.database import Store
from .store.repositories import (
    all_opportunities,
    upsert_atoms,
    upsert_interactions,
    upsert_opportunities,
)

Record = TypeVar("Record", Atom, Opportunity, Interaction)
_KINDS: Final = ("atoms", "opportunities", "interactions")
_YAML: Final = (".yaml", ".yml")


class Mistake(TypedDict):
    """An error in a file, with its place."""

    where: str
    message: str


class ImportAnswer(TypedDict):
    """Numbers of imported records, all 0 after an error."""

    atoms: int
    opportunities: int
    interactions: int
    errors: list[Mistake]


@dataclass(slots=True)
class _Found:
    """Records and mistakes of the files."""

    atoms: list[Atom] = field(default_factory=list[Atom])
    opportunities: list[Opportunity] = field(default_factory=list[Opportunity])
    interactions: list[Interaction] = field(default_factory=list[Interaction])
    errors: list[Mistake] = field(default_factory=list[Mistake])


def import_files(
    store: Store, files: Sequence[Path], tokens: Tokens, *, dry_run: bool = False
) -> ImportAnswer:
    """Import files, each an object with lists of atoms, opportunities and interactions.

    Args:
        tokens: The setting ``tokens``, which splits tags into words.
        dry_run: Roll the import back at the end.

    Raises:
        ApiError: The database fails.
    """
    found = _Found()
    for file in files:
        _read(file, found, words_by(tokens))
    if not files:
        return _answer(found)
    with store.reading() as connection:
        known = {each.opportunity_id for each in all_opportunities(connection)}
    known |= {each.opportunity_id for each in found.opportunities}
    for each in found.interactions:
        if each.opportunity_id not in known:
            where, missing = f"interaction {each.interaction_id}", each.opportunity_id
            message = f"Opportunity not found: {missing}"
            found.errors.append({"where": where, "message": message})
    found.errors.extend(_twice(found))
    if found.errors:
        return _answer(_Found(errors=found.errors))
    with store.writing() as connection:
        upsert_atoms(connection, found.atoms)
        upsert_opportunities(connection, found.opportunities)
        upsert_interactions(connection, found.interactions)
        if dry_run:
            connection.rollback()
    return _answer(found)


def _answer(found: _Found) -> ImportAnswer:
    return {
        "atoms": len(found.atoms),
        "opportunities": len(found.opportunities),
        "interactions": len(found.interactions),
        "errors": found.errors,
    }


def _twice(found: _Found) -> Iterator[Mistake]:
    ids = {
        "atom": [each.atom_id for each in found.atoms],
        "opportunity": [each.opportunity_id for each in found.opportunities],
        "interaction": [each.interaction_id for each in found.interactions],
    }
    for name, each in ids.items():
        for identifier, count in Counter(each).items():
            if count > 1:
                yield {"where": f"{name} {identifier}", "message": f"duplicate id, {count} times"}


def _read(file: Path, found: _Found, words: Split) -> None:
    try:
        content = parsed(file)
    except OSError as error:
        _mistake(found, str(file), error.strerror or str(error))
        return
    except (ValueError, RecursionError) as error:
        _mistake(found, str(file), f"cannot be read: {' '.join(str(error).split())}")
        return
    if not isinstance(content, dict):
        _mistake(found, str(file), f"must be an object with {', '.join(_KINDS)}")
        return
    told = {str(key): value for key, value in cast("dict[object, object]", content).items()}
    for key in sorted(told.keys() - set(_KINDS)):
        _mistake(found, f"{file}: {key}", f"unknown key; expected {', '.join(_KINDS)}")
    found.atoms += _records(file, told, found, Atom, partial(normalised_atom, words=words))
    normalised = partial(normalised_opportunity, words=words)
    found.opportunities += _records(file, told, found, Opportunity, normalised)
    found.interactions += _records(file, told, found, Interaction, lambda record: record)


def parsed(file: Path) -> Any:
    """Parse a JSON or YAML file.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is neither JSON nor YAML.
        RecursionError: The data is nested too deeply.
    """
    text = file.read_text("utf-8-sig")
    if file.suffix.lower() not in _YAML:
        return json.loads(text)
    from ruamel.yaml import YAML  # noqa: PLC0415  - JSON needs none
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    yaml: Any = YAML(typ="safe")
    try:
        return yaml.load(text)
    except YAMLError as error:
        raise ValueError(str(error)) from error
    except (AttributeError, LookupError, TypeError) as error:  # a tag on a value of another type
        raise ValueError("a YAML tag does not fit its value") from error


def _records(
    file: Path,
    told: Mapping[str, object],
    found: _Found,
    kind: type[Record],
    normalised: Callable[[Record], Record],
) -> Iterator[Record]:
    """Yield the valid records of a kind, and note the errors of the others."""
    name = {Atom: "atoms", Opportunity: "opportunities", Interaction: "interactions"}[kind]
    records = told.get(name)
    if not isinstance(records, list | None):
        _mistake(found, f"{file}: {name}", "must be a list")
        return
    reader = TypeAdapter(kind)
    for number, given in enumerate(cast("list[object]", records or [])):
        where = f"{file}: {name}[{number}]"
        try:
            record = normalised(reader.validate_python(given))
        except ValidationError as error:
            for each in error.errors(include_url=False, include_input=False):
                _mistake(found, where + _place(each["loc"]), each["msg"])
            continue
        wrong = next(_unknown(given, kind), None) or problem(record)
        if wrong:
            _mistake(found, where, wrong)
        else:
            yield record


def _unknown(given: object, kind: type) -> Iterator[str]:
    """Yield an error for each unknown field: it may be misspelt."""
    if not isinstance(given, dict):
        return
    told = cast("dict[object, object]", given)
    names = [each.name for each in fields(kind)]
    for key in told:
        if key not in names:
            yield f"unknown field {key}; expected {', '.join(names)}"
    requirements = told.get("requirements")
    if isinstance(requirements, list):
        for each in cast("list[object]", requirements):
            yield from _unknown(each, Requirement)


def _place(parts: Iterable[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _mistake(found: _Found, where: str, message: str) -> None:
    found.errors.append({"where": where, "message": message})
