"""Memory: how many questions find their memory, and titles that find their own.

usage: .venv-memory/bin/python benchmarks/memory_search.py

300 memories and 100 questions, both written for this, in memory_notes.csv and memory_questions.csv.
Three collections have the same memories: one as earlier versions wrote it, whose vectors are those
of contents, one with words in an embedded store, and one with Qdrant's sparse vectors and fusion,
as on a server. No Qdrant server can be installed from a package registry, so the local mode of
qdrant-client stands in for it: its ranking is that of a server, its speed is not.
"""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio

from standards_mcp_memory.database import WORDS, Database
from standards_mcp_memory.encoders import Encoder, Kind
from standards_mcp_memory.records import Collection, Document, Draft, Vectors
from standards_mcp_memory.service import Memory, open_memory
from standards_mcp_memory.settings import MemorySettings
from standards_mcp_memory.words import query_words, word_weights
from standards_mcp_memory.writing import Writer

HERE = Path(__file__).parent
LIMIT = 20
Search = Callable[[str], Awaitable[list[int]]]


class KeptEncoder(Encoder):
    """The built-in encoder; it encodes each memory once."""

    def __init__(self) -> None:
        super().__init__(MemorySettings())
        self._kept: dict[str, Vectors] = {}

    async def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        import numpy as np

        if kind == "query":
            return await super().encode(texts, kind)
        new = [each for each in dict.fromkeys(texts) if each not in self._kept]
        if new:
            self._kept |= dict(zip(new, await super().encode(new, kind), strict=True))
        return np.array([self._kept[each] for each in texts])


def rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


async def fill_sparse(memory: Memory, documents: Sequence[Document]) -> None:
    """Write a collection as on a server, which an embedded store does not have."""
    from qdrant_client import models

    vectors = await memory.encoder.encode([each.text for each in documents], "document")

    def fill(db: Database) -> None:
        db.client.create_collection(
            "server",
            vectors_config=models.VectorParams(size=384, distance=models.Distance.COSINE),
            sparse_vectors_config={WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        db.client.upsert(
            "server",
            points=[
                models.PointStruct(
                    id=each.id,
                    vector={
                        "": row.tolist(),
                        WORDS: models.SparseVector(
                            indices=[*word_weights(each.text)],
                            values=[*word_weights(each.text).values()],
                        ),
                    },
                    payload=dict(each.payload),
                )
                for each, row in zip(documents, vectors, strict=True)
            ],
        )

    await memory.store.run("server", fill)


async def measure(name: str, search: Search, ids: dict[str, int]) -> None:
    ranks: list[int] = []
    for row in rows("memory_questions.csv"):
        found, wanted = await search(row["question"]), ids[row["title"]]
        ranks.append(found.index(wanted) + 1 if wanted in found else LIMIT + 1)
    titles = [(await search(title))[:1] == [identifier] for title, identifier in ids.items()]
    print(
        f"{name}: recall@1 {sum(rank <= 1 for rank in ranks)} %, "
        f"recall@5 {sum(rank <= 5 for rank in ranks)} %, "
        f"recall@20 {sum(rank <= LIMIT for rank in ranks)} %, "
        f"titles first {sum(titles)} of {len(titles)}"
    )


async def measure_time(before: Search, after: Search) -> None:
    """Print how long searches take, one of each in turn."""
    took: tuple[list[float], list[float]] = ([], [])
    for row in rows("memory_questions.csv") * 3:
        for search, times in zip((before, after), took, strict=True):
            began = time.perf_counter()
            await search(row["question"])
            times.append(1000 * (time.perf_counter() - began))
    old, new = map(statistics.median, took)
    print(f"p50 with the encoder: {old:.1f} ms before, {new:.1f} ms now, ratio {new / old:.2f}")


async def main() -> None:
    drafts = [
        Draft(row["title"], row["content"], tags=tuple(row["tags"].split()))
        for row in rows("memory_notes.csv")
    ]
    async with open_memory(MemorySettings(path=":memory:", timeout=60), HERE) as memory:
        memory.encoder = KeptEncoder()
        await compare(memory, drafts)


async def compare(memory: Memory, drafts: Sequence[Draft]) -> None:
    before = Collection("before", 0, await memory.encoder.name(), 384)
    await memory.store.run("before", lambda db: db.create(before))
    writer = Writer(memory)
    for collection in ("before", "words"):
        await writer.write(drafts, collection, lambda _done, _total: None)
    documents = await memory.read_all("words")
    ids = {each.title: each.id for each in documents}
    await fill_sparse(memory, documents)

    def in_collection(collection: str) -> Search:
        async def search(query: str) -> list[int]:
            found, _ = await memory.search(query, collection, LIMIT)
            return [each["id"] for each in found["results"]]

        return search

    async def as_on_a_server(query: str) -> list[int]:
        vector = (await memory.encoder.encode([query], "query"))[0]
        found, _ = await memory.store.run(
            "server", lambda db: db.search_fused("server", vector, query_words(query), LIMIT)
        )
        return [document.id for document, _ in found]

    await measure("contents alone, as before", in_collection("before"), ids)
    await measure("titles, tags and words, embedded", in_collection("words"), ids)
    await measure("titles, tags and words, fused by Qdrant", as_on_a_server, ids)
    await measure_time(in_collection("before"), in_collection("words"))


if __name__ == "__main__":
    anyio.run(main)
