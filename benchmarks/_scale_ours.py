"""Our own store for `scale`: built from recombined records, searched, and left for the peers."""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from _scale_common import FIELDS, FILTERS, TOP, Filter, load, megabytes, memory, peak, rounds, save
from _scale_records import Recombined, lines

from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.local.index.columns import Selection, select
from standards_mcp_catalog.local.index.engine import hits_of, save_vectors
from standards_mcp_catalog.local.index.generation import Generation
from standards_mcp_catalog.local.index.manifest import current_folder
from standards_mcp_catalog.local.index.ranking import Ranker
from standards_mcp_catalog.local.index.vectors import Nearness, StoredVectors
from standards_mcp_catalog.local.sqlite import create_database
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.records import passages, text_hash
from standards_mcp_encoders.encoders import open_encoder

_BATCH = 20_000


def build(folder: Path, records: int, corpus: Path, index: Path) -> None:
    """Put the vectors of the texts into a store, then the records, through its own doors."""
    source, path = Recombined(corpus, index), folder / "store"
    facts: dict[str, Any] = {"corpus peak": peak()}
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    create_database(path / "catalog.sqlite3")
    start = time.perf_counter()
    with closing(Database(path / "catalog.sqlite3")) as database:
        texts = source.texts(records)
        while batch := list(islice(texts, _BATCH)):
            hashes = [text_hash(text) for text, _ in batch]
            save_vectors(database, source.model, hashes, np.stack([vector for _, vector in batch]))
    facts["vectors"] = time.perf_counter() - start
    start = time.perf_counter()
    written: list[float] = []
    store = LocalStore(path)
    store.write(_then(source.records(records), written), (), _refuse_to_embed)
    store.close()
    facts["records"], facts["index"] = written[0] - start, time.perf_counter() - written[0]
    facts["build"], facts["build peak"] = time.perf_counter() - start, peak()
    facts["disk"] = megabytes(path / "index")
    facts["database disk"] = megabytes(path / "catalog.sqlite3")
    save(folder / "ours.built.json", facts)


def ask(folder: Path, queries: list[str], count: int, seconds: float) -> None:
    """Measure search, whole and in parts."""
    facts: dict[str, Any] = {}
    before, start = memory("VmRSS"), time.perf_counter()
    served = Generation(current_folder(folder / "store" / "index"))
    facts["open"] = (time.perf_counter() - start) * 1000
    facts["open memory"] = memory("VmRSS") - before
    store, start = LocalStore(folder / "store"), time.perf_counter()
    store.search(queries[0], TOP)
    facts["first"] = (time.perf_counter() - start) * 1000
    start = time.perf_counter()
    store.facets()
    facts["facets"] = (time.perf_counter() - start) * 1000
    start = time.perf_counter()
    list(store.records(FILTERS["one set"]["standard_set_id"]))
    facts["one set"] = (time.perf_counter() - start) * 1000
    whole = {
        name: rounds(lambda text, w=wanted: store.search(text, TOP, _expression(w)), queries, count,
                     seconds)
        for name, wanted in FILTERS.items()
    }  # fmt: skip
    facts["private"], facts["peak"] = memory(), peak()
    parts = Parts(served, store.database, queries)
    facts["times"] = {"whole search": whole} | {
        part: {
            name: rounds(lambda text, c=call, w=wanted: c(text, _expression(w)), queries, count,
                         seconds)
            for name, wanted in FILTERS.items()
        }
        for part, call in parts.calls().items()
    }  # fmt: skip
    facts["encoder"] = rounds(parts.encode, queries, count, seconds)
    facts["selected"] = {name: parts.selected(wanted) for name, wanted in FILTERS.items()}
    facts["found"] = {
        name: [parts.dense(text, _expression(wanted)) for text in queries[:20]]
        for name, wanted in FILTERS.items()
    }
    store.close()
    save(folder / "ours.asked.json", facts)
    _leave(folder, served, parts)


