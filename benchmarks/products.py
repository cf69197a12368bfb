"""Product search in 100,000 products, beside Chroma called directly.

usage: .venv-products/bin/python benchmarks/products.py [--products 100000] [--calls 100]
       [--encoded 5000]

The products are made of words; the vectors are those of a few thousand different ones with a
little noise, since encoding is measured by itself. The server is a real process over stdio. The
peer is `collection.query` in this process, in the same collection, with the same encoder and the
same number of results asked for. Each question is a new one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from calls import Client

from standards_mcp_encoders import open_encoder
from standards_mcp_products.building import build
from standards_mcp_products.columns import read_mapping
from standards_mcp_products.filters import read_filters
from standards_mcp_products.settings import ProductsSettings
from standards_mcp_products.store import Catalogue, Store

THINGS = ("lamp", "kettle", "tent", "soap", "blanket", "drill", "notebook", "shampoo", "bottle")
THINGS += (
    "chair",
    "speaker",
    "pan",
    "rope",
    "pillow",
    "brush",
    "charger",
    "mug",
    "jacket",
    "candle",
)
KINDS = ("small", "large", "folding", "steel", "wooden", "organic", "waterproof", "quiet", "bright")
KINDS += ("soft", "heavy", "light", "cordless", "scented", "striped", "cheap", "sturdy", "compact")
USES = (
    "for camping in the rain",
    "for a kitchen with little room",
    "for children from three years",
    "for sensitive skin",
    "for the garden",
    "as a present",
    "for long journeys",
    "to keep things dry",
    "to clean without chemicals",
)
QUESTIONS = (
    "something {kind} {use}",
    "a {kind} {thing}",
    "{thing} {use}",
    "which {thing} is {kind}",
)
FILTERS: Mapping[str, dict[str, Any] | None] = {
    "no filter": None,
    "a filter of 1 %": {"brand": "Brand 7"},
    "a filter of 50 %": {"price": {"$lt": 50}},
}
ASKED = 40
MEGABYTE = 1024


class Given:
    """Gives vectors that were made before, in the order of the products."""

    def __init__(self, name: str, vectors: np.ndarray[Any, Any]) -> None:
        self.name, self._vectors, self._done = name, vectors, 0

    def encode(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        self._done += len(texts)
        return self._vectors[self._done - len(texts) : self._done]


def words(chance: random.Random) -> dict[str, str]:
    return {
        "thing": chance.choice(THINGS),
        "kind": chance.choice(KINDS),
        "use": chance.choice(USES),
    }


def product(number: int, chance: random.Random) -> dict[str, Any]:
    one, two = words(chance), words(chance)
    name = f"{one['kind']} {two['kind']} {one['thing']} {number}, {chance.randint(1, 64)} oz"
    about = f"A {two['kind']} {one['thing']} {one['use']}, also {two['use']}. "
    about += f"Goes with any {two['thing']}. "
    about += f"Goes with any {two['thing']}. "
    return {
        "Uniq Id": f"p{number}",
        "Product Name": name,
        "About Product": about * 3,
        "Category": f"Home | {one['thing']}",
        "Brand Name": f"Brand {number % 100}",
        "Selling Price": round((number * 7919 % 10_000) / 100 + 0.01, 2),
        "Rating": number % 50 / 10,
        "Ingredients": "water, salt",
    }


def text_of(row: Mapping[str, Any]) -> str:
    return " ".join(f"{row['Product Name']} {row['About Product']} {row['Category']}".split())


def vectors_of(rows: Sequence[Mapping[str, Any]], encoded: int, encoder: Any) -> Any:
    """Return vectors of all rows, made of those of the first ones, and say how fast those were."""
    began = time.perf_counter()
    known = encoder.encode([text_of(each) for each in rows[:encoded]])
    seconds = time.perf_counter() - began
    print(f"the encoder              {encoded / seconds:7.0f} products a second", flush=True)
    noise = np.random.default_rng(1)
    vectors = known[noise.integers(0, len(known), len(rows))]
    vectors = vectors + noise.normal(scale=0.02, size=vectors.shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)


def question(chance: random.Random) -> str:
    return chance.choice(QUESTIONS).format(**words(chance)) + f" {chance.randint(0, 9999)}"


def timed(calls: int, call: Callable[[str], object]) -> list[float]:
    """Return the milliseconds of each of so many different questions, after a few to warm up."""
    chance, times = random.Random(11), list[float]()  # noqa: S311  # noqa: S311
    for number in range(calls + 5):
        asked = question(chance)
        began = time.perf_counter()
        call(asked)
        if number >= 5:
            times.append((time.perf_counter() - began) * 1000)
    return times


def shown(times: Sequence[float]) -> str:
    p95 = statistics.quantiles(times, n=20)[18]
    return f"p50 {statistics.median(times):6.1f} ms, p95 {p95:6.1f} ms"


def ask_directly(catalogue: Catalogue, encoder: Any, calls: int) -> None:
    with closing(Store(catalogue)) as store:
        for name, filters in FILTERS.items():
            where = read_filters(filters).where

            def query(asked: str, where: Any = where) -> None:
                vector = encoder.encode([asked])[0].tolist()
                found = store.ask(
                    lambda all_: all_.query(query_embeddings=[vector], n_results=ASKED, where=where)
                )
                assert len(found["ids"][0]) >= min(ASKED, 25)

            print(f"Chroma, {name:16} {shown(timed(calls, query))}", flush=True)


def ask_server(config: Path, calls: int) -> None:
    command = [sys.executable, "-m", "standards_mcp", "--config", str(config)]
    server = Client(command, dict(os.environ))

    def search(asked: str, filters: Any) -> None:
        arguments = {"query": asked} | ({"filters": filters} if filters else {})
        params = {"name": "rag_search", "arguments": arguments}
        server.send({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": params})
        answer = server.answer()["result"]
        assert len(answer["structuredContent"]["results"]) == 5, answer

    began = time.perf_counter()
    search("the first question", None)
    print(f"the first answer         {time.perf_counter() - began:7.1f} s", flush=True)
    for name, filters in FILTERS.items():
        times = timed(calls, lambda asked, filters=filters: search(asked, filters))
        print(f"the server, {name:12} {shown(times)}", flush=True)
    status = Path(f"/proc/{server.process.pid}/status").read_text("utf-8").splitlines()
    for key, means in (("VmRSS", "now"), ("VmHWM", "at most")):
        kilobytes = next(int(each.split()[1]) for each in status if each.startswith(key))
        print(f"memory of the server     {kilobytes / MEGABYTE:7.0f} MiB {means}", flush=True)
    server.close()


def measure(folder: Path, count: int, encoded: int, calls: int) -> None:
    chance = random.Random(5)  # noqa: S311
    rows = [product(number, chance) for number in range(count)]
    encoder = open_encoder("minilm")
    vectors = vectors_of(rows, min(encoded, count), encoder)
    file = folder / "products.jsonl"
    with file.open("w", encoding="utf-8") as opened:
        opened.writelines(json.dumps(each) + "\n" for each in rows)
    del rows
    catalogue = Catalogue(ProductsSettings(), folder / "state" / "plugins" / "products")
    for about in ("all new", "all unchanged"):
        began = time.perf_counter()
        report = build(catalogue, file, read_mapping(None), Given(encoder.name, vectors))
        assert report["read"] == count
        print(f"building, {about:14} {time.perf_counter() - began:7.1f} s", flush=True)
    place = catalogue.store_key
    size = sum(each.stat().st_size for each in Path(place).rglob("*") if each.is_file())
    print(f"on the disk              {size / 1e6:7.0f} MB", flush=True)
    del vectors
    config = folder / "config.toml"
    config.write_text(f'state_dir = "{folder}/state"\n', "utf-8")
    ask_directly(catalogue, encoder, calls)
    ask_server(config, calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--encoded", type=int, default=5000)
    parser.add_argument("--calls", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), given.products, given.encoded, given.calls)


if __name__ == "__main__":
    main()
