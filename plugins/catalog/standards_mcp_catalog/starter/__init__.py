"""The starter set: standards by their official codes and ids, described in this project's words.

Codes, grades and structure are facts and are the official ones. So are the GUIDs of the Common
Core; other records have a UUID of version 5, made from the ASN id or else from the code. Every text
is a paraphrase written for this project; each record says so and links to the official wording.

The tables hold one line for each standard, after the line of its parent; ``sets.csv`` holds what
the standards of one set have in common. Phrases name each standard as a teacher, a worksheet or an
exercise would; they serve searches only.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from standards_mcp_catalog.records import StandardRecord, text_hash
from standards_mcp_encoders.spec import MINILM_NAME

if TYPE_CHECKING:
    from standards_mcp_catalog.results import Seed

EDITION: Final = "edition.txt"
_SETS: Final = "sets.csv"
_FOLDERS: Final = ("mathematics", "literacy", "science", "social-studies", "computer-science")


class Wording(NamedTuple):
    """The texts of the starter set for one standard, without its record.

    Attributes:
        id: The id of the record.
        jurisdiction: The title of the framework's publisher.
        phrases: Two or more names for it that a teacher, a worksheet or an exercise would use.
    """

    id: str
    notation: str
    jurisdiction: str
    text: str
    phrases: Sequence[str]


def starter_records() -> list[StandardRecord]:
    """Return every record of the starter set, each followed by its descendants."""
    rows, sets = _rows(), _sets()
    paths, children = dict[str, tuple[str, ...]](), defaultdict[str, list[str]](list)
    for notation, row in rows.items():
        paths[notation] = (*(paths[row["parent"]] if row["parent"] else ()), notation)
        children[row["parent"]].append(notation)
    return [_record(rows, path, children, sets) for path in paths.values()]


def starter_seed() -> Seed:
    """Return the starter set with its embeddings, to fill a new catalog with.

    The vectors, one of float16 for each record in the order of `starter_records`, are made by
    ``scripts/embed_starter.py``.
    """
    from standards_mcp_catalog.results import Seed  # noqa: PLC0415  - once in a catalog's life

    records = starter_records()
    hashes = [text_hash(record.description) for record in records]
    return Seed(records=records, model=MINILM_NAME, hashes=hashes, vectors=starter_vectors())


def starter_wordings() -> list[Wording]:
    """Return the texts for each standard, in the order of `starter_records`."""
    phrases = defaultdict[str, list[str]](list)
    for row in _lines(_phrase_tables()):
        phrases[row["notation"]].append(row["phrase"])
    sets = _sets()
    return [
        Wording(
            row["guid"], code, sets[row["set"]]["jurisdiction_title"], row["text"], phrases[code]
        )
        for code, row in _rows().items()
    ]


def starter_vectors() -> Any:
    """Return the vectors of `starter_records`, float16 of shape (records, dimensions)."""
    return _array("vectors.npy")


def phrase_vectors() -> Any:
    """Return the vectors of the phrases, int8 of shape (phrases, dimensions).

    They are in the order of `starter_wordings`. Each is scaled to a largest component of 127, so
    normalize it before use.
    """
    return _array("phrases.npy")


def query_matrix() -> Any:
    """Return the matrix for the vectors of queries, float16 of shape (dimensions, dimensions).

    It turns a query's vector towards the standard that the query is about.
    """
    return _array("queries.npy")


def _array(name: str) -> Any:
    import numpy as np  # noqa: PLC0415  - as above

    with (files(__name__) / name).open("rb") as file:
        return np.load(file, allow_pickle=False)


def starter_edition() -> str:
    """Return the edition of the starter set: the `edition_of_texts`, which a file has.

    To read all texts would take a tenth of the first lookup.
    """
    return (files(__name__) / EDITION).read_text("ascii").strip()


def edition_of_texts() -> str:
    """Return a hash of all records, of their phrases, and of the encoder's name."""
    records = [record.to_dict() for record in starter_records()]
    phrases = [wording.phrases for wording in starter_wordings()]
    text = json.dumps([MINILM_NAME, records, phrases], sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _rows() -> dict[str, dict[str, str]]:
    return {row["notation"]: row for row in _lines(_tables())}


def _sets() -> dict[str, dict[str, Any]]:
    """Return the fields of records that the standards of one set have in common, by its id."""
    return {
        row["standard_set_id"]: {
            **row,
            "education_levels": row["education_levels"].split(","),
            "normalized_subject": row["normalized_subject"] or None,
        }
        for row in _lines([files(__name__) / _SETS])
    }


def _lines(tables: Iterable[Traversable]) -> Iterator[dict[str, str]]:
    for table in tables:
        yield from csv.DictReader(table.read_text(encoding="utf-8").splitlines())


def _tables() -> Iterator[Traversable]:
    for folder in _FOLDERS:
        yield from sorted((files(__name__) / folder).iterdir(), key=lambda item: item.name)


def _phrase_tables() -> Iterator[Traversable]:
    for folder in _FOLDERS:
        yield files(__name__) / "phrases" / f"{folder}.csv"


def _record(
    rows: Mapping[str, Mapping[str, str]],
    path: Sequence[str],
    children: Mapping[str, Sequence[str]],
    sets: Mapping[str, Mapping[str, Any]],
) -> StandardRecord:
    *ancestors, notation = path
    row, below = rows[notation], children.get(notation, ())
    ids = [rows[ancestor]["guid"] for ancestor in ancestors]
    lines = (f"Depth {depth} ({code}): {rows[code]['text']}" for depth, code in enumerate(path))
    return StandardRecord.from_dict(
        {
            **sets[row["set"]],
            "_id": row["guid"],
            "content": "\n".join(lines),
            "publication_status": "Published",
            "asn_identifier": row["asn_id"] or None,
            "case_uuid": row["case_uuid"] or None,
            "statement_notation": notation,
            "alt_statement_notations": list(filter(None, row["other_codes"].split("|"))),
            "statement_label": row["label"],
            "depth": len(ancestors),
            "is_leaf": not below,
            "is_root": not ancestors,
            "parent_id": ids[-1] if ids else None,
            "root_id": ids[0] if ids else row["guid"],
            "ancestor_ids": ids,
            "child_ids": [rows[child]["guid"] for child in below],
            "sibling_count": len(children[row["parent"]]) - 1 if ancestors else 0,
            "description": row["text"],
            "source_url": row["url"],
            "license": "Apache-2.0",
            "text_status": "paraphrase",
        }
    )
