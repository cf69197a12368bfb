"""Any number of records out of a corpus, without embedding anything.

Copy 0 is the corpus itself. In each further copy the first half of a record's description is
joined with the second half of that of another record of its subject, and its vector is the
normalised sum of the real vectors of both. Trees, codes, grades and subjects are those of the
corpus; ids and sets are told apart by the number of the copy.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_encoders.encoders import open_encoder


class Recombined:
    """The records of *corpus* (JSONL) and what is made of them.

    Args:
        index: A catalog of the corpus, from which the vectors are taken; made when it is missing.
    """

    def __init__(self, corpus: Path, index: Path) -> None:
        self._records = lines(corpus)
        self._rows = {record["_id"]: row for row, record in enumerate(self._records)}
        self.model, self._vectors = _vectors(self._records, index)
        self._partners: tuple[int, list[int]] = 0, list(range(len(self._records)))

    def texts(self, count: int) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
        """Yield the description and the vector of each of *count* records."""
        for copy, row in self._places(count):
            vector = self._vectors[row] + self._vectors[self._partner(copy, row)]
            yield self._description(copy, row), vector

    def records(self, count: int) -> Iterator[StandardRecord]:
        """Yield *count* records."""
        for copy, row in self._places(count):
            yield StandardRecord.from_dict(self._record(copy, row))

    def _places(self, count: int) -> Iterator[tuple[int, int]]:
        return (divmod(number, len(self._records)) for number in range(count))

    def _record(self, copy: int, row: int) -> dict[str, Any]:
        record = dict(self._records[row])
        path = [self._rows[id_] for id_ in record["ancestor_ids"] if id_ in self._rows] + [row]
        record["content"] = "\n".join(self._line(copy, each) for each in path)
        record["description"] = self._description(copy, row)
        if not copy:
            return record
        record.pop("text_group", None)  # equal texts of the corpus have become different
        for name in ("_id", "parent_id", "root_id"):
            if record.get(name) is not None:
                record[name] = _copied(record[name], copy)
        for name in ("ancestor_ids", "child_ids"):
            record[name] = [_copied(id_, copy) for id_ in record[name]]
        for name in ("standard_set_id", "standard_set_title", "jurisdiction_title"):
            record[name] = f"{record[name]} ({copy})"
        return record

    def _line(self, copy: int, row: int) -> str:
        record = self._records[row]
        notation = record.get("statement_notation")
        label = f" ({notation})" if notation else ""
        return f"Depth {record['depth']}{label}: {self._description(copy, row)}"

    def _description(self, copy: int, row: int) -> str:
        own: str = self._records[row]["description"]
        if not copy:
            return own
        first, second = own.split(), self._records[self._partner(copy, row)]["description"].split()
        return " ".join(first[: -(-len(first) // 2)] + second[len(second) // 2 :])

    def _partner(self, copy: int, row: int) -> int:
        if self._partners[0] != copy:
            random, partners = np.random.default_rng(copy), list(range(len(self._records)))
            subjects = np.array([record["subject"] for record in self._records])
            for subject in np.unique(subjects):
                rows = np.flatnonzero(subjects == subject)
                for one, other in zip(rows, random.permutation(rows), strict=True):
                    partners[int(one)] = int(other)
            self._partners = copy, partners
        return self._partners[1][row] if copy else row


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file, which may be gzipped."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _vectors(records: list[Any], index: Path) -> tuple[str, npt.NDArray[np.float32]]:
    if not (index / "catalog.sqlite3").exists():
        catalog = LocalCatalog(index)
        catalog.store.upsert(map(StandardRecord.from_dict, records))
        catalog.store.close()
    model = open_encoder("minilm").name
    with closing(Database(index / "catalog.sqlite3")) as database:
        known = {row.id: np.frombuffer(row.vector or b"", "<f4") for row in database.rows(model)}
    return model, np.stack([known[record["_id"]] for record in records])


def _copied(id_: str, copy: int) -> str:
    return hashlib.md5(f"{copy} {id_}".encode(), usedforsecurity=False).hexdigest().upper()
