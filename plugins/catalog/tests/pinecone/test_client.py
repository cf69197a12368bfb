"""The real SDK over real HTTP, against a loopback server that is strict about the contract."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from support.pinecone_server import KEY, PineconeServer
from support.waiting import WAIT, until

from standards_mcp.filters import matches, parse_filter
from standards_mcp_catalog import CatalogError, CatalogUnavailableError, FilterError
from standards_mcp_catalog.pinecone.client import (
    PineconeClient,
    PineconeUnavailableError,
)
from standards_mcp_catalog.pinecone.connection import RateWindow, checked_host, proxy_for
from standards_mcp_catalog.records import StandardRecord

pytestmark = pytest.mark.anyio

MakeRecord = Callable[..., StandardRecord]
MakeClient = Callable[..., PineconeClient]


@pytest.fixture
async def client(make_client: MakeClient) -> AsyncIterator[PineconeClient]:
    client = make_client()
    yield client
    await client.aclose()


@pytest.fixture
async def filled(
    client: PineconeClient, small_catalog: list[StandardRecord], server: PineconeServer
) -> PineconeClient:
    await client.upsert(small_catalog)
    server.requests.clear()
    return client


def body_of(server: PineconeServer, path: str = "search") -> Any:
    return server.sent(path)[-1].body


def ids(result: Any) -> list[str]:
    return [hit.record.id for hit in result.hits]


class TestSearch:
    async def test_asks_for_twice_as_many_candidates_and_reranks_them_by_content(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        result = await filled.search("compare two fractions", 3)
        assert ids(result)[0] == "R000"
        assert len(result.hits) == 3
        assert body_of(server) == {
            "query": {"inputs": {"text": "compare two fractions"}, "top_k": 6},
            "rerank": {
                "model": "bge-reranker-v2-m3",
                "top_n": 3,
                "rank_fields": ["content"],
                "parameters": {"truncate": "END"},
            },
        }

    @pytest.mark.parametrize(("top_k", "asked"), [(1, 2), (50, 100), (51, 100), (500, 100)])
    async def test_never_hands_the_reranker_more_than_100_documents(
        self, filled: PineconeClient, server: PineconeServer, top_k: int, asked: int
    ) -> None:
        assert len((await filled.search("fractions", top_k)).hits) == min(top_k, 8)
        assert body_of(server)["query"]["top_k"] == asked
        assert body_of(server)["rerank"]["top_n"] == min(top_k, 100)

    async def test_scores_never_rise_and_stay_between_0_and_1(
        self, filled: PineconeClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rising = [0.5, 1.7, 0.9, -0.3]
        monkeypatch.setattr(
            PineconeServer,
            "_reranked",
            staticmethod(
                lambda hits, _text, _rerank: [
                    (score, id_, fields)
                    for score, (_, id_, fields) in zip(rising, hits, strict=False)
                ]
            ),
        )
        scores = [hit.score for hit in (await filled.search("fractions", 4)).hits]
        assert scores == [0.5, 0.5, 0.5, 0.0]

    async def test_blank_text_finds_nothing_and_asks_nothing(
        self, client: PineconeClient, server: PineconeServer
    ) -> None:
        assert (await client.search("  \n")).hits == ()
        assert not server.requests

    async def test_a_record_that_is_no_standard_is_left_out_and_mentioned(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        server.records()["foreign"] = {"content": "compare fractions fractions"}
        result = await filled.search("compare fractions", 8)
        assert "foreign" not in ids(result)
        assert "1 results were left out" in result.notes[0]
        assert await filled.fetch(["foreign", "R000"]) == await filled.fetch(["R000"])

    async def test_a_namespace_that_does_not_exist_is_empty(self, client: PineconeClient) -> None:
        assert (await client.search("fractions")).hits == ()
        assert (await client.stats()).records == 0
        assert (await client.facets()).subjects == {}
        assert await client.find("3.NF.1") == []
        assert await client.delete(["R000"]) == 0


class TestReranker:
    async def test_its_quota_is_answered_once_without_it_and_with_a_note(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        server.fail("search", status=429, text="quota", when=lambda body: "rerank" in body)
        result = await filled.search("compare two fractions", 3)
        assert ids(result)[0] == "R000"
        assert len(result.hits) == 3
        assert "not reranked, because the quota" in result.notes[0]
        assert ["rerank" in each.body for each in server.sent("search")] == [True, False]

    @pytest.mark.parametrize(
        ("fault", "note"),
        [
            ({"status": 429, "retry_after": 60}, "because the quota"),
            ({"kind": "hang"}, "did not answer in time"),
        ],
    )
    async def test_it_never_costs_the_search(
        self,
        make_client: MakeClient,
        server: PineconeServer,
        small_catalog: list[StandardRecord],
        fault: dict[str, Any],
        note: str,
    ) -> None:
        client = make_client()
        await client.upsert(small_catalog)
        client.connections.deadline = 5.0  # of which the search without it has two
        server.fail("search", when=lambda body: "rerank" in body, **fault)
        result = await client.search("compare two fractions", 3)
        assert ids(result)[0] == "R000"
        assert note in result.notes[0]
        await client.aclose()


NESTED = [
    {"$and": [{"subject": "Science"}, {"$or": [{"depth": 0}, {"education_levels": "05"}]}]},
    {"$or": [{"$and": [{"subject": "Science"}, {"depth": {"$lt": 3}}]}, {"_none": True}]},
    {"$or": [{"subject": "Science"}, {"subject": {"$in": ["Mathematics"]}}]},
    {"$and": [{"$and": [{"subject": {"$ne": "Science"}}]}, {"depth": {"$gte": 0, "$lte": 2}}]},
    {
        "$or": [
            {"$and": [{"subject": {"$ne": "Science"}}, {"subject": {"$ne": "Mathematics"}}]},
            {"$and": [{"depth": {"$gte": 9}}, {"depth": {"$gte": 8}}, {"depth": {"$lt": 9}}]},
            {"$and": [{"education_levels": {"$exists": False}}, {"is_leaf": True}]},
        ]
    },
    {"depth": {"$in": [0, True]}},
    {"subject": {"$nin": ["Science", "Language Arts"]}, "is_leaf": True},
]


class TestFilters:
    @pytest.mark.parametrize("expression", NESTED)
    async def test_nesting_is_rewritten_and_finds_the_same(
        self,
        filled: PineconeClient,
        small_catalog: list[StandardRecord],
        expression: dict[str, Any],
    ) -> None:
        node = parse_filter(expression)
        expected = {each.id for each in small_catalog if matches(node, each.to_dict())}
        assert set(ids(await filled.search("fractions", 50, expression))) == expected

    async def test_an_empty_filter_is_left_out(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        await filled.search("fractions", 5, {})
        assert "filter" not in body_of(server)["query"]

    @pytest.mark.parametrize(
        "expression",
        [
            {"subject": {"$like": "Math"}},
            {"$and": [{"$or": [{f"a{i}": 1}, {f"b{i}": 1}]} for i in range(8)]},
            {"$or": [{"$and": [{"x": {"$in": [1]}}, {"x": {"$in": [2]}}]}, {"y": 1}]},
        ],
    )
    async def test_what_pinecone_cannot_filter_by_is_refused_before_anything_is_sent(
        self, client: PineconeClient, server: PineconeServer, expression: dict[str, Any]
    ) -> None:
        with pytest.raises(FilterError):
            await client.search("fractions", 5, expression)
        assert not server.requests


class TestLookup:
    async def test_fetches_by_id_in_the_order_asked_for(self, filled: PineconeClient) -> None:
        found = await filled.fetch(["R003", "none", "R001", "R003", "näme", ""])
        assert [record.id for record in found] == ["R003", "R001", "R003"]

    async def test_fetches_more_ids_than_one_url_holds(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        records = [record(number, f"Text {number}") for number in range(250)]
        await client.upsert(records)
        server.requests.clear()
        assert await client.fetch([each.id for each in records]) == records
        assert sorted(len(each.query["ids"]) for each in server.sent("fetch")) == [50, 100, 100]

    @pytest.mark.parametrize(
        "identifier",
        ["3.NF.A.1", "3.nf.1", "CCSS.Math.Content.3.NF.A.1", "S11437E2", "Old.3",
         "ea60c8d1-65f6-481b-90bf-f782ce193f93"],
    )  # fmt: skip
    async def test_any_spelling_finds_a_record_that_this_program_wrote(
        self, client: PineconeClient, record: MakeRecord, identifier: str
    ) -> None:
        wanted = record(
            1, "Understand a fraction.", _id="EA60C8D165F6481B90BFF782CE193F93",
            statement_notation="CCSS.Math.Content.3.NF.A.1", asn_identifier="S11437E2",
            alt_statement_notations=["Old.3"],
        )  # fmt: skip
        await client.upsert([wanted, record(2, "Other.")])
        assert await client.find(identifier) == [wanted]

    async def test_records_of_other_writers_are_found_by_what_they_say(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        await client.upsert([record(1, "Text.", asn_identifier="S1143ABC")])
        for name in ("notation_keys", "content_hash"):
            del server.records()["R001"][name]
        for identifier in ("XQ.1", "xq.1", "s1143abc", "R001"):
            assert [found.id for found in await client.find(identifier)] == ["R001"]

    async def test_an_id_takes_one_request_and_a_code_two(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        await filled.find("R001")
        assert [each.path for each in server.requests] == ["/vectors/fetch"]
        server.requests.clear()
        await filled.find("XQ.1")
        assert [each.path for each in server.requests] == [
            "/vectors/fetch",
            "/vectors/fetch_by_metadata",
        ]

    async def test_twenty_codes_take_two_requests(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        codes = [*(f"XQ.{number}" for number in range(1, 19)), "XQ.77", ""]
        found = await filled.find_all(codes)
        assert [each.path for each in server.requests] == [
            "/vectors/fetch",
            "/vectors/fetch_by_metadata",
        ]
        assert found[0] == await filled.find("XQ.1")
        assert [len(each) for each in (found[0], found[1], *found[-2:])] == [1, 1, 0, 0]

    async def test_ids_and_codes_at_once_are_each_answered(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        records = [
            record(1, "One", statement_notation="xq-9"),
            record(2, "Two", _id="EA60C8D165F6481B90BFF782CE193F93", statement_notation="XQ.9"),
        ]
        await client.upsert(records)
        del server.records()["R001"]["notation_keys"]
        names = ["XQ.9", "R001", "ea60c8d1-65f6-481b-90bf-f782ce193f93", "xq-9", "nothing"]
        found = await client.find_all(names)
        assert ["".join(each.id[0] for each in one) for one in found] == ["ER", "R", "E", "RE", ""]

    async def test_a_miss_is_empty_and_suggests_neighbouring_codes(
        self, filled: PineconeClient
    ) -> None:
        assert await filled.find("XQ.99") == []
        assert await filled.find("  ") == []
        suggested = await filled.suggest("XQ.99", 3)
        assert len(suggested) == 3
        assert all((each.statement_notation or "").startswith("XQ.") for each in suggested)
        assert await filled.suggest("ea60c8d1-65f6-481b-90bf-f782ce193f93") == []
        assert await filled.suggest("fractions") == []

    async def test_fetches_by_metadata_keep_to_five_a_second(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        started = time.monotonic()
        await asyncio.gather(*(filled.find(f"XQ.{number}") for number in range(8)))
        assert time.monotonic() - started > 0.95
        # The server refuses what is too quick; on a busy machine some come late, and again.
        assert len(server.sent("fetch_by_metadata")) >= 8

    async def test_a_quota_of_the_second_is_asked_again(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        server.fail("fetch_by_metadata", status=429, times=1)
        assert [found.id for found in await filled.find("XQ.1")] == ["R001"]

    async def test_the_window_lets_no_more_than_its_count_through(self) -> None:
        window, began = RateWindow(3, 0.1), time.monotonic()
        for _ in range(7):
            await window.wait()
        assert time.monotonic() - began > 0.19, "the fourth and the seventh wait"


class TestASelection:
    async def test_goes_on_to_further_pages_until_there_are_enough(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        await client.upsert(record(number, "Text") for number in range(230))
        assert len(await client.select({"subject": "Mathematics"}, 1000)) == 230
        assert len(await client.select({"subject": "Mathematics"}, 120)) == 120
        sizes = [request.body["limit"] for request in server.sent("fetch_by_metadata")]
        assert sizes == [100, 100, 100, 100, 20]


class TestFacets:
    async def test_a_large_index_is_known_from_its_first_500_records(
        self, client: PineconeClient, record: MakeRecord
    ) -> None:
        common = [record(number, "Text", _id=f"A{number:03}") for number in range(510)]
        seen = record(0, "Text", _id="0", subject="Science", standard_set_id="other")
        await client.upsert([seen, *common, record(1, "Text", _id="Z", subject="Rare")])
        facets, sets = await client.facets(), await client.sets()
        assert facets.subjects == {"Science": 1, "Mathematics": 499}
        assert facets.education_levels == {"03": 500}
        assert [(each.id, each.records) for each in sets.sets] == [("set-math", 499), ("other", 1)]
        values = await client.values("subject")
        assert values.counts == facets.subjects
        assert not any((values.complete, values.counted, sets.complete, sets.counted))

    async def test_they_are_remembered_and_asked_for_once(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        await asyncio.gather(filled.facets(), filled.facets(), filled.facets())
        assert len(server.sent("/vectors/list")) == 1

    async def test_a_small_index_is_known_from_the_sample(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        assert (await filled.values("education_levels")).complete
        assert set((await filled.facets()).subjects) == {"Mathematics", "Language Arts", "Science"}
        assert not server.sent("fetch_by_metadata")


class TestWriting:
    async def test_a_record_comes_back_as_it_was(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        odd = record(
            1, "Größe ≥ 3 — naïve", depth=2, parent_id=None, child_ids=[], ancestor_ids=["A", "B"],
            crosswalk={"to": [1, {"a": None}]}, scores=[1, 2], empty=[], big=2**60, share=0.25,
            id="own", notation_keys="own", notation_prefixes=["own"], **{"$odd": 1},
        )  # fmt: skip
        assert await client.upsert([odd]) == 1
        assert (await client.fetch(["R001"])) == [odd]
        assert (await client.search("Größe", 1)).hits[0].record == odd
        assert not [name for name, value in server.records()["R001"].items() if value is None]

    async def test_writes_what_changed_in_batches_of_96(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        records = [record(number, f"Text {number}") for number in range(200)]
        assert await client.upsert(iter(records)) == 200
        assert [len(each.body) for each in server.sent("upsert")] == [96, 96, 8]
        assert server.sent("upsert")[0].headers["content-type"] == "application/x-ndjson"
        assert await client.upsert(records) == 0
        changed = [record(7, "Changed"), *records[8:]]
        assert await client.upsert(changed) == 1
        assert len(server.sent("upsert")) == 4

    async def test_large_records_make_small_batches(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        await client.upsert([record(number, "long text " * 1500) for number in range(96)])
        assert len(server.sent("upsert")) > 1
        assert len(server.records()) == 96

    @pytest.mark.parametrize(
        ("fields", "reason"),
        [
            ({"_id": "näme"}, "ASCII"),
            ({"_id": "x" * 513}, "512"),
            ({"content": " "}, "content is empty"),
            ({"note": "x" * 50_000}, "bytes of metadata"),
        ],
    )
    async def test_what_pinecone_cannot_hold_is_refused_with_its_id(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord,
        fields: dict[str, Any], reason: str,
    ) -> None:  # fmt: skip
        with pytest.raises(CatalogError, match=reason):
            await client.upsert([record(1, "Text", **fields)])
        assert not server.sent("upsert")

    async def test_waits_for_the_quota_of_the_minute(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        server.fail("upsert", status=429, text="slow down", times=2)
        assert await client.upsert([record(1, "Text")]) == 1
        assert len(server.sent("upsert")) == 3

    async def test_gives_up_when_the_quota_does_not_come_back(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        server.fail("upsert", status=429, text="slow down")
        with pytest.raises(PineconeUnavailableError, match="quota of this minute"):
            await client.upsert([record(1, "Text")])
        assert len(server.sent("upsert")) == 3

    async def test_does_not_wait_for_the_quota_of_the_month(
        self, client: PineconeClient, server: PineconeServer, record: MakeRecord
    ) -> None:
        server.fail("upsert", status=429, text="token limit for the current month reached")
        with pytest.raises(PineconeUnavailableError) as caught:
            await client.upsert([record(1, "Text")])
        assert caught.value.cause == "month_quota"
        assert len(server.sent("upsert")) == 1

    async def test_lists_all_ids_page_by_page(
        self, client: PineconeClient, record: MakeRecord
    ) -> None:
        await client.upsert([record(number, "Text") for number in range(205)])
        assert len(await client.writer.ids()) == 205


class TestStats:
    async def test_tells_what_the_namespace_holds(self, filled: PineconeClient) -> None:
        stats = await filled.stats()
        assert (stats.backend, stats.location, stats.records) == (
            "pinecone",
            "common-core-standards",
            8,
        )
        assert stats.details["namespace"] == "standards"

    async def test_tells_the_model_where_the_index_had_to_be_asked_for(
        self, make_client: MakeClient
    ) -> None:
        client = make_client(knows_host=False)
        assert (await client.stats()).model == "llama-text-embed-v2"
        await client.aclose()


FAULTS = [
    ({"status": 401, "text": "Unauthorized"}, "key", "PINECONE_API_KEY"),
    ({"status": 403, "text": "Forbidden"}, "key", "PINECONE_API_KEY"),
    ({"status": 404, "text": "Resource not found"}, "index", "PINECONE_INDEX_NAME"),
    ({"status": 402, "text": "Payment required"}, "refused", "payment"),
    ({"status": 400, "text": "Bad filter"}, "refused", "Bad filter"),
    ({"status": 429, "text": "Too many requests"}, "minute_quota", "in a minute"),
    ({"status": 429, "retry_after": 30}, "minute_quota", "in 30 seconds"),
    ({"status": 429, "retry_after": 1}, "minute_quota", "Try again in 1 second."),
    ({"status": 429, "text": "tokens for the current month"}, "month_quota", "upgrade the plan"),
    ({"status": 500}, "server", "status.pinecone.io"),
    ({"status": 503, "text": "unavailable"}, "server", "Try again"),
    ({"kind": "reset"}, "unreachable", "HTTPS_PROXY"),
    ({"kind": "hang"}, "timeout", "deadline"),
    ({"kind": "slow", "seconds": 30}, "timeout", "within 1.5 seconds"),
    ({"kind": "truncated"}, "unreachable", "Check the network"),
    ({"kind": "malformed"}, "malformed", "could not be read"),
    ({"kind": "empty"}, "malformed", "could not be read"),
]


class TestFailures:
    @pytest.mark.parametrize(("fault", "cause", "advice"), FAULTS)
    async def test_each_says_its_cause_and_the_next_step_within_the_deadline(
        self,
        make_client: MakeClient,
        server: PineconeServer,
        fault: dict[str, Any],
        cause: str,
        advice: str,
    ) -> None:
        client = make_client(deadline=1.5 if cause == "timeout" else WAIT)
        server.fail("/vectors/fetch", **fault)
        with pytest.raises(PineconeUnavailableError) as caught:
            await client.fetch(["R000"])
        assert caught.value.cause == cause
        assert advice in str(caught.value)
        assert isinstance(caught.value, CatalogUnavailableError)
        server.faults.clear()
        assert await client.fetch(["R000"]) == []  # the client is usable afterwards
        await client.aclose()

    @pytest.mark.parametrize("fault", [{"status": 503}, {"status": 500}, {"kind": "reset"}])
    async def test_a_fault_that_passes_is_not_noticed(
        self, filled: PineconeClient, server: PineconeServer, fault: dict[str, Any]
    ) -> None:
        server.fail("search", times=1, **fault)
        assert (await filled.search("fractions")).notes == ()

    async def test_an_index_that_does_not_exist_is_named(
        self, server: PineconeServer, make_client: MakeClient
    ) -> None:
        client = make_client(knows_host=False)
        server.indexes.clear()
        with pytest.raises(PineconeUnavailableError, match="common-core-standards") as caught:
            await client.search("fractions")
        assert caught.value.cause == "index"
        await client.aclose()

    async def test_an_index_that_is_described_wrongly_is_an_answer_that_cannot_be_read(
        self, server: PineconeServer, make_client: MakeClient
    ) -> None:
        client = make_client(knows_host=False)
        server.url = "http://elsewhere.example.org"
        with pytest.raises(PineconeUnavailableError, match="unencrypted") as caught:
            await client.search("fractions")
        assert caught.value.cause == "malformed"
        await client.aclose()

    async def test_an_index_without_a_host_yet_is_to_be_waited_for(
        self, server: PineconeServer, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client, described = make_client(knows_host=False), server.described
        monkeypatch.setattr(server, "described", lambda index: described(index) | {"host": ""})
        with pytest.raises(PineconeUnavailableError, match="still being made"):
            await client.search("fractions")
        await client.aclose()

    async def test_nobody_there_is_unreachable(self) -> None:
        client = PineconeClient(KEY, host="http://127.0.0.1:9", deadline=WAIT)
        with pytest.raises(PineconeUnavailableError) as caught:
            await client.search("fractions")
        assert caught.value.cause == "unreachable"
        await client.aclose()

    async def test_a_search_that_hangs_ends_at_the_deadline(
        self, make_client: MakeClient, server: PineconeServer
    ) -> None:
        client = make_client(deadline=1.0)
        server.fail("search", kind="hang")
        started = time.monotonic()
        with pytest.raises(PineconeUnavailableError, match="within 1 seconds"):
            await client.search("fractions")
        assert time.monotonic() - started > 0.9
        await client.aclose()

    async def test_a_cancelled_call_ends_at_once_and_leaves_the_client_usable(
        self, filled: PineconeClient, server: PineconeServer
    ) -> None:
        fault = server.fail("search", kind="hang", times=1)
        task = asyncio.create_task(filled.search("fractions"))
        await until(lambda: not fault.times)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await filled.search("fractions")).hits

    async def test_an_error_of_ours_is_not_taken_for_pinecones(
        self, client: PineconeClient
    ) -> None:
        async def broken() -> None:
            async with client.connections.index():
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await broken()


async def test_what_pinecone_says_steers_no_terminal(
    make_client: MakeClient, server: PineconeServer
) -> None:
    client = make_client()
    server.fail("describe_index_stats", status=400, text="no \x1b[31mred\x1b[0m", times=1)
    with pytest.raises(PineconeUnavailableError, match=r"no \\u001b\[31mred\\u001b\[0m"):
        await client.stats()
    await client.aclose()


class TestSecrecy:
    async def test_the_key_is_in_no_error_log_or_repr(
        self,
        make_client: MakeClient,
        server: PineconeServer,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.DEBUG)
        client = make_client("pcsk_wrong_secret_key\n")
        shown = [repr(client), repr(client.connections), repr(vars(client.connections))]
        for text in ("Unauthorized", "no such key: pcsk_wrong_secret_key"):
            server.fail("describe_index_stats", status=401, text=text, times=1)
            with pytest.raises(PineconeUnavailableError) as caught:
                await client.stats()
            shown += [str(caught.value), repr(caught.value)]
        await client.aclose()
        assert server.requests[-1].headers["api-key"] == "pcsk_wrong_secret_key"
        assert "secret_key" not in "".join([*shown, caplog.text])

    async def test_a_key_that_no_header_can_hold_is_not_shown_either(
        self, make_client: MakeClient
    ) -> None:
        client = make_client("pcsk_sécret_key")
        with pytest.raises(PineconeUnavailableError) as caught:
            await client.stats()
        assert "cret_key" not in str(caught.value)
        assert (caught.value.cause, "Copy it" in str(caught.value)) == ("key", True)
        await client.aclose()


class TestConnections:
    async def test_the_sdk_retries_as_it_was_told(
        self, client: PineconeClient, server: PineconeServer, caplog: pytest.LogCaptureFixture
    ) -> None:
        for status, attempts in ((429, 1), (503, 3)):
            server.requests.clear()
            server.fail("search", status=status, times=attempts)
            with pytest.raises(PineconeUnavailableError):
                async with client.connections.index() as index:
                    await index.search(namespace="standards", top_k=1, inputs={"text": "x"})
            assert len(server.sent("search")) == attempts
        assert "in its own way" not in caplog.text

    def test_the_sdk_is_imported_by_the_first_call(self) -> None:
        program = (
            "import sys; from standards_mcp_catalog.pinecone.client import PineconeClient; "
            "PineconeClient('key'); print('pinecone' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        assert done.stdout.strip() == b"False"

    async def test_an_sdk_that_cannot_be_told_so_keeps_its_own_retries(
        self,
        make_client: MakeClient,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        from pinecone._internal import constants

        monkeypatch.delattr(constants, "DATA_PLANE_API_VERSION")
        client = make_client()
        assert await client.fetch(["R000"]) == []
        assert "in its own way" in caplog.text
        await client.aclose()

    async def test_one_client_serves_many_calls_and_asks_for_the_host_once(
        self, make_client: MakeClient, server: PineconeServer
    ) -> None:
        client = make_client(knows_host=False)
        await asyncio.gather(*(client.search(f"fractions {number}") for number in range(20)))
        await client.aclose()
        assert len(server.sent("/indexes/")) == 1
        assert len(server.sent("search")) == 20

    async def test_no_more_calls_run_at_a_time_than_allowed(
        self, make_client: MakeClient, server: PineconeServer
    ) -> None:
        client = make_client(concurrency=3)
        server.fail("fetch", kind="slow", seconds=0.3)
        await asyncio.gather(*(client.fetch([f"R{number}"]) for number in range(12)))
        assert server.most_active == 3
        await client.aclose()

    async def test_survives_a_server_that_closes_idle_connections(
        self, make_client: MakeClient, server: PineconeServer
    ) -> None:
        server.idle_timeout = 0.5
        client = make_client()
        for _ in range(3):
            assert await client.fetch(["R000"]) == []
            await asyncio.sleep(1)
        assert len(server.sent("fetch")) == 3
        await client.aclose()

    def test_serves_two_event_loops_in_a_row(
        self, make_client: MakeClient, server: PineconeServer
    ) -> None:
        client = make_client()

        async def once(*, close: bool) -> None:
            await client.fetch(["R000"])
            if close:
                await client.aclose()
                await client.aclose()

        asyncio.run(once(close=True))
        with warnings.catch_warnings():
            # The loop that nobody closed the client in leaves its sockets to the collector.
            warnings.simplefilter("ignore", ResourceWarning)
            asyncio.run(once(close=False))
            asyncio.run(once(close=True))
            gc.collect()
        assert len(server.sent("fetch")) == 3

    async def test_a_client_that_was_closed_opens_again(self, filled: PineconeClient) -> None:
        await filled.aclose()
        assert (await filled.stats()).records == 8

    async def test_a_known_host_is_not_asked_for(self, server: PineconeServer) -> None:
        client = PineconeClient(KEY, host=server.url)
        assert await client.fetch(["R000"]) == []
        assert not server.sent("/indexes")
        await client.aclose()

    async def test_a_proxy_of_the_environment_is_used(
        self, server: PineconeServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        direct = PineconeClient(KEY, host="http://localhost:9", deadline=WAIT)
        # The server answers like a proxy: it takes the path of an absolute address.
        assert await direct.fetch(["R000"]) == []
        await direct.aclose()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("a-1.svc.pinecone.io", "https://a-1.svc.pinecone.io"),
        (" https://a-1.svc.pinecone.io/ ", "https://a-1.svc.pinecone.io"),
        ("http://127.0.0.1:5080", "http://127.0.0.1:5080"),
        ("http://localhost:5080", "http://localhost:5080"),
        ("http://[::1]:5080", "http://[::1]:5080"),
    ],
)
def test_hosts_are_https_unless_on_loopback(host: str, url: str) -> None:
    assert checked_host(host) == url


@pytest.mark.parametrize(
    "host", ["http://a.pinecone.io", "ftp://a.io", "https://", "a.io/path", "http://10.0.0.1"]
)
def test_hosts_that_would_leak_the_key_or_are_none_are_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"host|unencrypted"):
        PineconeClient(KEY, host=host)


@pytest.mark.parametrize(
    ("environment", "host", "proxy"),
    [
        ({"HTTPS_PROXY": "http://p:3128"}, "https://a.io", "http://p:3128"),
        ({"https_proxy": "p:3128"}, "https://a.io", "http://p:3128"),
        ({"ALL_PROXY": "http://p:1"}, "https://a.io", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://a.io", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".io"}, "https://a.io", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "b.io"}, "https://a.io", "http://p:1"),
        ({}, "https://a.io", None),
    ],
)
def test_proxies_are_read_as_other_programs_do(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], host: str, proxy: str | None
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(host) == proxy
