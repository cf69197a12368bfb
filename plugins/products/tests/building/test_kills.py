"""Builds that are killed: searches find the old products or the new ones, all of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.waiting import WAIT

from standards_mcp_products.filters import read_filters
from standards_mcp_products.search import search
from standards_mcp_products.settings import ProductsSettings
from standards_mcp_products.store import Catalogue, Store

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("KILLS", "8"))
COUNT = 200
BUILDER = """
import os, sys, json
from pathlib import Path
import chromadb
import numpy as np
from standards_mcp_products.building import build
from standards_mcp_products.columns import read_mapping
from standards_mcp_products.settings import ProductsSettings
from standards_mcp_products.store import Catalogue, Store

class Encoder:
    name = "stub"

    def encode(self, texts):
        return np.random.default_rng(1).normal(size=(len(texts), 8)).astype("float32")

def builds():
    state, file = Path(sys.argv[1]), Path(sys.argv[2])
    number = os.getpid() * 1000
    while True:
        row = {"Product Name": f"v{number}", "List Price": 5}
        rows = ({"Uniq Id": str(each), **row} for each in range(COUNT))
        file.write_text("".join(json.dumps(each) + "\\n" for each in rows))
        build(Catalogue(ProductsSettings(), state), file, read_mapping(None), Encoder())
        os.write(1, b"built\\n")
        number += 1

# Importing takes a second, so children that inherit it do the work.
for _ in sys.stdin:
    if (child := os.fork()) == 0:
        builds()
    os.write(1, f"{child}\\n".encode())
    os.waitpid(child, 0)
    os.write(1, b"ended\\n")
"""


@pytest.fixture
def nursery(state: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that starts a builder for each line that it reads."""
    program = BUILDER.replace("COUNT", str(COUNT))
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(state), str(tmp_path / "products.jsonl")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    assert process.stdin
    assert process.stdout
    process.stdin.close()
    process.wait(WAIT)
    process.stdout.close()


def titles(state: Path) -> list[Any]:
    with closing(Store(Catalogue(ProductsSettings(), state))) as store:
        found = store.ask(lambda all_: all_.get(include=["metadatas"]))
        near = store.ask(lambda all_: all_.query(query_embeddings=[[1.0] * 8], n_results=COUNT))
    assert len(near["ids"][0]) > COUNT // 2, "the index is there"
    return [fields["title"] for fields in found["metadatas"] or ()]


def test_a_build_that_is_killed_leaves_all_of_one_build(
    nursery: subprocess.Popen[str], state: Path
):
    chance = random.Random(2)  # noqa: S311
    assert nursery.stdin
    assert nursery.stdout
    seen, longest = set[str](), 0.0
    for number in range(KILLS):
        print("build", file=nursery.stdin, flush=True)
        child = int(nursery.stdout.readline())
        if number % 2 == 0:  # so that there are several builds, however slow the machine is
            began = time.monotonic()
            assert nursery.stdout.readline() == "built\n"
            longest = time.monotonic() - began
        time.sleep(chance.random() * longest)
        os.kill(child, signal.SIGKILL)
        while nursery.stdout.readline() != "ended\n":
            pass
        found = titles(state)
        assert len(found) == COUNT
        assert len(set(found)) == 1, "products of one build only"
        seen |= set(found)
    assert len(seen) > 1


def test_searches_are_answered_while_builds_run(nursery: subprocess.Popen[str], state: Path):
    assert nursery.stdin
    assert nursery.stdout
    print("build", file=nursery.stdin, flush=True)
    child = int(nursery.stdout.readline())
    assert nursery.stdout.readline() == "built\n"
    seen, deadline = set[Any](), time.monotonic() + WAIT
    with closing(Store(Catalogue(ProductsSettings(), state))) as store:
        try:
            while len(seen) < 4:
                assert time.monotonic() < deadline
                names = store.ask(_near)
                assert len(names) == 1
                seen |= names
                for filters in ({"price": {"$gt": 0}}, {"title": {"$ne": "x"}}):
                    conditions = read_filters(filters)
                    found = search(store, "stub", [1.0] * 8, conditions, 5)
                    assert len(found["results"]) == 5, "a build that removes products is not seen"
        finally:
            os.kill(child, signal.SIGKILL)
            while nursery.stdout.readline() != "ended\n":
                pass


def _near(collection: Any) -> set[Any]:
    found = collection.query(query_embeddings=[[1.0] * 8], n_results=5, include=["metadatas"])
    return {fields["title"] for fields in found["metadatas"][0]}
