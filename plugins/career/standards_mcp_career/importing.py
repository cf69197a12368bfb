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
class _Contents:
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
    contents = _Contents()
    for file in files:
        _read(file, contents, words_by(tokens))
    if not files:
        return _answer(contents)
    with store.reading() as connection:
        opportunity_ids = {record.opportunity_id for record in all_opportunities(connection)}
    opportunity_ids |= {record.opportunity_id for record in contents.opportunities}
    for record in contents.interactions:
        if record.opportunity_id not in opportunity_ids:
            where, missing = f"interaction {record.interaction_id}", record.opportunity_id
            message = f"Opportunity not found: {missing}"
            contents.errors.append({"where": where, "message": message})
    contents.errors.extend(_duplicates(contents))
    if contents.errors:
        return _answer(_Contents(errors=contents.errors))
    with store.writing() as connection:
        upsert_atoms(connection, contents.atoms)
        upsert_opportunities(connection, contents.opportunities)
        upsert_interactions(connection, contents.interactions)
        if dry_run:
            connection.rollback()
    return _answer(contents)


def _answer(contents: _Contents) -> ImportAnswer:
    return {
        "atoms": len(contents.atoms),
        "opportunities": len(contents.opportunities),
        "interactions": len(contents.interactions),
        "errors": contents.errors,
    }


def _duplicates(contents: _Contents) -> Iterator[Mistake]:
    ids = {
        "atom": [atom.atom_id for atom in contents.atoms],
        "opportunity": [record.opportunity_id for record in contents.opportunities],
        "interaction": [record.interaction_id for record in contents.interactions],
    }
    for name, ids_of_kind in ids.items():
        for identifier, count in Counter(ids_of_kind).items():
            if count > 1:
                yield {"where": f"{name} {identifier}", "message": f"duplicate id, {count} times"}


def _read(file: Path, contents: _Contents, words: Split) -> None:
    try:
        parsed_file = parsed(file)
    except OSError as error:
        _mistake(contents, str(file), error.strerror or str(error))
        return
    except (ValueError, RecursionError) as error:
        _mistake(contents, str(file), f"cannot be read: {' '.join(str(error).split())}")
        return
    if not isinstance(parsed_file, dict):
        _mistake(contents, str(file), f"must be an object with {', '.join(_KINDS)}")
        return
    members = {str(key): value for key, value in cast("dict[object, object]", parsed_file).items()}
    for key in sorted(members.keys() - set(_KINDS)):
        _mistake(contents, f"{file}: {key}", f"unknown key; expected {', '.join(_KINDS)}")
    contents.atoms += _records(file, members, contents, Atom, partial(normalised_atom, words=words))
    normalised = partial(normalised_opportunity, words=words)
    contents.opportunities += _records(file, members, contents, Opportunity, normalised)
    contents.interactions += _records(file, members, contents, Interaction, lambda record: record)


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
    members: Mapping[str, object],
    contents: _Contents,
    kind: type[Record],
    normalised: Callable[[Record], Record],
) -> Iterator[Record]:
    """Yield the valid records of a kind, and note the errors of the others."""
    name = {Atom: "atoms", Opportunity: "opportunities", Interaction: "interactions"}[kind]
    records = members.get(name)
    if not isinstance(records, list | None):
        _mistake(contents, f"{file}: {name}", "must be a list")
        return
    reader = TypeAdapter(kind)
    for number, item in enumerate(cast("list[object]", records or [])):
        where = f"{file}: {name}[{number}]"
        try:
            record = normalised(reader.validate_python(item))
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False):
                _mistake(contents, where + _place(detail["loc"]), detail["msg"])
            continue
        wrong = next(_unknown(item, kind), None) or problem(record)
        if wrong:
            _mistake(contents, where, wrong)
        else:
            yield record


def _unknown(item: object, kind: type) -> Iterator[str]:
    """Yield an error for each unknown field: it may be misspelt."""
    if not isinstance(item, dict):
        return
    members = cast("dict[object, object]", item)
    names = [part.name for part in fields(kind)]
    for key in members:
        if key not in names:
            yield f"unknown field {key}; expected {', '.join(names)}"
    requirements = members.get("requirements")
    if isinstance(requirements, list):
        for part in cast("list[object]", requirements):
            yield from _unknown(part, Requirement)


def _place(parts: Iterable[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)


def _mistake(contents: _Contents, where: str, message: str) -> None:
    contents.errors.append({"where": where, "message": message})
