"""Searches through a client: what is found, in which order, and what is not known."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings as ChromaSettings
from mcp import Client
from support.marks import untrusted_tools

from standards_mcp import ApiError
from standards_mcp.loading.health import check_health
from standards_mcp.testing import check_plugin
from standards_mcp_products.plugin import ProductsPlugin
from standards_mcp_products.settings import ProductsSettings
from standards_mcp_products.store import Active, Catalogue, Store

pytestmark = pytest.mark.anyio
Build = MakeHost = OpenProducts = Callable[..., Any]
Row = dict[str, Any]


async def search(client: Client, query: str = "a lamp", **more: Any) -> Any:
    answer = await client.call_tool("rag.search", {"query": query, **more})
    assert not answer.is_error, answer.structured_content
    return answer.structured_content


async def refusal(client: Client, query: str = "a lamp", **more: Any) -> Any:
    answer = await client.call_tool("rag.search", {"query": query, **more})
    assert answer.is_error
    found = answer.structured_content
    assert found is not None
    return found["error_type"], found["message"]


async def ids(client: Client, query: str = "a lamp", **more: Any) -> list[str]:
    return [each["doc_id"] for each in (await search(client, query, **more))["results"]]


def foreign(path: Path, *, space: str = "cosine", name: str = "amazon2020") -> Any:
    """Return a collection that another program has made."""
    settings = ChromaSettings(anonymized_telemetry=False, _env_file=None)  # type: ignore[arg-type]
    client = chromadb.PersistentClient(str(path), settings=settings)
    return client.create_collection(
        name, embedding_function=None, configuration={"hnsw": {"space": space}}
    )


async def test_the_nearest_products_are_found_with_what_is_known_of_them(
    shop: Path, open_products: OpenProducts
):
    async with open_products(shop) as client:
        before = time.time()
        found = await search(client, " light for reading ")
        assert await ids(client, "something to wash with", top_k=1) == ["soap"]
    assert found["tool"] == "rag.search"
    assert before <= found["timestamp"] <= time.time()
    assert found["results"][0] == {
        "doc_id": "lamp",
        "sku": "lamp",
        "title": "A desk lamp It shines on paper. Office",
        "price": 12.5,
        "rating": 4.5,
        "brand": "Glow",
        "ingredients": "",
    }
    tent = next(each for each in found["results"] if each["doc_id"] == "tent")
    assert tent["price"] is tent["rating"] is None, "not known is never 0"
    assert tent["brand"] == tent["ingredients"] == ""
    assert len(found["results"]) == 3


async def test_the_tool_warns_of_the_texts_of_products(open_products: OpenProducts):
    async with open_products() as client:
        assert await untrusted_tools(client) == {"rag_search"}


async def test_a_title_is_the_beginning_of_the_text(
    lamp: Row, make: Build, open_products: OpenProducts
):
    make({**lamp, "About Product": "long " * 100})
    async with open_products() as client:
        (found,) = (await search(client))["results"]
    assert len(found["title"]) == 220


async def test_equally_near_products_come_by_their_ids(
    lamp: Row, soap: Row, make: Build, open_products: OpenProducts
):
    names = [f"lamp-{number:02}" for number in (7, 3, 30, 1, 22, 15, 9)]
    make(*({**lamp, "Uniq Id": each} for each in names), soap)
    async with open_products() as client:
        assert await ids(client, top_k=8) == [*sorted(names), "soap"]
        assert await ids(client, top_k=3) == sorted(names)[:3]


async def test_arguments_that_do_not_fit_are_refused(shop: Path, open_products: OpenProducts):
    async with open_products(shop) as client:
        wrong: list[dict[str, Any]] = [
            {"query": ""},
            {"query": " "},
            {"query": "x" * 1001},
            {"query": "x", "top_k": 0},
            {"query": "x", "top_k": 101},
            {"query": "x", "top_k": 2.5},
            {"query": "x", "filters": []},
        ]
        for arguments in wrong:
            assert (await refusal(client, **arguments))[0] == "invalid_input"
        assert len(await ids(client, "x" * 1000, top_k=100, filters=None)) == 3
        assert await ids(client, top_k=1, filters={}) == ["lamp"]


async def test_a_filter_that_nothing_fulfils_is_an_empty_success(
    shop: Path, open_products: OpenProducts
):
    async with open_products(shop) as client:
        assert await ids(client, filters={"price": {"$gt": 100}}) == []
        assert await ids(client, filters={"colour": "red"}) == [], "an unknown field is no error"


async def test_without_products_the_error_says_how_to_build_them(
    open_products: OpenProducts, state: Path
):
    async with open_products() as client:
        kind, message = await refusal(client)
    assert kind == "api_error"
    assert message.startswith("The products 'amazon2020' are not built in ")
    assert "standards-mcp products build FILE" in message
    assert not (state / "chroma").exists(), "a search leaves nothing"


async def test_a_collection_that_another_program_made_is_searched_by_its_name(
    open_products: OpenProducts, tmp_path: Path, encoder: Any
):
    collection = foreign(tmp_path / "theirs")
    texts = ["a lamp", "a soap"]
    collection.add(
        ids=["1", "2"],
        embeddings=encoder.encode(texts),
        documents=texts,
        metadatas=[{"price": 0.0, "rating": 9, "brand": 5}, {"price": "$5", "rating": 4}],
    )
    async with open_products(path=str(tmp_path / "theirs")) as client:
        lamp, soap = (await search(client))["results"]
    unknown: dict[str, Any] = {"price": None, "rating": None, "brand": "", "ingredients": ""}
    assert lamp == {"doc_id": "1", "sku": "1", "title": "a lamp", **unknown}
    assert soap == {"doc_id": "2", "sku": "2", "title": "a soap", **unknown, "rating": 4}


async def test_vectors_of_another_model_are_told(
    lamp: Row, another_encoder: Any, make: Build, open_products: OpenProducts, tmp_path: Path
):
    make(lamp, made_by=another_encoder)
    foreign(tmp_path / "theirs").add(ids=["1"], embeddings=[[1.0, 0.0]], documents=["x"])
    async with open_products() as client:
        kind, message = await refusal(client)
        assert kind == "api_error"
        assert "have vectors of another, and [plugins.products] model is all-MiniLM" in message
    async with open_products(path=str(tmp_path / "theirs")) as client:
        kind, message = await refusal(client)
        assert kind == "api_error"
        assert "vectors of another model" in message


async def test_a_build_is_seen_by_a_server_that_runs(
    lamp: Row, soap: Row, tent: Row, make: Build, open_products: OpenProducts
):
    make(lamp)
    async with open_products() as client:
        assert await ids(client) == ["lamp"]
        make(soap, tent)
        assert sorted(await ids(client)) == ["soap", "tent"]
        make(lamp, soap, collection="others")
        assert sorted(await ids(client)) == ["soap", "tent"], "another collection is another one"


def test_what_a_build_replaced_during_the_question_is_asked_again(
    lamp: Row, soap: Row, make: Build, state: Path
):
    make(lamp)
    asked = list[str]()

    def ask_slowly(collection: Any) -> list[str]:
        asked.append(collection.name)
        if len(asked) == 1:
            make(soap)
            return []  # as Chroma does for filters
        return list(collection.get()["ids"])

    with closing(Store(Catalogue(ProductsSettings(), state))) as store:
        assert store.ask(ask_slowly) == ["soap"]
    assert len(asked) == 2


def test_a_search_that_is_late_does_not_go_back_to_an_older_build(
    lamp: Row, soap: Row, make: Build, state: Path
):
    make(lamp)
    opened, overtaking = list[Any](), list[Callable[[], Any]]()

    class Overtaken(Catalogue):
        def active(self) -> Active | None:
            found = super().active()
            if overtaking:
                overtaking.pop()()
            return found

        def open(self, min_timeout: float = 0) -> Any:
            opened.append(self)
            return super().open(min_timeout)

    def ids_of(collection: Any) -> list[str]:
        return list(collection.get()["ids"])

    def overtake() -> None:
        make(soap)
        opened.clear()
        assert store.ask(ids_of) == ["soap"]

    with closing(Store(Overtaken(ProductsSettings(), state))) as store:
        overtaking.append(overtake)
        assert store.ask(ids_of) == ["soap"]
    assert len(opened) == 1, "by the search that was quicker"


def test_products_that_are_always_replaced_are_told(lamp: Row, make: Build, state: Path):
    make(lamp)
    catalogue = Catalogue(ProductsSettings(), state)

    def ask(_: Any) -> None:
        active = catalogue.active()
        assert active
        catalogue.activate(active.model_copy(update={"built": active.built + 1}))

    with (
        closing(Store(catalogue)) as store,
        pytest.raises(ApiError, match="Builds have replaced the products 'amazon2020'"),
    ):
        store.ask(ask)


async def test_damaged_stores_and_files_are_told(
    lamp: Row, make: Build, open_products: OpenProducts, state: Path
):
    make(lamp)
    active = state / "active.json"
    for content in ("{", "[]", '{"stores": []}', active.read_text("utf-8").replace("model", "m")):
        active.write_text(content, "utf-8")
        async with open_products() as client:
            kind, message = await refusal(client)
        assert (kind, "active.json cannot be read. Remove it" in message) == ("api_error", True)
    active.unlink()
    (state / "chroma" / "chroma.sqlite3").write_bytes(b"not a database" * 500)
    async with open_products() as client:
        kind, message = await refusal(client)
    assert (kind, "cannot be reached or read" in message) == ("api_error", True)


async def test_a_store_that_does_not_answer_in_time_is_told(
    shop: Path, open_products: OpenProducts
):
    async with open_products(shop, timeout=0.000001) as client:
        kind, message = await refusal(client)
    assert (kind, "did not answer within 1e-06 s" in message) == ("timeout", True)


async def test_health_tells_how_many_products_there_are(
    lamp: Row, soap: Row, make: Build, make_host: MakeHost
):
    async def health() -> tuple[str, str]:
        host = make_host({"products": ProductsPlugin})
        async with host.running():
            await host.manager.wait_listed()
            (found,) = (await check_health(host.manager)).values()
        return found.status, found.message

    status, message = await health()
    assert (status, "are not built in" in message) == ("degraded", True)
    make(lamp, soap)
    assert await health() == ("ok", "2 products")


async def test_no_secret_and_no_query_is_in_a_log_or_a_message(
    shop: Path, open_products: OpenProducts, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    async with open_products(shop) as client:
        await search(client, "zebrafish", filters={"brand": "opensesame"})
    token = {"auth_token": "opensesame", "embedding_api_key": "opensesame"}
    async with open_products(url="http://127.0.0.1:9", **token) as client:
        kind, message = await refusal(client, "zebrafish")
    assert kind == "api_error"
    assert "the Chroma server at 127.0.0.1:9 cannot be reached or read" in message
    for word in ("zebrafish", "opensesame"):
        assert word not in caplog.text + message


def test_the_plugin_keeps_the_rules(shop: Path):
    check_plugin(
        ProductsPlugin,
        name="products",
        calls=[("rag_search", {"query": "a lamp", "filters": {"price": {"$lt": 20}}})],
        config={"state_dir": shop},
    )


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"url": "ftp://x"}, "begins with https://"),
        ({"url": "http://a:b@x"}, "no query, user name and password"),
        ({"url": "http://example.org", "auth_token": "opensesame"}, "unencrypted"),
        ({"url": "http://host:99999"}, "check its host and its port"),
        ({"url": "http://host:abc"}, "check its host and its port"),
        ({"path": "~nobody-of-this-name/products"}, "write the whole path"),
        ({"collection": "a b c"}, "pattern"),
        ({"collection": "ab"}, "pattern"),
        ({"model": "none"}, "cannot be none"),
        ({"model": "nonsense"}, "unknown text model"),
    ],
)
async def test_settings_that_cannot_work_fail_the_plugin(
    open_products: OpenProducts, settings: dict[str, Any], part: str
):
    with pytest.raises(Exception, match=part) as caught:
        async with open_products(**settings):
            pass
    assert "opensesame" not in str(caught.value)


def test_a_folder_may_be_in_the_home_or_beside_the_configuration_file(
    lamp: Row, make: Build, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make(lamp, path=str(tmp_path / "elsewhere"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with (tmp_path / "config.toml").open("a", encoding="utf-8") as file:
        file.write("[plugins.products]\npath = 'elsewhere'\n")
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    assert json.loads(run("products", "status", "--json").stdout)["products"] == 1
    monkeypatch.setenv("INDEX_PATH", "~/elsewhere")
    assert json.loads(run("products", "status", "--json").stdout)["products"] == 1
    monkeypatch.setenv("INDEX_PATH", "../elsewhere")
    assert json.loads(run("products", "status", "--json").stdout)["products"] == 1


def test_an_address_is_never_the_built_in_encoder():
    model = "http://127.0.0.1:9/v1/embeddings#sentence-transformers/all-MiniLM-L6-v2"
    settings = ProductsSettings(model=model)
    assert settings.model == model
    assert model not in repr(settings), "it may have a key"
    with pytest.raises(ValueError, match="names no model"):
        ProductsSettings(model="http://127.0.0.1:9/all-MiniLM-L6-v2")


@pytest.mark.parametrize(
    "model",
    ["minilm", "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "ALL-minilm-l6-V2"],
)
def test_each_spelling_of_the_built_in_model_is_understood(model: str):
    assert ProductsSettings(model=model).model == "minilm"


def test_the_original_variables_are_read(
    lamp: Row, make: Build, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    make(lamp, path=str(tmp_path / "elsewhere"))
    monkeypatch.setenv("INDEX_PATH", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("EMBED_MODEL", "all-MiniLM-L6-v2")
    monkeypatch.setenv("OPENAI_API_KEY", "")
    found = json.loads(run("products", "status", "--json").stdout)
    assert (found["store"], found["products"]) == (str(tmp_path / "elsewhere"), 1)
    monkeypatch.chdir(tmp_path)
    for relative in ("elsewhere", "./elsewhere"):
        monkeypatch.setenv("INDEX_PATH", relative)
        assert json.loads(run("products", "status", "--json").stdout)["products"] == 1