class Parts:
    """The steps of a search, one query at a time."""

    def __init__(self, served: Generation, database: Any, texts: list[str]) -> None:
        self._served, self._database = served, database
        self.plain = _without_phrases(served)
        encoder = open_encoder("minilm")
        self.encode: Callable[[str], Any] = lambda text: encoder.encode(passages(text))
        self.known = {text: self.encode(text) for text in texts}

    def calls(self) -> dict[str, Callable[[str, Any], object]]:
        """Return the steps by name."""
        return {
            "whole, vector given": self._whole,
            "vectors alone": self.dense,
            "words alone": self._words,
        }

    def selected(self, wanted: Filter) -> int:
        """Return how many rows a filter lets through."""
        mask = self._select(_expression(wanted)).mask
        return self._served.manifest.records if mask is None else int(mask.sum())

    def dense(self, text: str, expression: Any) -> list[int]:
        """Return what the peers are asked for: the rows nearest to one vector."""
        mask = self._select(expression).mask
        near = Nearness(self.plain, self.known[text][:1], mask).best(TOP)
        ids = self._served.ids()
        assert all(ids[row] for row in near.rows)
        return [int(row) for row in near.rows]

    def _words(self, text: str, expression: Any) -> object:
        return Ranker(self._served, self._select(expression), text=text, vectors=None).best(TOP)

    def _whole(self, text: str, expression: Any) -> object:
        selection, vectors = self._select(expression), self.known[text]
        matches = Ranker(self._served, selection, text=text, vectors=vectors).best(TOP)
        return list(hits_of(self._database, self._served, matches))

    def _select(self, expression: Any) -> Selection:
        served = self._served
        return select(expression, served.columns, served.lexical, served.manifest.records)


def _without_phrases(served: Generation) -> StoredVectors:
    """Return the vectors of the records alone, which the peers have as well."""
    records, stored = served.manifest.records, served.vectors
    assert stored is not None
    return stored._replace(
        exact=stored.exact[:records], rough=stored.rough[:records], scales=stored.scales[:records],
        wordings=np.full(records, -1, np.int32),
    )  # fmt: skip


def _leave(folder: Path, served: Generation, parts: Parts) -> None:
    """Leave for the peers the vectors, the fields, and one vector for each query."""
    np.save(folder / "queries.npy", np.stack([known[0] for known in parts.known.values()]))
    fields: dict[str, Any] = {}
    for name in FIELDS:
        column = served.columns.get(name)
        assert column is not None
        fields[name] = [[] for _ in range(served.manifest.records)]
        values = np.repeat(np.arange(len(column.values)), np.diff(column.starts))
        for row, code in zip(column.rows.tolist(), values.tolist(), strict=True):
            fields[name][row].append(column.values[code])
        if name != "education_levels":
            fields[name] = [values[0] for values in fields[name]]
    save(folder / "fields.json", fields)
    path = folder / f"{served.folder.name}.npy"
    np.save(path, parts.plain.exact)
    save(folder / "shared.json", {"vectors": str(path.absolute())})


def recall(folder: Path, found: dict[str, list[list[int]]]) -> dict[str, float]:
    """Return for each filter the share of the exact 10 best among the first 10 found.

    Rows of equal cosine stand for each other.
    """
    vectors = np.load(load(folder / "shared.json")["vectors"], mmap_mode="r")
    queries, fields = np.load(folder / "queries.npy"), load(folder / "fields.json")
    shares: dict[str, float] = {}
    for name, answers in found.items():
        allowed = _allowed(fields, FILTERS[name], len(vectors))
        good = 0
        for query, rows in zip(queries, answers, strict=False):
            exact = (vectors @ query)[allowed]
            bound = np.partition(exact, -10)[-10] - 1e-5
            good += int(((vectors[rows[:10]] @ query >= bound) & allowed[rows[:10]]).sum())
        shares[name] = good / (10 * len(answers))
    return shares


def _allowed(fields: dict[str, list[Any]], wanted: Filter, rows: int) -> Any:
    mask = np.ones(rows, dtype=np.bool_)
    for name, values in wanted.items():
        listed = ([each] if isinstance(each, str) else each for each in fields[name])
        mask &= np.fromiter((not set(values).isdisjoint(each) for each in listed), np.bool_, rows)
    return mask


def _expression(wanted: Filter) -> dict[str, Any] | None:
    return {name: {"$in": list(values)} for name, values in wanted.items()} or None


def _then(items: Iterator[Any], ended: list[float]) -> Iterator[Any]:
    yield from items
    ended.append(time.perf_counter())


def _refuse_to_embed(done: int, total: int) -> NoReturn:
    raise AssertionError(f"{done} of {total} texts had no vector")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Our own part of `scale`.")
    parser.add_argument("task", choices=["build", "ask"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    given = parser.parse_args()
    if given.task == "build":
        build(given.folder, given.records, given.corpus, given.index)
    else:
        texts = [line["text"] for line in lines(given.queries)]
        texts = texts[:: max(1, len(texts) // given.limit)][: given.limit]
        ask(given.folder, texts, given.rounds, given.minutes * 60)
