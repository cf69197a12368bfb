"""What each record becomes in an index: words, fields and a vector."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from standards_mcp_catalog.chunks import chunks
from standards_mcp_catalog.local.database import Database, Row
from standards_mcp_catalog.texts import ancestors_text, comparable
from standards_mcp_catalog.vocabulary.notation import with_prefixes
from standards_mcp_encoders.minilm import Vectors

from .columns import ColumnsWriter
from .lexical import LexicalWriter
from .wordings import Link, open_wordings

_CHUNK: Final = 512  # rows; each chunk is joined with the wordings at once
_PARENT_SHARE: Final = 0.1  # see docs/benchmarks.md


def write_rows(database: Database, folder: Path, model: str | None, dimensions: int) -> int:
    """Write everything but the manifest of an index, and return the number of rows."""
    lexical, columns = LexicalWriter(folder / "text"), ColumnsWriter()
    texts, standards = dict[bytes, int](), _Standards()
    groups, parents = array("i"), dict[str, str | None]()
    wordings = open_wordings(model)
    joined = folder / "joined.npy"
    with _vectors_file(joined, (database.count(), dimensions)) as file:
        for chunk in chunks(database.rows(model), _CHUNK):
            records = [json.loads(row.body) for row in chunk]
            vectors = _vectors_of(chunk, dimensions)
            links = wordings.links(records, vectors)
            for row, data, link in zip(chunk, records, links, strict=True):
                number = len(groups)
                parts = [ancestors_text(data), row.description]
                if link.number is not None and not link.is_own:
                    parts.append(wordings.texts[link.number])
                lexical.add(number, parts, columns.add(number, with_prefixes(data)))
                groups.append(texts.setdefault(_text_key(row), len(texts)))
                parents[row.id] = row.parent_id
                standards.add(number, link)
            file.write(wordings.joined(vectors, links).astype("<f4").tobytes())
    lexical.finish()
    columns.save(folder / "columns.npz")
    np.save(folder / "groups.npy", np.array(groups, dtype=np.int32))
    np.save(folder / "heights.npy", np.array(heights(parents), dtype=np.int32))
    np.save(folder / "replaced.npy", standards.replaced())
    if model is not None:
        _add_parents(joined, folder / "vectors.npy", parents)
    joined.unlink()
    return len(groups)


class _Standards:
    """The rows of the starter set, and those that are the same standards in official words."""

    def __init__(self) -> None:
        self._own = dict[int, int]()
        self._official = defaultdict[int, list[int]](list)

    def add(self, row: int, link: Link) -> None:
        if link.number is not None and link.is_own:
            self._own[link.number] = row
        elif link.number is not None and link.is_same:
            self._official[link.number].append(row)

    def replaced(self) -> Any:
        """Return pairs of a row of the starter set and one of the same standard, (pairs, 2)."""
        pairs = [
            (row, official)
            for number, row in self._own.items()
            for official in self._official[number]
        ]
        return np.array(pairs, dtype=np.int32).reshape(-1, 2)


def heights(parents: Mapping[str, str | None]) -> list[int]:
    """Return for each record how many levels of records stand below it."""
    found = dict.fromkeys(parents, 0)
    for id_ in parents:
        height, parent, seen = 1, parents[id_], {id_}
        while parent in found and parent not in seen and found[parent] < height:
            found[parent] = height
            seen.add(parent)
            height, parent = height + 1, parents[parent]
    return list(found.values())


def _text_key(row: Row) -> bytes:
    """Return what equal texts have in common: a hash, because a million texts fill the memory."""
    text = comparable(row.description) or row.id
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]


def _vectors_of(rows: Sequence[Row], dimensions: int) -> Vectors:
    data = b"".join(row.vector or bytes(4 * dimensions) for row in rows)
    return np.frombuffer(data, dtype="<f4").reshape(len(rows), dimensions)


@contextmanager
def _vectors_file(path: Path, shape: tuple[int, int]) -> Generator[BinaryIO, None, None]:
    """Open a file that vectors are written to, row by row."""
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        yield file


def _add_parents(source: Path, target: Path, parents: Mapping[str, str | None]) -> None:
    """Write the vectors of *source* to *target*, each with a share of its parent's."""
    numbers = {id_: row for row, id_ in enumerate(parents)}
    above = [numbers.get(parent or "", row) for row, parent in enumerate(parents.values())]
    vectors = np.load(source, mmap_mode="r", allow_pickle=False)
    with _vectors_file(target, vectors.shape) as file:
        for start in range(0, len(vectors), _CHUNK):
            own = vectors[start : start + _CHUNK]
            parent = vectors[above[start : start + _CHUNK]]
            file.write(((1 - _PARENT_SHARE) * own + _PARENT_SHARE * parent).astype("<f4").tobytes())
