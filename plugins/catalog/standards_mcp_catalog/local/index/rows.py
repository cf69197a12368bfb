"""Convert records to rows of an index: words, fields and a vector.

Official texts and descriptions of activities have few words in common; the starter set describes
the same standards in a teacher's words. So the row of a record has the words of its own text and of
the starter set's text of the same standard, and the mean of their vectors. Records that only
resemble a text of the starter set share its vector, too. The starter set's phrases for the standard
are searched as words and as separate vectors. Results show the record's own text.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from standards_mcp_catalog.local.database import Database, Row
from standards_mcp_catalog.records import ancestors_text, chunks, comparable
from standards_mcp_catalog.starter import phrase_vectors, starter_vectors, starter_wordings
from standards_mcp_catalog.vocabulary.names import are_one_jurisdiction
from standards_mcp_catalog.vocabulary.notation import canonical_key, with_prefixes
from standards_mcp_encoders.minilm import Vectors, normalised
from standards_mcp_encoders.spec import MINILM_NAME

from .columns import ColumnsWriter
from .lexical import LexicalWriter
from .vectors import Numbers, array_file, write_vectors

_CHUNK: Final = 512  # rows whose vectors are joined with those of the wordings at once
_PARENT_SHARE: Final = 0.1  # see docs/benchmarks.md


def write_rows(database: Database, folder: Path, model: str | None, dimensions: int) -> int:
    """Write everything but the manifest of an index, and return the number of rows."""
    lexical, columns = LexicalWriter(folder / "text"), ColumnsWriter()
    group_numbers, replaced = dict[bytes, int](), _ReplacedRows()
    groups, parents = array("i"), dict[str, str | None]()
    wordings = open_wordings(model)
    joined = folder / "joined.npy"
    wording_numbers = array("i")
    with array_file(joined, "<f4", (database.count(), dimensions)) as file:
        for chunk in chunks(database.rows(model), _CHUNK):
            records = [json.loads(row.body) for row in chunk]
            vectors = _vectors_of(chunk, dimensions)
            links = wordings.links(records, vectors)
            for row, data, link in zip(chunk, records, links, strict=True):
                number = len(groups)
                parts = [ancestors_text(data), row.description]
                if link.number is not None:
                    parts += [] if link.is_own else [wordings.texts[link.number]]
                    parts += wordings.phrases[link.number]
                # The prefixes of codes take some 65 µs and 40 bytes a record.
                lexical.add(number, parts, columns.add(number, with_prefixes(data)))
                groups.append(group_numbers.setdefault(_text_key(row), len(group_numbers)))
                parents[row.id] = row.parent_id
                replaced.add(number, link)
                wording_numbers.append(-1 if link.number is None else link.number)
            file.write(wordings.joined(vectors, links).astype("<f4").tobytes())
    lexical.finish()
    columns.save(folder / "columns.npz")
    np.save(folder / "groups.npy", np.array(groups, dtype=np.int32))
    np.save(folder / "heights.npy", np.array(heights(parents), dtype=np.int32))
    np.save(folder / "replaced.npy", replaced.pairs())
    if model is not None:
        numbers = np.array(wording_numbers, np.int32)
        lines, phrases, of_phrases = wordings.phrase_lines(numbers)
        written = chain(_with_parents(joined, parents), [of_phrases] if of_phrases.size else [])
        shape = len(groups) + len(of_phrases), dimensions
        write_vectors(folder, written, shape, lines, phrases)
        np.save(folder / "texts.npy", wordings.phrase_texts(numbers))
    joined.unlink()
    return len(groups)


class _ReplacedRows:
    """Collects rows of the starter set, and rows with the official texts of the same standards."""

    def __init__(self) -> None:
        self._starter = dict[int, int]()
        self._official = defaultdict[int, list[int]](list)

    def add(self, row: int, link: Link) -> None:
        if link.number is not None and link.is_own:
            self._starter[link.number] = row
        elif link.number is not None and link.is_same:
            self._official[link.number].append(row)

    def pairs(self) -> Any:
        """Return pairs of a row of the starter set and an official row, shape (pairs, 2)."""
        pairs = [
            (row, official)
            for number, row in self._starter.items()
            for official in self._official[number]
        ]
        return np.array(pairs, dtype=np.int32).reshape(-1, 2)


def heights(parents: Mapping[str, str | None]) -> list[int]:
    """Return the number of levels of records below each record."""
    found = dict.fromkeys(parents, 0)
    for id_ in parents:
        height, parent, seen = 1, parents[id_], {id_}
        while parent in found and parent not in seen and found[parent] < height:
            found[parent] = height
            seen.add(parent)
            height, parent = height + 1, parents[parent]
    return list(found.values())


def _text_key(row: Row) -> bytes:
    """Return a hash of the text; a million texts themselves would fill the memory."""
    text = comparable(row.description) or row.id
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]


def _vectors_of(rows: Sequence[Row], dimensions: int) -> Vectors:
    data = b"".join(row.vector or bytes(4 * dimensions) for row in rows)
    return np.frombuffer(data, dtype="<f4").reshape(len(rows), dimensions)


def _with_parents(path: Path, parents: Mapping[str, str | None]) -> Iterator[Vectors]:
    """Yield the vectors of a file in chunks, each vector mixed with a share of its parent's."""
    numbers = {id_: row for row, id_ in enumerate(parents)}
    parent_rows = [numbers.get(parent or "", row) for row, parent in enumerate(parents.values())]
    vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    for start in range(0, len(vectors), _CHUNK):
        own = vectors[start : start + _CHUNK]
        parent = vectors[parent_rows[start : start + _CHUNK]]
        yield (1 - _PARENT_SHARE) * own + _PARENT_SHARE * parent


