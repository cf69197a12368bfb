from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from emulator.server import PineconeServer
from support.records import record

from standards_mcp_pinecone.client import FallbackCatalog, PineconeClient
from standards_mcp_pinecone.failures import PineconeUnavailableError

pytestmark = pytest.mark.anyio

METHODS = ("search", "fetch", "find", "suggest", "facets", "values", "stats", "select", "sets")


@pytest.fixture
async def both(client: PineconeClient, server: PineconeServer) -> AsyncIterator[FallbackCatalog]:
    """Return a `FallbackCatalog` of two namespaces of the emulator, one as the embedded store."""
    secondary = server.client(namespace="embedded")
    await client.upsert([record(1, "In Pinecone")])
    await secondary.upsert([record(2, "Embedded", statement_notation="XQ.1")])
    catalog = FallbackCatalog(client, secondary, pause=0.0)
    yield catalog
    await catalog.aclose()


def break_primary(server: PineconeServer, **fault: Any) -> None:
    """Let every call for the namespace of the primary store fail."""
    server.fail("/namespaces/standards/", **fault)
    server.fail(
        "/vectors/", when=lambda body: body is None or body["namespace"] != "embedded", **fault
    )


async def test_pinecone_answers_while_it_can(both: FallbackCatalog):
    result = await both.search("text", 1)
    assert (result.hits[0].record.id, result.notes) == ("R001", ())
    assert (await both.stats()).records == 1


async def test_the_other_answers_with_a_note_while_pinecone_is_out_of_reach(
    both: FallbackCatalog, server: PineconeServer
):
    break_primary(server, status=429, text="too many")
    result = await both.search("text", 1)
    assert result.hits[0].record.id == "R002"
    assert "Answered from the embedded index" in result.notes[0]
    assert "quota of this minute" in result.notes[0]
    server.faults.clear()
    assert (await both.search("text", 1)).notes == ()


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_mistake_of_the_configuration_is_not_hidden(
    both: FallbackCatalog, server: PineconeServer, status: int
):
    break_primary(server, status=status)
    with pytest.raises(PineconeUnavailableError):
        await both.search("text", 1)


async def test_every_way_of_reading_falls_back(
    both: FallbackCatalog, monkeypatch: pytest.MonkeyPatch
):
    async def gone(*_: Any) -> Any:
        raise PineconeUnavailableError("unreachable", "Pinecone is gone.")

    for name in METHODS:
        monkeypatch.setattr(both.primary, name, gone)
    assert [each.id for each in await both.fetch(["R001", "R002"])] == ["R002"]
    assert [each.id for each in await both.find("XQ.1")] == ["R002"]
    assert [each.id for each in await both.suggest("XQ.2")] == ["R002"]
    assert (await both.facets()).subjects == {"Mathematics": 1}
    assert (await both.values("subject")).counts == {"Mathematics": 1}
    assert [each.id for each in await both.select({"subject": "Mathematics"}, 5)] == ["R002"]
    assert [each.id for each in (await both.sets()).sets] == ["set-math"]
    assert "Pinecone is gone" in (await both.stats()).details["fallback"]
    assert "Pinecone is gone" in both.notes()[0]
    monkeypatch.undo()
    assert [each.id for each in await both.fetch(["R001", "R002"])] == ["R001"]
    assert both.notes() == ()


async def test_after_a_failure_pinecone_is_left_alone_for_a_while(
    both: FallbackCatalog, server: PineconeServer
):
    waiting = FallbackCatalog(both.primary, both.secondary, pause=60)
    break_primary(server, status=429)
    await waiting.search("text", 1)
    server.faults.clear()
    server.requests.clear()
    assert (await waiting.search("text", 1)).notes
    assert await waiting.relations([record(4, "Silent")]) == [()]
    assert waiting.notes()
    assert not server.sent("/namespaces/standards/")


async def test_writing_goes_to_pinecone(both: FallbackCatalog, server: PineconeServer):
    assert await both.upsert([record(7, "New")]) == 1
    assert await both.primary.fetch(["R007"])
    assert await both.delete(["R007"]) == 1
    break_primary(server, status=400)
    with pytest.raises(PineconeUnavailableError):
        await both.upsert([record(7, "New")])


async def test_relations_are_those_that_the_records_state(both: FallbackCatalog):
    stating = record(3, "States", replaced_by=["R001", "Elsewhere"], precedes=["R001"])
    (found,) = await both.relations([stating], ("replacedBy",))
    assert [(each.kind, each.identifier, each.record is not None) for each in found] == [
        ("replacedBy", "R001", True), ("replacedBy", "Elsewhere", False),
    ]  # fmt: skip
