"""The tools, on a folder, in memory and on a server: one behaviour on all three."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from mcp import Client
from support.marks import untrusted_tools

pytestmark = pytest.mark.anyio
OpenMemory = Callable[..., AbstractAsyncContextManager[Client]]
HUGE = 2**63 - 1


async def told(client: Client, tool: str, /, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> tuple[str, str]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is not None
    return result.structured_content["error_type"], result.structured_content["message"]


async def text(client: Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error
    return result.content[0].text


async def remember(client: Client, title: str, content: str, **more: Any) -> int:
    answer = await told(
        client, "memory_store", collection="api", title=title, content=content, **more
    )
    return answer["id"]


async def test_stored_memories_are_searched_by_preview_and_fetched_in_full(
    open_memory: OpenMemory, where: dict[str, Any]
):
    async with open_memory(**where) as client:
        await remember(client, "Bees", "Bbbb hum. They fly. They sting.", tags=["bee", "hum"])
        await remember(client, "Oaks", "oooo stand.", preview="Of trees.")
        found = await told(client, "memory_search", collection="api", query="bbbb")
        assert [each["title"] for each in found["results"]] == ["Bees", "Oaks"]
        assert found["results"][0]["score"] > found["results"][1]["score"]
        assert found == {
            "collection": "api",
            "query": "bbbb",
            "count": 2,
            "results": [
                {"id": 1, "title": "Bees", "preview": "Bbbb hum. They fly."}
                | {"score": found["results"][0]["score"]},
                {"id": 2, "title": "Oaks", "preview": "Of trees."}
                | {"score": found["results"][1]["score"]},
            ],
        }
        one = await told(client, "memory_search", collection="api", query="bbbb", limit=1)
        assert one["count"] == 1
        assert await told(client, "memory_fetch", doc_id=1, collection="api") == {
            "id": 1,
            "collection": "api",
            "title": "Bees",
            "preview": "Bbbb hum. They fly.",
            "content": "Bbbb hum. They fly. They sting.",
            "tags": ["bee", "hum"],
        }


async def test_texts_are_markdown_or_the_structured_answer_as_json(
    open_memory: OpenMemory, where: dict[str, Any]
):
    async with open_memory(**where) as client:
        await remember(client, "Bees_1", "Hum `x`.", tags=["bee"])
        search = {"collection": "api", "query": "hum"}
        markdown = await text(client, "memory_search", **search)
        assert markdown.startswith("# Memories in api\n\n1. **Bees\\_1** (id 1, score ")
        assert markdown.endswith(")\n   Hum \\`x\\`.")
        line = await text(client, "memory_search", **search, response_format="json")
        assert "\n" not in line
        assert json.loads(line) == await told(client, "memory_search", **search)
        assert await text(client, "memory_fetch", doc_id=1, collection="api") == (
            "# Bees\\_1\n\nid 1, collection api, tags: bee\n\n> Hum \\`x\\`.\n\n```\nHum `x`.\n```"
        )
        references = [{"doc_id": 1, "collection": "api"}, {"doc_id": 2, "collection": "no"}]
        batch = await text(client, "memory_batch_fetch", doc_refs=references)
        assert batch.startswith("## Bees\\_1\n\n")
        assert batch.endswith("\n\nNot found: id 2 in no.")


async def test_a_batch_keeps_the_order_and_lists_missing_memories_once(
    open_memory: OpenMemory, where: dict[str, Any]
):
    async with open_memory(**where) as client:
        for title in ("one", "two", "three"):
            await remember(client, title, f"About {title}.")
        await told(client, "memory_store", collection="b", title="other", content="else")
        wanted = [(3, "api"), (1, "b"), (1, "api"), (3, "api"), (9, "api"), (1, "no"), (9, "api")]
        references = [{"doc_id": each, "collection": name} for each, name in wanted]
        answer = await told(client, "memory_batch_fetch", doc_refs=references)
        titles = [each["title"] for each in answer["documents"]]
        assert titles == ["three", "other", "one", "three"]
        assert answer["count"] == 4
        assert answer["not_found"] == [
            {"doc_id": 9, "collection": "api"},
            {"doc_id": 1, "collection": "no"},
        ]


async def test_only_a_missing_collection_is_an_empty_result_with_the_names_there_are(
    open_memory: OpenMemory, where: dict[str, Any]
):
    async with open_memory(**where) as client:
        empty = await told(client, "memory_search", collection="no", query="bees")
        assert (empty["count"], empty["collections"]) == (0, [])
        await remember(client, "Bees", "Hum.")
        await told(client, "memory_store", collection="a_b", title="x", content="y")
        found = await told(client, "memory_search", collection="no", query="bees")
        assert found == {
            "collection": "no",
            "query": "bees",
            "count": 0,
            "results": [],
            "collections": ["a_b", "api"],
        }
        shown = await text(client, "memory_search", collection="no", query="bees")
        assert shown.endswith("Collection no not found. There are: a\\_b, api.")
        kind, message = await refused(client, "memory_fetch", doc_id=1, collection="no")
        assert kind == "not_found"
        assert message == "Collection no not found. There are: a_b, api."
        kind, message = await refused(client, "memory_fetch", doc_id=7, collection="api")
        assert kind == "not_found"
        assert message.startswith("Document 7 not found in collection api.")
        await told(client, "memory_delete", doc_id=1, collection="api")
        gone = await told(client, "memory_search", collection="api", query="bees")
        assert (gone["count"], "collections" in gone) == (0, False)
        shown = await text(client, "memory_search", collection="api", query="bees")
        assert shown.endswith("Collection api is empty.")


async def test_the_same_memory_is_stored_once(open_memory: OpenMemory, where: dict[str, Any]):
    async with open_memory(**where) as client:
        same = {"collection": "api", "title": "Bees", "content": "Hum."}
        first = await told(client, "memory_store", **same, preview="Mine.")
        again = await told(client, "memory_store", **same)
        assert (first["created"], again["created"], again["id"]) == (True, False, first["id"])
        document = await told(client, "memory_fetch", doc_id=1, collection="api")
        assert (document["preview"], document["tags"]) == ("Mine.", [])
        await told(client, "memory_store", **same, tags=["a", "b", "a"])
        document = await told(client, "memory_fetch", doc_id=1, collection="api")
        assert (document["preview"], document["tags"]) == ("Mine.", ["a", "b"])


async def test_an_update_changes_the_given_fields(open_memory: OpenMemory, where: dict[str, Any]):
    async with open_memory(**where) as client:
        await remember(client, "Bees", "bbbb", preview="P.", tags=["x"])
        await remember(client, "Oaks", "oooo")
        place = {"doc_id": 1, "collection": "api"}
        assert (await told(client, "memory_update", **place, content="dddd"))["updated"]
        assert not (await told(client, "memory_update", **place, content="dddd"))["updated"]
        assert (await told(client, "memory_update", **place, tags=[], title="Deer"))["updated"]
        document = await told(client, "memory_fetch", **place)
        assert document == {
            **document,
            "title": "Deer",
            "content": "dddd",
            "preview": "P.",
            "tags": [],
        }
        found = await told(client, "memory_search", collection="api", query="dddd")
        assert found["results"][0]["title"] == "Deer", "its vector is new"
        missing = await refused(client, "memory_update", doc_id=9, collection="api", title="x")
        assert missing[0] == "not_found"
        titled = await told(client, "memory_update", **place, content="")
        assert titled["updated"], "the title is left to be found by"


async def test_ids_are_not_used_again(open_memory: OpenMemory, where: dict[str, Any]):
    async with open_memory(**where) as client:
        await remember(client, "one", "1")
        last = await remember(client, "two", "2")
        answer = await told(client, "memory_delete", doc_id=last, collection="api")
        assert answer == {"id": last, "collection": "api", "deleted": True}
        assert await remember(client, "three", "3") == last + 1
        gone = await refused(client, "memory_delete", doc_id=last, collection="api")
        assert gone[0] == "not_found"
        listed = await told(client, "memory_list_collections")
        assert [(each["name"], each["count"]) for each in listed["collections"]] == [("api", 2)]
        assert listed["collections"][0]["model"].endswith("/v1/embeddings#letters")


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("memory_search", {"query": "x", "collection": "a"}, "query"),
        ("memory_search", {"query": "   ", "collection": "a"}, "query"),
        ("memory_search", {"query": "x" * 501, "collection": "a"}, "query"),
        ("memory_search", {"query": "bees", "collection": "a", "limit": 0}, "limit"),
        ("memory_search", {"query": "bees", "collection": "a", "limit": 101}, "limit"),
        ("memory_search", {"query": "bees", "collection": "a", "limit": 1.5}, "limit"),
        ("memory_search", {"query": "bees", "collection": "a/b"}, "collection"),
        ("memory_search", {"query": "bees", "collection": "a\\b"}, "collection"),
        ("memory_search", {"query": "bees", "collection": "a\x07"}, "collection"),
        ("memory_search", {"query": "bees", "collection": "a\x85"}, "collection"),
        ("memory_search", {"query": "bees", "collection": ".."}, "collection"),
        ("memory_search", {"query": "bees", "collection": ""}, "collection"),
        ("memory_search", {"query": "bees", "collection": "a" * 101}, "collection"),
        ("memory_search", {"query": "bees"}, "collection"),
        ("memory_search", {"query": "bees", "collection": "a", "response_format": "xml"}, "format"),
        ("memory_fetch", {"doc_id": 0, "collection": "a"}, "doc_id"),
        ("memory_fetch", {"doc_id": "one", "collection": "a"}, "doc_id"),
        ("memory_fetch", {"doc_id": True, "collection": "a"}, "doc_id"),
        ("memory_fetch", {"doc_id": HUGE + 1, "collection": "a"}, "doc_id"),
        ("memory_batch_fetch", {"doc_refs": []}, "doc_refs"),
        ("memory_batch_fetch", {"doc_refs": [{"doc_id": 1, "collection": "a"}] * 51}, "doc_refs"),
        ("memory_batch_fetch", {"doc_refs": [{"doc_id": 0, "collection": "a"}]}, "doc_id"),
        ("memory_batch_fetch", {"doc_refs": [{"doc_id": 1}]}, "collection"),
        ("memory_store", {"collection": "a", "title": " ", "content": "x"}, "title"),
        ("memory_store", {"collection": "a", "title": "x", "content": "", "tags": ["a b"]}, "tags"),
    ],
)
async def test_bad_input_is_refused_by_argument(
    open_memory: OpenMemory, tool: str, arguments: dict[str, Any], named: str
):
    async with open_memory(path=":memory:") as client:
        kind, message = await refused(client, tool, **arguments)
        assert kind == "invalid_input"
        assert named in message


async def test_bounds_are_inclusive(open_memory: OpenMemory):
    async with open_memory(path=":memory:") as client:
        await remember(client, "x", "y")
        for query in ("xy", "x" * 500):
            found = await told(client, "memory_search", query=query, collection="api", limit=100)
            assert found["count"] == 1
        references = [{"doc_id": HUGE, "collection": "a" * 100}] * 50
        answer = await told(client, "memory_batch_fetch", doc_refs=references)
        assert answer["not_found"] == [references[0]]


async def test_tools_declare_what_they_do(open_memory: OpenMemory):
    async with open_memory() as client:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert await untrusted_tools(client) == {
            "memory_search",
            "memory_fetch",
            "memory_batch_fetch",
            "memory_list_collections",
        }
    flags = {
        name: (
            tool.annotations.read_only_hint,
            tool.annotations.destructive_hint,
            tool.annotations.idempotent_hint,
            tool.annotations.open_world_hint,
        )
        for name, tool in tools.items()
        if tool.annotations
    }
    assert flags == {
        "memory_search": (True, False, True, True),
        "memory_fetch": (True, False, True, True),
        "memory_batch_fetch": (True, False, False, True),
        "memory_store": (False, False, True, True),
        "memory_update": (False, True, True, True),
        "memory_delete": (False, True, False, True),
        "memory_list_collections": (True, False, True, True),
    }
    bounds = tools["memory_search"].input_schema["properties"]
    assert (bounds["limit"]["minimum"], bounds["limit"]["maximum"]) == (1, 100)
    assert bounds["limit"]["default"] == 20
    assert bounds["query"]["minLength"] == 2
    async with open_memory(writable=False) as client:
        names = [each.name for each in (await client.list_tools()).tools]
    assert names == [
        "memory_search",
        "memory_fetch",
        "memory_batch_fetch",
        "memory_list_collections",
    ], "reading tools are always served"


async def test_a_search_asks_for_previews_alone_and_a_batch_once_for_each_collection(
    open_memory: OpenMemory, qdrant: Any
):
    async with open_memory(url=qdrant.url) as client:
        for collection in ("b", "a"):
            for title in ("Bees", "Oaks"):
                await told(
                    client, "memory_store", collection=collection, title=title, content=title
                )
        qdrant.asked.clear()
        await told(client, "memory_search", collection="a", query="bees", limit=7)
        (query,) = [body for _, path, body in qdrant.asked if path.endswith("/points/query")]
        assert (query["with_payload"], query["limit"]) == (["title", "preview"], 7)
        assert not query.get("with_vector")
        qdrant.asked.clear()
        refs = [{"doc_id": n, "collection": name} for n, name in ((2, "b"), (1, "a"), (1, "b"))]
        await told(client, "memory_batch_fetch", doc_refs=refs)
        asked = [(path, body["ids"]) for _, path, body in qdrant.asked]
        assert asked == [("/collections/b/points", [2, 1]), ("/collections/a/points", [1])]


async def test_a_preview_of_an_older_content_does_not_stay(
    open_memory: OpenMemory, where: dict[str, Any]
):
    async with open_memory(**where) as client:
        made = await remember(client, "Port", "The port is 80. Always.")
        given = await remember(client, "Host", "It is a.", preview="Of hosts.")
        for doc_id, content in ((made, "The port is 9000."), (given, "It is b.")):
            await told(client, "memory_update", doc_id=doc_id, collection="api", content=content)
        previews = [
            (await told(client, "memory_fetch", doc_id=each, collection="api"))["preview"]
            for each in (made, given)
        ]
        assert previews == ["The port is 9000.", "Of hosts."]


async def test_a_text_that_another_program_has_edited_is_not_overwritten(
    open_memory: OpenMemory, qdrant: Any
):
    async with open_memory(url=qdrant.url) as client:
        await remember(client, "Port", "port 80")
        qdrant.store.set_payload("api", payload={"content": "port 9000"}, points=[1])
        assert await remember(client, "Port", "port 80") == 2
        edited = await told(client, "memory_fetch", doc_id=1, collection="api")
        assert edited["content"] == "port 9000"
        assert await remember(client, "Port", "port 80") == 2, "it is not stored twice"


async def test_a_memory_that_another_program_has_written_is_not_stored_again(
    open_memory: OpenMemory, qdrant: Any
):
    async with open_memory(url=qdrant.url) as client:
        for title, content in (("Port", "port 80"), ("Bees", "")):
            await remember(client, title, content)
        qdrant.store.delete_payload("api", keys=["content_hash"], points=[1, 2])
        assert await remember(client, "Port", "port 80") == 1
        assert await remember(client, "Bees", "") == 2
        assert await remember(client, "Bees", "Hum.") == 3


async def test_the_encoder_is_asked_once_and_only_for_a_new_text(
    open_memory: OpenMemory, encoder: Any
):
    async with open_memory(path=":memory:") as client:
        await remember(client, "Bees", "Hum.", preview="Of bees.")
        encoder.asked.clear()
        await remember(client, "Bees", "Hum.", preview="Of bees.")
        await told(client, "memory_update", doc_id=1, collection="api", title="Bees")
        assert encoder.asked == []
        await remember(client, "Oaks", "Stand.")
        await told(client, "memory_update", doc_id=1, collection="api", tags=["bee"])
        assert [body["input"] for _, _, body in encoder.asked] == [
            ["Oaks\nStand."],
            ["Bees\nOf bees.\nbee\nHum."],
        ]
