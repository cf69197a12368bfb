"""Import records from JSON or YAML files into the database, all or none."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from .database import Store
from .records import Atom, Interaction, Opportunity, Tokens, split_tags, with_split_tags
from .tables import upsert

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


@dataclass(frozen=True, slots=True)
class _Contents:
    """The records of a file."""

    atoms: list[Atom] | None = None
    opportunities: list[Opportunity] | None = None
    interactions: list[Interaction] | None = None


_FILE_TYPE: Final = TypeAdapter(_Contents)
_KINDS: Final = ", ".join(part.name for part in fields(_Contents))
_MESSAGES: Final = {
    "unexpected_keyword_argument": "unknown field; check its spelling",
    "dataclass_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
}


def import_files(
    store: Store, files: Sequence[Path], rule: Tokens, *, dry_run: bool = False
) -> ImportAnswer:
    """Import files, each an object with lists of atoms, opportunities and interactions.

    Args:
        rule: The setting ``tokens``, which splits tags into words.
        dry_run: Roll the import back at the end.

    Raises:
        ApiError: The database fails.
    """
    errors, ids = list[Mistake](), Counter[str]()
    atoms, opportunities, interactions = list[Atom](), list[Opportunity](), list[Interaction]()
    for contents in [_read_records(file, errors) for file in files]:
        atoms += [replace(atom, tags=split_tags(atom.tags, rule)) for atom in contents.atoms or ()]
        opportunities += [with_split_tags(part, rule) for part in contents.opportunities or ()]
        interactions += contents.interactions or ()
    ids.update(f"atom {record.atom_id}" for record in atoms)
    ids.update(f"opportunity {record.opportunity_id}" for record in opportunities)
    ids.update(f"interaction {record.interaction_id}" for record in interactions)
    errors += [
        Mistake(where=where, message=f"duplicate id, {count} times")
        for where, count in ids.items()
        if count > 1
    ]
    if ids and not errors:
        with store.writing() as connection:
            upsert(connection, [*atoms, *opportunities])
            rows = connection.execute("SELECT opportunity_id FROM opportunities")
            opportunity_ids = {opportunity_id for (opportunity_id,) in rows}
            errors += [
                Mistake(
                    where=f"interaction {record.interaction_id}",
                    message=f"Opportunity not found: {record.opportunity_id}",
                )
                for record in interactions
                if record.opportunity_id not in opportunity_ids
            ]
            if not errors:
                upsert(connection, interactions)
            if errors or dry_run:
                connection.rollback()
    return {
        "atoms": 0 if errors else len(atoms),
        "opportunities": 0 if errors else len(opportunities),
        "interactions": 0 if errors else len(interactions),
        "errors": errors,
    }


def _read_records(file: Path, errors: list[Mistake]) -> _Contents:
    """Return the records of a file. On errors, append to *errors* and return no records."""
    where = str(file)
    try:
        return _FILE_TYPE.validate_python(parse_file(file), extra="forbid")
    except OSError as error:
        errors.append({"where": where, "message": error.strerror or str(error)})
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            message, location = _MESSAGES.get(detail["type"], detail["msg"]), detail["loc"]
            if len(location) < 2 and message != _MESSAGES["list_type"]:  # noqa: PLR2004
                message = f"{message}; expected {_KINDS}"
            parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
            place = "".join(parts).removeprefix(".")  # such as atoms[0].claim
            errors.append({"where": f"{where}: {place}" if place else where, "message": message})
    except (ValueError, RecursionError) as error:
        message = f"cannot be read: {' '.join(str(error).split())}"
        errors.append({"where": where, "message": message})
    return _Contents()


def parse_file(file: Path) -> Any:
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
