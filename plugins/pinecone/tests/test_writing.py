from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from emulator.server import PineconeServer
from support.records import record

from standards_mcp_catalog import CatalogError
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_pinecone import writing
from standards_mcp_pinecone.client import PineconeClient
from standards_mcp_pinecone.failures import PineconeUnavailableError
from standards_mcp_pinecone.writing import Report, Upload, prepare_index

pytestmark = pytest.mark.anyio

RECORDS = [record(number, f"Text {number}") for number in range(200)]


def sizes(server: PineconeServer) -> list[int]:
    return [len(request.body) for request in server.sent("upsert")]


class TestWriting:
    async def test_sends_new_and_changed_records_in_batches_of_96(
        self, client: PineconeClient, server: PineconeServer
    ):
        assert await client.upsert(iter(RECORDS)) == 200
        assert sizes(server) == [96, 96, 8]
        assert await client.upsert(RECORDS) == 0
        assert await client.upsert([record(7, "Changed"), *RECORDS[8:]]) == 1
        assert sizes(server) == [96, 96, 8, 1]
        assert len(await client.ids()) == 200

    async def test_sends_large_records_in_small_batches(
        self, client: PineconeClient, server: PineconeServer
    ):
        await client.upsert([record(number, "long text " * 1500) for number in range(96)])
        assert len(server.sent("upsert")) > 1
        assert len(server.records()) == 96

    async def test_keeps_fields_that_pinecone_cannot_hold(self, client: PineconeClient):
        own = {"id": "own", "notation_keys": "own", "notation_prefixes": ["own"], "$odd": 1}
        odd = record(1, "Größe", crosswalk={"to": [1, {"a": None}]}, big=2**60, **own)
        await client.upsert([odd])
        assert await client.fetch(["R001"]) == [odd]
        assert (await client.search("Größe", 1)).hits[0].record == odd

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"_id": "näme"}, "ASCII"),
            ({"_id": "x" * 513}, "512"),
            ({"content": " "}, "content is empty"),
            ({"note": "x" * 50_000}, "bytes of metadata"),
        ],
    )
    async def test_refuses_records_that_pinecone_cannot_hold(
        self, client: PineconeClient, server: PineconeServer, fields: Any, reason: str
    ):
        with pytest.raises(CatalogError, match=reason):
            await client.upsert([record(1, "Text", **fields)])
        assert not server.sent("upsert")

    @pytest.mark.parametrize(
        ("fault", "attempts", "message"),
        [
            ({"status": 429, "times": 2}, 3, ""),
            ({"status": 429}, 3, "quota of this minute"),
            ({"status": 429, "text": "limit of the current month"}, 1, "quota of this month"),
            ({"status": 429, "retry_after": 3600}, 1, "in 3600 seconds"),
            ({"status": 400, "text": "no"}, 1, "status 400"),
        ],
    )
    async def test_waits_for_a_quota_that_comes_back_soon(
        self,
        client: PineconeClient,
        server: PineconeServer,
        fault: dict[str, Any],
        attempts: int,
        message: str,
    ):
        server.fail("upsert", **fault)
        if message:
            with pytest.raises(PineconeUnavailableError, match=message):
                await client.upsert(RECORDS[:1])
        else:
            assert await client.upsert(RECORDS[:1]) == 1
        assert len(server.sent("upsert")) == attempts

    async def test_waits_for_a_pinecone_that_answered_before_and_for_no_other(
        self, client: PineconeClient, server: PineconeServer
    ):
        attempts = 3  # those that the SDK makes for one call
        fault = server.fail("/vectors/list", status=503)
        with pytest.raises(PineconeUnavailableError, match="status 503"):
            await Upload().run(RECORDS, client)
        assert len(server.sent("/vectors/list")) == attempts
        fault.times = 0
        server.fail("upsert", status=503, times=attempts + 1)
        assert (await Upload().run(RECORDS, client)).complete


