"""Memories are found by titles and words, in an embedded store and on a server."""

from __future__ import annotations

import json
import stat
import sys
import unicodedata
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from qdrant_client import QdrantClient, models

from standards_mcp.files import private_folder
from standards_mcp_memory.records import Document
from standards_mcp_memory.words import WordIndex, fuse_scores, query_words, word_weights

Run = Callable[..., Any]
OpenMemory = Callable[..., AbstractAsyncContextManager[Client]]


def share(one: str, other: str) -> bool:
    return bool(word_weights(one).keys() & set(query_words(other)))


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("get_or_create is not atomic", "create"),
        ("maxPollInterval", "max poll"),
        ("HTTPServer", "server"),
        ("IPv6 first", "ipv6"),
        ("Use C++ here", "C++"),
        ("Straße", "STRASSE"),
        ("naïve", "naive"),
        ("ёлка", "елка"),
        ("全角数字の入力", "数字"),
        ("身份证号码校验", "号码"),
        ("ภาษาไทย", "ไทย"),
        ("데이터베이스", "데이터"),
        ("हिन्दी में", "हिन्दी"),
        ("العربية", "العربية"),
        ("#retry", "retry"),
    ],
)
def test_words_of_any_script_and_parts_of_identifiers_match(stored: str, asked: str):
    assert share(stored, asked)


@pytest.mark.parametrize(("stored", "asked"), [("C++", "C#"), ("cat", "car"), ("!?", "!?")])
def test_other_words_do_not_match(stored: str, asked: str):
    assert not share(stored, asked)


def test_the_number_of_a_word_never_changes():
    # Stored in the sparse vectors of servers: another hash would find none of them.
    assert query_words("retry") == [1387884052]


@given(st.text(max_size=200))
def test_a_text_has_all_words_of_itself_in_any_normal_form(text: str):
    weights = word_weights(text)
    assert sorted(weights) == query_words(text)
    assert all(0 <= number < 2**32 and weight > 0 for number, weight in weights.items())
    assert word_weights(unicodedata.normalize("NFD", text)).keys() == weights.keys()


def memory(identifier: int, title: str, content: str = "") -> Document:
    return Document(identifier, {"title": title, "content": content})


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from(["bees hum", "oaks", "bees", ""])), max_size=20
    ),
    st.integers(0, 10),
)
def test_an_index_that_was_changed_scores_like_a_new_one(
    changes: list[tuple[int, str]], at_first: int
):
    stored: dict[int, Document] = {}
    for identifier, title in changes[:at_first]:
        stored[identifier] = memory(identifier, title)
    changed = WordIndex(stored[identifier] for identifier in sorted(stored))
    for identifier, title in changes[at_first:]:
        if title:
            stored[identifier] = memory(identifier, title)
        else:
            stored.pop(identifier, None)
        changed.change({identifier: stored.get(identifier)})
    new = WordIndex(stored[identifier] for identifier in sorted(stored))
    words = query_words("bees hum")
    expected = new.scores(words, 20, [1, 5, 77])
    assert changed.scores(words, 20, [1, 5, 77]) == pytest.approx(expected, rel=1e-2, abs=1e-3)


def test_a_query_that_fits_nothing_has_low_scores():
    assert max(fuse_scores({1: 0.1, 2: 0.05}, {1: 3.0, 2: 0.0}).values()) == pytest.approx(0.1)
    assert fuse_scores({1: 0.4, 2: 0.6}, {1: 0.0, 2: 0.0}) == {1: 0.4, 2: 0.6}
    assert fuse_scores({1: -0.4}, {1: 2.0}) == {1: -0.4}


