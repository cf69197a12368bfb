from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.pinecone_server import KEY, PineconeServer
from support.waiting import until

from standards_mcp_catalog.pinecone import upload as module
from standards_mcp_catalog.pinecone.client import PineconeClient, PineconeUnavailableError, Tuning
from standards_mcp_catalog.pinecone.upload import (
    IndexMismatchError,
    Report,
    diff,
    prepare_index,
    upload,
)
from standards_mcp_catalog.records import StandardRecord

pytestmark = pytest.mark.anyio

MakeRecord = Callable[..., StandardRecord]
MakeClient = Callable[..., PineconeClient]


@pytest.fixture
async def client(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[PineconeClient]:
    monkeypatch.setattr(module, "_CREATION_PAUSE", 0.01)
    client = make_client()
    yield client
    await client.aclose()


@pytest.fixture
def records(record: MakeRecord) -> list[StandardRecord]:
    return [record(number, f"Text {number}", parent_id=None) for number in range(200)]


async def test_writes_everything_to_an_empty_index(
    client: PineconeClient, server: PineconeServer, records: list[StandardRecord]
) -> None:
    report = await upload(iter(records), client)
    assert (len(report.new), report.written) == (200, 200)
    assert report.complete
    assert [len(each.body) for each in server.sent("upsert")] == [96, 96, 8]
    assert not server.sent("fetch")  # nothing there, nothing to compare


async def test_writes_only_what_is_new_or_changed_the_next_time(
    client: PineconeClient,
    server: PineconeServer,
    records: list[StandardRecord],
    record: MakeRecord,
) -> None:
    await upload(records[:100], client)
    server.requests.clear()
    changed = [record(3, "Changed"), *records[:3], *records[4:150]]
    report = await upload(changed, client)
    assert (len(report.new), report.changed, report.unchanged) == (50, ["R003"], 99)
    assert sum(len(each.body) for each in server.sent("upsert")) == 51
    assert report.complete


async def test_says_the_differences_without_writing(
    client: PineconeClient, server: PineconeServer, records: list[StandardRecord]
) -> None:
    await upload(records[:3], client)
    server.requests.clear()
    report = await diff(records[1:5], client)
    assert (report.new, report.changed, report.unchanged) == (["R003", "R004"], [], 2)
    assert report.extra == ["R000"]
    assert report.read == 4
    assert not server.sent("upsert")


async def test_goes_on_where_an_interrupted_run_stopped(
    client: PineconeClient, server: PineconeServer, records: list[StandardRecord]
) -> None:
    def cut_off() -> Iterator[StandardRecord]:
        yield from records[:120]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await upload(cut_off(), client)
    assert len(server.records()) == 96
    server.requests.clear()
    report = await upload(records, client)
    assert (len(report.new), report.unchanged) == (104, 96)
    assert len(server.records()) == 200


async def test_a_batch_that_fails_for_good_leaves_the_ones_before_it(
    client: PineconeClient, server: PineconeServer, records: list[StandardRecord]
) -> None:
    server.fail("upsert", status=400, text="no", when=lambda body: body[0]["_id"] == "R096")
    with pytest.raises(PineconeUnavailableError, match="status 400"):
        await upload(records, client)
    assert len(server.records()) == 96


async def test_waits_for_a_pinecone_that_is_lost_at_work_and_not_for_one_that_never_answered(
    client: PineconeClient, server: PineconeServer, records: list[StandardRecord]
) -> None:
    attempts = 3  # those that the SDK makes for one call
    fault = server.fail("/vectors/list", status=503)
    with pytest.raises(PineconeUnavailableError, match="status 503"):
        await diff(records, client)
    assert len(server.sent("/vectors/list")) == attempts
    fault.times = 0
    server.fail("upsert", status=503, times=attempts + 1)
    assert (await upload(records, client)).complete


async def test_does_not_wait_for_a_service_that_asks_for_an_hour(
    client: PineconeClient, server: PineconeServer, records: list[StandardRecord]
) -> None:
    server.fail("upsert", status=429, retry_after=3600)
    with pytest.raises(PineconeUnavailableError, match="in 3600 seconds"):
        await upload(records, client)
    assert len(server.sent("upsert")) == 1


async def test_reports_what_pinecone_cannot_hold_and_writes_the_rest(
    client: PineconeClient, server: PineconeServer, record: MakeRecord
) -> None:
    report = await upload(
        [
            record(1, "Good"),
            record(2, "x", content=" "),
            record(3, "y", _id="é"),
            record(1, "Twin"),
        ],
        client,
    )
    assert [id_ for id_, _ in report.refused] == ["R002", "é", "R001"]
    assert "content is empty" in report.refused[0][1]
    assert "same _id" in report.refused[2][1]
    assert (report.written, report.read) == (1, 4)
    assert list(server.records()) == ["R001"]


async def test_tells_its_progress_and_keeps_to_the_batch_size(
    client: PineconeClient, server: PineconeServer, records: list[StandardRecord]
) -> None:
    told: list[int] = []
    await upload(records[:50], client, batch_size=20, progress=lambda each: told.append(each.read))
    assert told == [20, 40, 50]
    assert [len(each.body) for each in server.sent("upsert")] == [20, 20, 10]


async def test_nothing_to_write_is_complete(client: PineconeClient) -> None:
    report = await upload([], client)
    assert report == Report()
    assert report.complete


class TestTheIndex:
    async def test_that_fits_is_left_as_it_is(
        self, client: PineconeClient, server: PineconeServer
    ) -> None:
        assert await prepare_index(client, create=True) is False
        assert not server.sent("create-for-model")

    async def test_that_is_missing_is_made_only_when_asked_for(
        self, client: PineconeClient, server: PineconeServer, records: list[StandardRecord]
    ) -> None:
        server.indexes.clear()
        with pytest.raises(PineconeUnavailableError, match="--create"):
            await prepare_index(client)
        assert await prepare_index(client, create=True) is True
        assert server.sent("create-for-model")[0].body == {
            "name": "common-core-standards",
            "cloud": "aws",
            "region": "us-east-1",
            "embed": {
                "model": "llama-text-embed-v2",
                "field_map": {"text": "content"},
                "metric": "cosine",
            },
        }
        assert (await upload(records, client)).complete

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"model": "multilingual-e5-large"}, "has the model 'multilingual-e5-large'"),
            ({"field_name": "text"}, "no text field 'content'"),
        ],
    )
    async def test_of_another_kind_is_refused(
        self, client: PineconeClient, server: PineconeServer, fields: dict[str, Any], reason: str
    ) -> None:
        server.add_index(**fields)
        with pytest.raises(IndexMismatchError, match=reason):
            await prepare_index(client, create=True)

    async def test_at_another_host_is_refused(self, server: PineconeServer) -> None:
        tuning = Tuning(controller_host=server.url)
        client = PineconeClient(KEY, host="https://other.svc.pinecone.io", tuning=tuning)
        with pytest.raises(IndexMismatchError, match="PINECONE_HOST"):
            await prepare_index(client)
        await client.aclose()

    async def test_that_never_gets_ready_is_an_error_with_a_next_step(
        self, client: PineconeClient, server: PineconeServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "CREATION_TIMEOUT", 0.2)
        server.indexes.clear()
        create = server.create

        def create_slowly(request: Any) -> Any:
            answer = create(request)
            server.only_index.describes_until_ready = 10_000
            return answer

        monkeypatch.setattr(server, "create", create_slowly)
        with pytest.raises(PineconeUnavailableError, match="run the upload again"):
            await prepare_index(client, create=True)