class TestUploads:
    async def test_write_only_new_and_changed_records(
        self, client: PineconeClient, server: PineconeServer
    ):
        report = await Upload().run(RECORDS[:100], client)
        assert (len(report.new), report.written, report.complete) == (100, 100, True)
        assert not server.sent("fetch")  # nothing there, nothing to compare
        server.requests.clear()
        records = [record(3, "Changed"), *RECORDS[:3], *RECORDS[4:150]]
        report = await Upload().run(records, client)
        assert (len(report.new), report.changed, report.unchanged) == (50, ["R003"], 99)
        assert (sum(sizes(server)), report.complete) == (51, True)
        assert await Upload().run([], client) == Report(extra=sorted(each.id for each in records))

    async def test_write_nothing_in_a_dry_run(self, client: PineconeClient, server: PineconeServer):
        await Upload().run(RECORDS[:3], client)
        server.requests.clear()
        report = await Upload(dry_run=True).run(RECORDS[1:5], client)
        assert (report.new, report.changed, report.unchanged) == (["R003", "R004"], [], 2)
        assert (report.extra, report.read) == (["R000"], 4)
        assert not server.sent("upsert")

    async def test_go_on_where_an_interrupted_one_stopped(
        self, client: PineconeClient, server: PineconeServer
    ):
        def cut_off() -> Iterator[StandardRecord]:
            yield from RECORDS[:120]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await Upload().run(cut_off(), client)
        assert len(server.records()) == 96
        report = await Upload().run(RECORDS, client)
        assert (len(report.new), report.unchanged) == (104, 96)
        assert len(server.records()) == 200

    async def test_report_records_that_pinecone_cannot_hold_and_write_the_others(
        self, client: PineconeClient, server: PineconeServer
    ):
        bad = [record(2, "x", content=" "), record(3, "y", _id="é")]
        report = await Upload().run([RECORDS[1], *bad, record(1, "Twin")], client)
        reasons = dict(report.refused)
        assert list(reasons) == ["R002", "é", "R001"]
        assert "content is empty" in reasons["R002"]
        assert "same _id" in reasons["R001"]
        assert (report.written, report.read) == (1, 4)
        assert list(server.records()) == ["R001"]

    async def test_report_their_progress_and_keep_to_the_batch_size(
        self, client: PineconeClient, server: PineconeServer
    ):
        progress: list[int] = []
        upload = Upload(batch_size=20, progress=lambda report: progress.append(report.read))
        await upload.run(RECORDS[:50], client)
        assert (progress, sizes(server)) == ([20, 40, 50], [20, 20, 10])


class TestTheIndex:
    async def test_that_fits_is_left_as_it_is(self, client: PineconeClient, server: PineconeServer):
        assert await prepare_index(client, create=True) is False
        assert not server.sent("create-for-model")

    async def test_that_is_missing_is_made_only_when_asked_for(
        self, client: PineconeClient, server: PineconeServer, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(writing, "_CREATION_PAUSE", 0.01)
        server.indexes.clear()
        with pytest.raises(PineconeUnavailableError, match="--create"):
            await prepare_index(client)
        assert await prepare_index(client, create=True) is True
        embed = {"model": "llama-text-embed-v2", "metric": "cosine"}
        assert server.sent("create-for-model")[0].body == {
            "name": "common-core-standards",
            "cloud": "aws",
            "region": "us-east-1",
            "embed": embed | {"field_map": {"text": "content"}},
        }
        assert (await Upload(is_new=True).run(RECORDS, client)).complete

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"model": "multilingual-e5-large"}, "has the model 'multilingual-e5-large'"),
            ({"field_name": "text"}, "no text field 'content'"),
        ],
    )
    async def test_of_another_kind_is_refused(
        self, client: PineconeClient, server: PineconeServer, fields: dict[str, Any], reason: str
    ):
        server.add_index(**fields)
        with pytest.raises(CatalogError, match=reason):
            await prepare_index(client, create=True)

    async def test_at_another_host_is_refused(self, server: PineconeServer):
        client = server.client(host="https://other.svc.pinecone.io")
        with pytest.raises(CatalogError, match="PINECONE_HOST"):
            await prepare_index(client)
        await client.aclose()

    async def test_that_never_gets_ready_is_an_error_with_a_next_step(
        self, client: PineconeClient, server: PineconeServer, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(writing, "_CREATION_PAUSE", 0.01)
        monkeypatch.setattr(writing, "CREATION_TIMEOUT", 0.2)
        original = server.described
        pending = {"status": {"ready": False, "state": "Initializing"}}
        monkeypatch.setattr(server, "described", lambda index: original(index) | pending)
        server.indexes.clear()
        with pytest.raises(PineconeUnavailableError, match="run the upload again"):
            await prepare_index(client, create=True)