async def told(client: Client, tool: str, /, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


TITLES = ("ERR_OSSL_EVP_UNSUPPORTED", "Umlaute in Dateinamen", "全角数字の入力", "CRLF broke it")


@pytest.mark.anyio
async def test_each_memory_is_the_first_for_its_own_title(
    open_memory: OpenMemory, where: dict[str, Any]
):
    async with open_memory(**where) as client:
        for title in TITLES:
            new = {"collection": "api", "title": title, "content": "The same text for all."}
            await told(client, "memory_store", **new)
        for title in TITLES:
            found = await told(client, "memory_search", collection="api", query=title)
            assert found["results"][0]["title"] == title
            assert all(each["score"] == round(each["score"], 3) for each in found["results"])
        await told(client, "memory_update", doc_id=1, collection="api", title="Zebra crossing")
        found = await told(client, "memory_search", collection="api", query="zebra")
        assert found["results"][0]["id"] == 1, "changes are found at once"
        await told(client, "memory_delete", doc_id=1, collection="api")
        found = await told(client, "memory_search", collection="api", query="zebra")
        assert 1 not in [each["id"] for each in found["results"]]


@pytest.mark.anyio
async def test_tags_and_previews_are_found(open_memory: OpenMemory, where: dict[str, Any]):
    async with open_memory(**where) as client:
        for number, more in enumerate(({"tags": ["zeppelin"]}, {"preview": "A walrus."}, {})):
            new = {"collection": "api", "title": f"t{number}", "content": "Same."}
            await told(client, "memory_store", **new, **more)
        for query, wanted in (("zeppelin", "t0"), ("walrus", "t1")):
            found = await told(client, "memory_search", collection="api", query=query)
            assert found["results"][0]["title"] == wanted


@pytest.mark.anyio
async def test_a_server_fuses_by_itself_in_one_request(open_memory: OpenMemory, qdrant: Any):
    async with open_memory(url=qdrant.url) as client:
        new = {"collection": "api", "title": "Bees", "content": "Hum."}
        await told(client, "memory_store", **new)
        (made,) = [
            body for method, _, body in qdrant.asked if method == "PUT" and "vectors" in body
        ]
        assert made["sparse_vectors"] == {"words": {"modifier": "idf"}}
        qdrant.asked.clear()
        await told(client, "memory_search", collection="api", query="bees hum")
        (asked,) = [body for _, path, body in qdrant.asked if path.endswith("/points/query")]
    # The client's models are made from Qdrant's OpenAPI description and refuse other keys.
    query = models.QueryRequest(**asked)
    assert query.query == models.FusionQuery(fusion=models.Fusion.RRF)
    assert isinstance(query.prefetch, list)
    dense, sparse = query.prefetch
    assert (dense.using, sparse.using) == (None, "words")
    assert isinstance(sparse.query, models.SparseVector)
    assert sparse.query.indices == query_words("bees hum")


@pytest.fixture
def old(qdrant: Any, fast: dict[str, str]) -> Callable[[dict[str, Any]], None]:
    """Return a function that makes a collection as earlier versions did."""

    def make(where: dict[str, Any]) -> None:
        client = QdrantClient(path=where["path"]) if "path" in where else qdrant.store
        size = models.VectorParams(size=16, distance=models.Distance.COSINE)
        client.create_collection(
            "api", vectors_config=size, metadata={"standards_mcp_model": model_of(fast)}
        )
        points = [
            models.PointStruct(
                id=number,
                vector=[float(number)] * 16,
                payload={"title": title, "content": "Text.", "preview": "Text."},
            )
            for number, title in enumerate(TITLES, 1)
        ]
        client.upsert("api", points=points)
        if "path" in where:
            client.close()

    return make


def model_of(fast: dict[str, str]) -> str:
    return fast["model"]


@pytest.mark.parametrize("kind", ["path", "url"])
def test_an_old_collection_is_searched_as_before_until_it_is_reembedded(
    run: Run, tmp_path: Path, qdrant: Any, old: Any, kind: str
):
    where = {"path": str(tmp_path / "memories")} if kind == "path" else {"url": qdrant.url}
    old(where)
    search = ("search", "api", TITLES[3], "--json")
    before = run(*search, **where)
    assert "Run `standards-mcp memory reembed` for it" in before.stderr
    assert [each["id"] for each in json.loads(before.stdout)["results"]] == [1, 2, 3, 4]
    (tmp_path / "new.jsonl").write_text('{"title": "New", "content": "Added."}\n')
    run("import", "new.jsonl", "--collection", "api", **where)
    assert "memory reembed" in run(*search, **where).stderr, "it is still an old one"
    assert "5 memories of api have vectors of" in run("reembed", "api", **where).stdout
    after = run(*search, **where)
    assert after.stderr == ""
    assert json.loads(after.stdout)["results"][0]["id"] == 4


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_only_the_owner_reads_a_store_also_one_that_was_open_to_all(run: Run, tmp_path: Path):
    (tmp_path / "a.md").write_text("Text.")
    run("import", "a.md", "--collection", "c")
    store = tmp_path / "memories"

    def modes() -> dict[str, set[int]]:
        found: dict[str, set[int]] = {"file": set(), "folder": set()}
        for each in (store, *store.rglob("*")):
            kind = "folder" if each.is_dir() else "file"
            found[kind].add(stat.S_IMODE(each.stat().st_mode))
        return found

    assert list(store.rglob("storage.sqlite"))
    assert modes() == {"file": {0o600}, "folder": {0o700}}
    for each in (store, *store.rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)
    run("search", "c", "text")
    assert modes() == {"file": {0o600}, "folder": {0o700}}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_the_missing_parents_of_a_store_are_for_the_owner_only(tmp_path: Path):
    private_folder(tmp_path / "plugins" / "memory" / "qdrant")
    for folder in ("plugins", "plugins/memory", "plugins/memory/qdrant"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