# All were chosen on real queries, see docs/benchmarks.md.
_SAME_CODE_COSINE: Final = 0.45  # below it, an equal code of another framework is another standard
_NEIGHBOUR_COSINE: Final = 0.6  # from here on, the nearest wording has the meaning of a record


class Link(NamedTuple):
    """The text of the starter set that belongs to a record.

    Attributes:
        number: Number of the text; None if the starter set lacks this standard.
        is_own: True if the record is part of the starter set.
        is_same: True if the record is the same standard of the same framework, under another id.
    """

    number: int | None = None
    is_own: bool = False
    is_same: bool = False


class Wordings:
    """The texts and phrases of the starter set, with vectors if *model* is the built-in one."""

    def __init__(self, model: str | None) -> None:
        # From the distribution and not from the catalog, so that `data remove starter` does not
        # change searches.
        wordings = starter_wordings()
        self.texts = [each.text for each in wordings]
        self.phrases = [each.phrases for each in wordings]
        self._jurisdictions = [each.jurisdiction for each in wordings]
        self._by_id = {each.id: number for number, each in enumerate(wordings)}
        self._by_code = {canonical_key(each.notation): n for n, each in enumerate(wordings)}
        self._vectors: Vectors | None = None
        # Other models were not measured, and a service would cost money for each text. Words are
        # joined with every model.
        if model == MINILM_NAME:
            self._vectors = normalised(starter_vectors())
            self._phrase_vectors = normalised(phrase_vectors())

    def links(self, records: Sequence[Mapping[str, Any]], vectors: Vectors) -> list[Link]:
        """Return the link of each record to the starter set, by id or else by code.

        In the framework itself an equal code is enough. In other frameworks the texts must be
        similar, too, because states use codes of the Common Core for their own texts.

        Args:
            vectors: Vectors of the records, shape (records, dimensions).
        """
        return [self._link(*each) for each in zip(records, vectors, strict=True)]

    def joined(self, vectors: Vectors, links: Sequence[Link]) -> Vectors:
        """Return the means of *vectors* and the vectors of the linked wordings.

        A record without a link is joined with its nearest wording, if that is near enough. Records
        of the starter set keep their vectors. Means are not scaled to length 1, so that a record
        counts less if its two texts say different things.
        """
        if self._vectors is None:
            return vectors
        partners = np.array([-1 if link.number is None else link.number for link in links])
        unlinked = np.flatnonzero(partners < 0)
        likeness = vectors[unlinked] @ self._vectors.T
        is_near = likeness.max(axis=1, initial=0) >= _NEIGHBOUR_COSINE
        # Only the vector is joined: words of a mere neighbour made results worse.
        partners[unlinked[is_near]] = likeness[is_near].argmax(axis=1)
        rows = [row for row, link in enumerate(links) if partners[row] >= 0 and not link.is_own]
        found = vectors.copy()
        found[rows] = (vectors[rows] + self._vectors[partners[rows]]) / 2
        return found

    def phrase_lines(self, numbers: Numbers) -> tuple[Numbers, Numbers, Vectors]:
        """Return the arrays `wordings` and `phrases` of `StoredVectors`, and the phrases' vectors.

        Args:
            numbers: The `Link.number` of each record, -1 for None.
        """
        if self._vectors is None:
            nothing = np.full((0, 2), -1, np.int32)
            return np.full(numbers.size, -1, np.int32), nothing, np.zeros((0, 0), np.float32)
        used, lines = np.unique(numbers[numbers >= 0], return_inverse=True)
        counts = np.array([len(each) for each in self.phrases])
        is_used = np.zeros(counts.size, np.bool_)
        is_used[used] = True
        columns = np.arange(int(counts.max()))
        phrases = np.full((used.size, columns.size), -1, np.int32)
        own = columns < counts[used][:, None]
        phrases[own] = numbers.size + np.arange(int(counts[used].sum()))
        wordings = np.full(numbers.size, -1, np.int32)
        wordings[numbers >= 0] = lines
        return wordings, phrases, self._phrase_vectors[np.repeat(is_used, counts)]

    def phrase_texts(self, numbers: Numbers) -> npt.NDArray[np.uint8]:
        """Return the phrases in the order of their vectors, as UTF-8 padded to one length."""
        used: list[int] = np.unique(numbers[numbers >= 0]).tolist()
        texts = [text.encode() for number in used for text in self.phrases[number]]
        width = max(map(len, texts), default=0)
        padded = b"".join(text.ljust(width, b"\0") for text in texts)
        return np.frombuffer(padded, np.uint8).reshape(len(texts), width)

    def _link(self, record: Mapping[str, Any], vector: Vectors) -> Link:
        number = self._by_id.get(record["_id"])
        if number is not None:
            return Link(number, is_own=record.get("text_status") == "paraphrase")
        number = self._by_code.get(canonical_key(record.get("statement_notation") or ""))
        if number is None:
            return Link()
        if _are_one(record["jurisdiction_title"], self._jurisdictions[number]):
            return Link(number, is_same=True)
        if self._vectors is None or vector @ self._vectors[number] < _SAME_CODE_COSINE:
            return Link()
        return Link(number)


@cache  # reading them takes longer than building a small catalog
def open_wordings(model: str | None) -> Wordings:
    """Return the `Wordings` for *model*."""
    return Wordings(model)


_are_one = cache(are_one_jurisdiction)  # thousands of records have the same title
