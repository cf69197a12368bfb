"""A failure is an error that names the setting, never "no memories"."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from pydantic import ValidationError
from qdrant_client import QdrantClient, models

from standards_mcp import PluginContext
from standards_mcp_memory.plugin import MemoryPlugin
from standards_mcp_memory.settings import MemorySettings

pytestmark = pytest.mark.anyio
OpenMemory = Callable[..., AbstractAsyncContextManager[Client]]
KEY = "qd-opensesame-0123456789"
SEARCH = {"query": "bees", "collection": "api"}


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


async def failed(client: Client, tool: str = "memory_search", **arguments: Any) -> tuple[str, str]:
    result = await client.call_tool(tool, arguments or SEARCH)
    assert result.is_error
    assert result.structured_content is not None
    return result.structured_content["error_type"], result.structured_content["message"]


async def store(client: Client) -> None:
    await call(client, "memory_store", collection="api", title="Bees", content="Hum.")


async def test_a_server_that_dies_in_a_call_is_reported_and_used_after_it_comes_back(
    open_memory: OpenMemory, qdrant: Any
):
    async with open_memory(url=qdrant.url, timeout=5) as client:
        await store(client)
        qdrant.keeps_silent = True
        kind, message = await failed(client)
        assert kind == "api_error"
        assert message.startswith(f"The memory store at {qdrant.url} cannot be reached (")
        assert "[plugins.memory] url" in message
        kind, _ = await failed(
            client, "memory_batch_fetch", doc_refs=[{"doc_id": 1, "collection": "api"}]
        )
        assert kind == "api_error", "an outage is not a missing document"
        qdrant.keeps_silent = False
        assert (await call(client, "memory_search", **SEARCH))["count"] == 1


async def test_a_missing_server_is_reported(
    open_memory: OpenMemory, restarted: Callable[[int], Iterator[Any]]
):
    running = restarted(0)
    server = next(running)
    async with open_memory(url=server.url) as client:
        await store(client)
        next(running, None)
        kind, message = await failed(client)
        assert (kind, "cannot be reached (ConnectError)" in message) == ("api_error", True)
        again = restarted(server.server_port)
        next(again)
        found = await call(client, "memory_search", **SEARCH)
        assert (found["count"], found["collections"]) == (0, []), "it came back empty"
        next(again, None)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "refuses the key (401). Check [plugins.memory] api_key."),
        (403, "refuses the key (403). Check [plugins.memory] api_key."),
        (404, "answered 404. Check [plugins.memory] url"),
        (429, "answered 429."),
        (500, "answered 500."),
        (503, "answered 503."),
    ],
)
async def test_each_refusal_names_the_place_and_the_setting(
    open_memory: OpenMemory, qdrant: Any, status: int, said: str
):
    qdrant.status = status
    async with open_memory(url=qdrant.url, api_key=KEY) as client:
        kind, message = await failed(client)
    assert kind == "api_error"
    assert message.startswith(f"The memory store at {qdrant.url} {said}")
    assert KEY not in message
    assert qdrant.headers[0]["api-key"] == KEY


async def test_a_key_is_sent_and_a_wrong_one_is_reported(open_memory: OpenMemory, qdrant: Any):
    qdrant.key = KEY
    async with open_memory(url=qdrant.url, api_key=KEY) as client:
        await store(client)
    async with open_memory(url=qdrant.url, api_key="other-0123456789") as client:
        assert "api_key" in (await failed(client))[1]


async def test_a_server_that_is_not_qdrant_is_reported(open_memory: OpenMemory, qdrant: Any):
    async with open_memory(url=qdrant.url) as client:
        for answer in (b"<html>", b"{}", b'{"result": {"collections": 7}}'):
            qdrant.answer = answer
            kind, message = await failed(client)
            assert (kind, "does not answer as Qdrant does" in message) == ("api_error", True)


async def test_a_late_answer_is_a_timeout(open_memory: OpenMemory, qdrant: Any, encoder: Any):
    async with open_memory(url=qdrant.url) as client:
        await store(client)
    async with open_memory(url=qdrant.url, timeout=0.5) as client:
        qdrant.pause = 2
        kind, message = await failed(client)
        assert (kind, message[:20]) == ("timeout", "The memory store at ")
        assert "[plugins.memory] timeout" in message
        qdrant.pause, encoder.pause = 0, 2
        kind, message = await failed(client)
        assert (kind, message[:12]) == ("timeout", "The encoder ")


async def test_a_server_with_endless_answers_takes_a_bounded_number_of_threads(
    open_memory: OpenMemory, qdrant: Any
):
    async with open_memory(url=qdrant.url) as client:
        await store(client)
    async with open_memory(url=qdrant.url, timeout=0.3) as client:
        qdrant.drips = True
        threads = threading.active_count()
        said: list[tuple[str, str]] = []

        async def ask() -> None:
            said.append(await failed(client))

        for _ in range(4):
            async with anyio.create_task_group() as group:
                for _ in range(16):
                    group.start_soon(ask)
        assert {kind for kind, _ in said} == {"timeout"}
        # Each has one thread here, and one of the server that drips.
        assert threading.active_count() - threads <= 2 * 16 + 16
        qdrant.drips = False
        for _ in range(200):
            if not (await client.call_tool("memory_search", SEARCH)).is_error:
                return
            await anyio.sleep(0.05)
        pytest.fail("a thread that has ended is free again")


async def test_a_call_that_outlives_its_server_leaves_nothing_behind(
    tmp_path: Path, fast: dict[str, Any]
):
    faults: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    context = PluginContext(name="memory", state_dir=tmp_path)
    plugin = MemoryPlugin(MemorySettings.model_validate({**fast, "idle_close": 0}), context)
    async with plugin.lifespan():
        late = asyncio.create_task(plugin.search("bees", "api"))
        await asyncio.sleep(0)
    await asyncio.wait([late])
    await asyncio.sleep(0.05)
    assert late.exception() is not None
    assert faults == []


async def test_a_store_in_use_by_another_program_is_waited_for_and_reported(
    open_memory: OpenMemory, tmp_path: Path
):
    path = tmp_path / "memories"
    other = QdrantClient(path=str(path))
    async with open_memory(path=str(path), lock_wait=0.2) as client:
        kind, message = await failed(client)
        assert kind == "api_error"
        assert message.startswith(f"The memory store in {path} is in use by another process")
    async with open_memory(path=str(path), lock_wait=10) as client:
        timer = threading.Timer(0.5, other.close)
        timer.start()
        assert (await call(client, "memory_search", **SEARCH))["collections"] == []
        timer.join()


async def test_two_servers_take_turns_with_a_folder(open_memory: OpenMemory, tmp_path: Path):
    place: dict[str, Any] = {"path": str(tmp_path / "memories"), "lock_wait": 10}
    async with (
        open_memory(**place, idle_close=0.1) as one,
        open_memory(**place, idle_close=3600) as two,
    ):
        await store(one)
        found = await call(two, "memory_search", **SEARCH)
        assert found["count"] == 1, "the other has let go of it"
    place["lock_wait"] = 0.3
    async with open_memory(**place, idle_close=3600) as one, open_memory(**place) as two:
        await store(one)
        with anyio.fail_after(60):
            kind, message = await failed(two, "memory_fetch", doc_id=1, collection="api")
        assert (kind, "in use by another process" in message) == ("api_error", True)


async def test_a_damaged_store_is_reported(open_memory: OpenMemory, tmp_path: Path):
    path = tmp_path / "memories"
    path.mkdir()
    (path / "meta.json").write_text('{"collections": ')
    async with open_memory(path=str(path)) as client:
        kind, message = await failed(client)
    assert kind == "api_error"
    assert message.startswith(f"The memory store in {path} cannot be used")
    file = tmp_path / "file"
    file.touch()
    async with open_memory(path=str(file)) as client:
        kind, message = await failed(client)
        assert (kind, "[plugins.memory] path" in message) == ("api_error", True)


async def test_vectors_of_another_model_are_refused_by_name(
    open_memory: OpenMemory, where: dict[str, Any], encoder: Any
):
    if where == {"path": ":memory:"}:
        pytest.skip("it ends with its server")
    async with open_memory(**where) as client:
        await store(client)
    other = f"{encoder.url}/v1/embeddings#numbers"
    async with open_memory(**where, model=other) as client:
        for tool, arguments in (
            ("memory_search", SEARCH),
            ("memory_store", {"collection": "api", "title": "Oaks", "content": "Stand."}),
            ("memory_update", {"collection": "api", "doc_id": 1, "title": "Oaks"}),
        ):
            kind, message = await failed(client, tool, **arguments)
            assert kind == "api_error"
            assert message.startswith(
                f"Collection 'api' holds vectors of {encoder.url}/v1/embeddings#letters (16), the "
                f"configured model is {encoder.url}/v1/embeddings#numbers (16)"
            )
            assert "memory reembed" in message
            assert "[plugins.memory] model" in message
        document = await call(client, "memory_fetch", doc_id=1, collection="api")
        assert document["title"] == "Bees", "reading needs no model"


def foreign(path: Path, size: int, **more: Any) -> None:
    client = QdrantClient(path=str(path))
    distance = more.pop("distance", models.Distance.COSINE)
    vectors: Any = models.VectorParams(size=size, distance=distance)
    if more.pop("is_named", False):
        vectors = {"name": vectors}
    client.create_collection("api", vectors_config=vectors)
    if more:
        points = [
            models.PointStruct(id=identifier, vector=[1.0] * size, payload=payload)
            for identifier, payload in more["points"]
        ]
        client.upsert("api", points=points)
    client.close()


async def test_collections_of_other_programs_are_used_where_they_fit(
    open_memory: OpenMemory, tmp_path: Path
):
    uuid = "11111111-2222-3333-4444-555555555555"
    points = [
        (7, {"title": "Bees", "content": "Hum.\n**Tags:** #retry #http #retry", "more": [1]}),
        (8, {"title": 5, "tags": ["x", 5]}),
        (9, None),
        (uuid, {"title": "Odd"}),
    ]
    foreign(tmp_path / "memories", 16, points=points)
    async with open_memory(path=str(tmp_path / "memories")) as client:
        result = await client.call_tool("memory_search", SEARCH)
        found = result.structured_content
        assert found is not None
        assert [(each["id"], each["title"], each["preview"]) for each in found["results"]] == [
            (7, "Bees", ""),
            (8, "", ""),
            (9, "", ""),
        ], "equal scores come by their ids"
        assert "Memories left out because their ids are not numbers: 1." in str(result.content)
        document = await call(client, "memory_fetch", doc_id=7, collection="api")
        assert document["tags"] == ["retry", "http"]
        assert (await call(client, "memory_fetch", doc_id=8, collection="api"))["tags"] == [
            "x",
            "5",
        ]
        new = await call(client, "memory_store", collection="api", title="Oaks", content="Stand.")
        assert new["id"] == 10
        await call(client, "memory_update", collection="api", doc_id=7, title="Wasps")
    client = QdrantClient(path=str(tmp_path / "memories"))
    (row,) = client.retrieve("api", ids=[7])
    client.close()
    assert row.payload is not None
    assert (row.payload["title"], row.payload["more"]) == ("Wasps", [1]), "other keys are kept"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": 8}, "holds vectors of an unnamed model (8), the configured model is"),
        ({"size": 16, "is_named": True}, "does not have one unnamed vector"),
        ({"size": 16, "distance": models.Distance.DOT}, "the distance cosine"),
    ],
)
async def test_collections_of_other_programs_are_refused_where_they_do_not_fit(
    open_memory: OpenMemory, tmp_path: Path, options: dict[str, Any], said: str
):
    foreign(tmp_path / "memories", **options)
    async with open_memory(path=str(tmp_path / "memories")) as client:
        for tool, arguments in (
            ("memory_search", SEARCH),
            ("memory_store", {"collection": "api", "title": "Oaks", "content": "Stand."}),
        ):
            kind, message = await failed(client, tool, **arguments)
            assert (kind, said in message) == ("api_error", True)


async def test_a_failing_encoder_is_reported_without_its_key(
    open_memory: OpenMemory, encoder: Any, caplog: pytest.LogCaptureFixture
):
    options = {"path": ":memory:", "embedding_api_key": KEY}
    async with open_memory(**options) as client:
        await store(client)
        assert encoder.headers[0]["authorization"] == f"Bearer {KEY}"
        for status, said in (
            (401, "embedding_api_key"),
            (429, "limits the rate of requests"),
            (500, "500"),
        ):
            encoder.status = status
            kind, message = await failed(client)
            assert kind == "api_error"
            assert message.startswith("The encoder http://127.0.0.1:")
            assert said in message
        encoder.status = 200
        for answer in (
            b"<html>",
            b'{"data": []}',
            b'{"data": [{"index": 0, "embedding": [0, 0]}]}',
            b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}',
            b'{"data": [{"index": 0, "embedding": 7}]}',
        ):
            encoder.answer = answer
            kind, message = await failed(client)
            assert (kind, "does not answer with a vector" in message) == ("api_error", True)
        encoder.answer, encoder.keeps_silent = None, True
        assert "cannot be reached" in (await failed(client))[1]
    assert KEY not in caplog.text


async def test_voyage_gets_the_kind_of_text_and_its_key(
    open_memory: OpenMemory, encoder: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    options = {"path": ":memory:", "model": "voyage:voyage-4-lite", "voyage_url": encoder.url}
    async with open_memory(**options, voyage_api_key=KEY) as client:
        await store(client)
        assert (await call(client, "memory_search", **SEARCH))["count"] == 1
        listed = await call(client, "memory_list_collections")
        assert listed["collections"][0]["model"] == "voyage:voyage-4-lite"
    bodies = [body for _, _, body in encoder.asked]
    assert bodies[-1] == {"input": ["bees"], "model": "voyage-4-lite", "input_type": "query"}
    assert bodies[0]["input_type"] == "document"
    assert encoder.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_a_name_that_the_store_does_not_take_is_refused(open_memory: OpenMemory):
    async with open_memory(path=":memory:") as client:
        arguments = {"collection": "a?b", "title": "Oaks", "content": "Stand."}
        kind, message = await failed(client, "memory_store", **arguments)
        assert (kind, "Choose another name." in message) == ("invalid_input", True)
        assert (await call(client, "memory_search", query="bees", collection="a?b"))["count"] == 0


async def test_a_memory_keeps_a_title_or_a_content(open_memory: OpenMemory, tmp_path: Path):
    foreign(tmp_path / "memories", 16, points=[(1, {"content": "Hum."})])
    async with open_memory(path=str(tmp_path / "memories")) as client:
        change = {"doc_id": 1, "collection": "api", "content": ""}
        assert (await failed(client, "memory_update", **change))[0] == "invalid_input"


async def test_a_missing_model_is_reported(open_memory: OpenMemory, tmp_path: Path):
    async with open_memory(path=":memory:", model="fastembed:nothing") as client:
        new = {"collection": "api", "title": "Bees", "content": "Hum."}
        kind, message = await failed(client, "memory_store", **new)
        assert kind == "api_error"
        assert message.startswith("The encoder fastembed:nothing cannot be used")
    foreign(tmp_path / "memories", 16)
    options = {"path": str(tmp_path / "memories"), "model": "fastembed:nothing"}
    async with open_memory(**options) as client:
        assert (await failed(client))[1].startswith("The encoder fastembed:nothing")


async def test_health_asks_a_server_and_leaves_a_folder_alone(qdrant: Any, tmp_path: Path):
    for options, said in (
        ({"url": qdrant.url}, "0 collections"),
        ({"path": str(tmp_path / "memories")}, "the first call opens the store"),
    ):
        context = PluginContext(name="memory", state_dir=tmp_path)
        plugin = MemoryPlugin(MemorySettings.model_validate(options), context)
        async with plugin.lifespan():
            assert (await plugin.check_health()).message == said
            qdrant.status = 500
            status = (await plugin.check_health()).status
            assert status == ("degraded" if "url" in options else "ok")
    assert not (tmp_path / "memories").exists()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"path": "memories"}, "give the whole path"),
        ({"url": "localhost:6333"}, "begins with https"),
        ({"url": "http://example.org", "api_key": "k"}, "use https"),
        ({"model": "http://example.org/v1#m", "embedding_api_key": "k"}, "use https"),
        ({"model": "voyage:"}, "lacks the name of a model"),
        ({"model": "none"}, "memory search needs vectors"),
        ({"model": "minilmm"}, "did you mean"),
        ({"backend": "edge"}, "'qdrant'"),
        ({"timeout": 0}, "greater than 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(table: dict[str, Any], said: str):
    with pytest.raises(ValidationError, match=said):
        MemorySettings.model_validate(table)


def test_a_home_folder_is_expanded_and_a_key_may_be_sent_to_this_machine():
    settings = MemorySettings.model_validate(
        {"path": "~/m", "url": "http://localhost:6333/", "api_key": "k"}
    )
    assert settings.path == str(Path.home() / "m")
    assert settings.url == "http://localhost:6333"
    assert "'k'" not in repr(settings)


async def test_a_model_that_is_an_address_is_named_without_its_secrets(
    open_memory: OpenMemory, encoder: Any
):
    address = encoder.url.replace("http://", "http://ann:hunter2@")
    model = f"{address}/v1/embeddings?token=hunter3#letters"
    async with open_memory(path=":memory:", model=model) as client:
        await store(client)
        listed = await call(client, "memory_list_collections")
        assert listed["collections"][0]["model"] == f"{encoder.url}/v1/embeddings#letters"
        encoder.status = 500
        message = (await failed(client))[1]
        assert "hunter" not in message
    assert encoder.asked[0][1] == "/v1/embeddings"


async def test_requests_to_this_machine_use_no_proxy(
    open_memory: OpenMemory, qdrant: Any, monkeypatch: pytest.MonkeyPatch
):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with open_memory(url=qdrant.url, api_key=KEY, embedding_api_key=KEY) as client:
        await store(client)
        assert (await call(client, "memory_search", **SEARCH))["count"] == 1


async def test_a_store_that_was_killed_while_it_was_made_is_made_again(
    open_memory: OpenMemory, tmp_path: Path
):
    path = tmp_path / "memories"
    path.mkdir()
    (path / "meta.json").touch()
    async with open_memory(path=str(path)) as client:
        await store(client)
        assert (await call(client, "memory_search", **SEARCH))["count"] == 1


async def test_a_job_that_takes_too_long_is_a_timeout(open_memory: OpenMemory, tmp_path: Path):
    async with open_memory(path=str(tmp_path / "memories"), timeout=0.000_001) as client:
        kind, message = await failed(client)
        assert kind == "timeout"
        assert message.startswith(("The memory store in ", "The encoder "))


@pytest.mark.parametrize("content", ["", "{}", "[]", "null", '{"collections": [1]}'])
async def test_a_damaged_store_is_an_error_and_not_an_empty_one(
    open_memory: OpenMemory, tmp_path: Path, content: str
):
    path = tmp_path / "memories"
    async with open_memory(path=str(path)) as client:
        await store(client)
    (path / "meta.json").write_text(content)
    async with open_memory(path=str(path)) as client:
        for tool, arguments in (
            ("memory_search", SEARCH),
            ("memory_store", {"collection": "api", "title": "Oaks", "content": "Stand."}),
        ):
            kind, message = await failed(client, tool, **arguments)
            assert (kind, "cannot be used" in message) == ("api_error", True)


async def test_an_encoder_that_changes_its_length_writes_nothing(
    open_memory: OpenMemory, encoder: Any
):
    async with open_memory(path=":memory:") as client:
        await store(client)
        encoder.answer = b'{"data": [{"index": 0, "embedding": [1, 2, 3]}]}'
        new = {"collection": "api", "title": "Oaks", "content": "Stand."}
        kind, message = await failed(client, "memory_store", **new)
        assert (kind, "holds vectors of" in message) == ("api_error", True)


@pytest.mark.parametrize(
    "answer", [b'{"data": [{"index": 1e999, "embedding": [1]}]}', b'{"data": [{"index": 5}]}']
)
async def test_vectors_without_a_place_are_refused(
    open_memory: OpenMemory, encoder: Any, answer: bytes
):
    async with open_memory(path=":memory:") as client:
        await store(client)
        encoder.answer = answer
        kind, message = await failed(client)
        assert (kind, "a vector for each text" in message) == ("api_error", True)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"url": "http://localhost:99999"}, "check its host and its port"),
        ({"url": "http://ann:hunter2@localhost:6333"}, "no query, user name and password"),
        ({"api_key": "sk-caf\u00e9"}, "an invalid character"),
    ],
)
def test_addresses_and_keys_that_cannot_be_are_refused(settings: dict[str, str], reason: str):
    with pytest.raises(ValidationError, match=reason):
        MemorySettings(**settings)


def test_settings_show_no_secret():
    model = "https://ann:hunter2@localhost/v1?key=hunter3#m"
    assert "hunter" not in repr(MemorySettings(api_key="hunter4", model=model))