PROGRAM = """
import asyncio, sys
from standards_mcp_catalog.pinecone.client import PineconeClient
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.pinecone.upload import upload

async def main():
    client = PineconeClient(sys.argv[1], host=sys.argv[2])
    lines = open(sys.argv[3], encoding="utf-8")
    await upload(map(StandardRecord.model_validate_json, lines), client, batch_size=5)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_process_that_is_killed_loses_and_doubles_nothing(
    client: PineconeClient,
    server: PineconeServer,
    records: list[StandardRecord],
    tmp_path: Path,
) -> None:
    file = tmp_path / "records.jsonl"
    lines = (each.model_dump_json(by_alias=True) + "\n" for each in records)
    file.write_text("".join(lines), encoding="utf-8")
    for pause in (0.0, 0.1, 0.2):
        server.requests.clear()
        server.fail("upsert", kind="slow", seconds=0.25)
        process = subprocess.Popen(  # noqa: ASYNC220  starting it takes no time
            [sys.executable, "-c", PROGRAM, KEY, server.url, str(file)]
        )
        await until(lambda: server.sent("upsert"))
        await asyncio.sleep(pause)
        process.kill()
        process.wait()
        await until(lambda: not server.active)  # what was sent before is still written
    server.faults.clear()
    there = len(server.records())
    assert 0 < there < len(records)
    report = await upload(records, client)
    assert report.complete
    assert (len(report.new), report.changed) == (len(records) - there, [])
    assert await client.fetch([each.id for each in records]) == records
