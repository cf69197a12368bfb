"""Searches and look-ups by the real SDK, against a server that is strict about requests."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from emulator.server import PineconeServer
from support.records import SMALL_CATALOG, record

from standards_mcp.filters import matches, parse_filter
from standards_mcp_catalog import FilterError
from standards_mcp_pinecone.client import PineconeClient

pytestmark = pytest.mark.anyio

GUID = "EA60C8D165F6481B90BFF782CE193F93"


@pytest.fixture
async def filled(client: PineconeClient, server: PineconeServer) -> PineconeClient:
    await client.upsert(SMALL_CATALOG)
    server.requests.clear()
    return client


def ids(result: Any) -> list[str]:
    return [hit.record.id for hit in result.hits]


def paths(server: PineconeServer) -> list[str]:
    return [request.path for request in server.requests]


class TestSearch:
    async def test_reranks_twice_as_many_candidates_by_content(
        self, filled: PineconeClient, server: PineconeServer
    ):
        result = await filled.search("compare two fractions", 3, {})
        assert (ids(result)[0], len(result.hits)) == ("R000", 3)
        assert server.requests[-1].body == {
            "query": {"inputs": {"text": "compare two fractions"}, "top_k": 6},
            "rerank": {
                "model": "bge-reranker-v2-m3",
                "top_n": 3,
                "rank_fields": ["content"],
                "parameters": {"truncate": "END"},
            },
        }

    async def test_says_which_words_a_record_and_the_query_have(self, filled: PineconeClient):
        hits = (await filled.search("comparing two fractions", 8)).hits
        reasons = {hit.record.id: hit.why for hit in hits}
        assert reasons["R000"] == "comparing, two, fractions"
        assert "" in reasons.values()

    @pytest.mark.parametrize(("top_k", "candidates"), [(1, 2), (50, 100), (51, 100), (500, 100)])
    async def test_hands_the_reranker_at_most_100_documents(
        self, filled: PineconeClient, server: PineconeServer, top_k: int, candidates: int
    ):
        assert len((await filled.search("fractions", top_k)).hits) == min(top_k, 8)
        body = server.requests[-1].body
        assert (body["query"]["top_k"], body["rerank"]["top_n"]) == (candidates, min(top_k, 100))

    async def test_has_scores_that_never_rise_and_stay_between_0_and_1(
        self, filled: PineconeClient, monkeypatch: pytest.MonkeyPatch
    ):
        def rerank(hits: Any, *_: Any) -> Any:
            scores = [0.5, 1.7, 0.9, -0.3]
            return [(score, *hit[1:]) for score, hit in zip(scores, hits, strict=False)]

        monkeypatch.setattr(PineconeServer, "_reranked", staticmethod(rerank))
        scores = [hit.score for hit in (await filled.search("fractions", 4)).hits]
        assert scores == [0.5, 0.5, 0.5, 0.0]

    async def test_for_a_blank_text_sends_nothing(
        self, client: PineconeClient, server: PineconeServer
    ):
        assert (await client.search("  \n")).hits == ()
        assert not server.requests

    async def test_leaves_out_records_of_another_kind_and_says_so(
        self, filled: PineconeClient, server: PineconeServer
    ):
        server.records()["foreign"] = {"content": "compare fractions fractions"}
        result = await filled.search("compare fractions", 8)
        assert "foreign" not in ids(result)
        assert "1 results were left out" in result.notes[0]
        assert await filled.fetch(["foreign", "R000"]) == await filled.fetch(["R000"])

    @pytest.mark.parametrize(
        ("fault", "reason"),
        [
            ({"status": 429}, "because the quota"),
            ({"status": 429, "retry_after": 60}, "because the quota"),
            ({"kind": "hang"}, "did not answer in time"),
        ],
    )
    async def test_is_answered_without_a_reranker_that_fails(
        self, filled: PineconeClient, server: PineconeServer, fault: dict[str, Any], reason: str
    ):
        filled.connections.deadline = 5.0  # of which the search without it has two
        server.fail("search", when=lambda body: "rerank" in body, **fault)
        result = await filled.search("compare two fractions", 3)
        assert (ids(result)[0], len(result.hits)) == ("R000", 3)
        assert reason in result.notes[0]
        assert ["rerank" in each.body for each in server.sent("search")] == [True, False]


class TestFilters:
    @pytest.mark.parametrize(
        "expression",
        [
            {"$or": [{"$and": [{"subject": "Science"}, {"depth": {"$lt": 3}}]}, {"_none": True}]},
            {"$and": [{"$and": [{"subject": {"$ne": "Science"}}]}, {"depth": {"$gte": 0}}]},
            {"$or": [{"$and": [{"subject": {"$exists": False}}, {"is_leaf": True}]}, {"x": 1}]},
            {"depth": {"$in": [0, True]}},
        ],
    )
    async def test_that_are_nested_are_rewritten_and_find_the_same(
        self, filled: PineconeClient, expression: dict[str, Any]
    ):
        node = parse_filter(expression)
        expected = {each.id for each in SMALL_CATALOG if matches(node, each.to_dict())}
        assert set(ids(await filled.search("fractions", 50, expression))) == expected

    @pytest.mark.parametrize(
        ("expression", "message"),
        [
            ({"subject": {"$like": "Math"}}, "not an operator"),
            ({"$and": [{"$or": [{f"a{i}": 1}, {f"b{i}": 1}]} for i in range(8)]}, "more than 100"),
            (
                {"$or": [{"$and": [{"x": {"$ne": 1}}, {"x": {"$ne": 2}}]}, {"y": 1}]},
                r"cannot combine two \$ne conditions on 'x'",
            ),
        ],
    )
    async def test_that_pinecone_cannot_apply_are_refused_before_anything_is_sent(
        self, client: PineconeClient, server: PineconeServer, expression: Any, message: str
    ):
        with pytest.raises(FilterError, match=message):
            await client.search("fractions", 5, expression)
        assert not server.requests


class TestLookup:
    async def test_fetches_more_ids_than_one_url_holds(
        self, client: PineconeClient, server: PineconeServer
    ):
        records = [record(number, f"Text {number}") for number in range(250)]
        await client.upsert(records)
        server.requests.clear()
        assert await client.fetch([each.id for each in records]) == records
        assert sorted(len(each.query["ids"]) for each in server.sent("fetch")) == [50, 100, 100]

    async def test_finds_records_of_other_writers_by_what_they_say(
        self, client: PineconeClient, server: PineconeServer
    ):
        await client.upsert([record(1, "Text.", asn_identifier="S1143ABC")])
        for name in ("notation_keys", "content_hash"):
            del server.records()["R001"][name]
        for identifier in ("XQ.1", "xq.1", "s1143abc", "R001"):
            assert [found.id for found in await client.find(identifier)] == ["R001"]

    async def test_takes_one_request_for_ids_and_two_for_twenty_codes(
        self, filled: PineconeClient, server: PineconeServer
    ):
        await filled.find("R001")
        assert paths(server) == ["/vectors/fetch"]
        server.requests.clear()
        codes = [*(f"XQ.{number}" for number in range(1, 19)), "XQ.77", ""]
        found = await filled.find_all(codes)
        assert paths(server) == ["/vectors/fetch", "/vectors/fetch_by_metadata"]
        assert found[0] == await filled.find("XQ.1")
        assert [len(each) for each in (found[0], found[1], *found[-2:])] == [1, 1, 0, 0]

    async def test_tells_ids_and_codes_apart(self, client: PineconeClient, server: PineconeServer):
        one = record(1, "One", statement_notation="xq-9")
        two = record(2, "Two", _id=GUID, statement_notation="XQ.9")
        await client.upsert([one, two])
        del server.records()["R001"]["notation_keys"]
        found = await client.find_all(["XQ.9", "R001", GUID.lower(), "xq-9", "nothing"])
        assert ["".join(each.id[0] for each in one) for one in found] == ["ER", "R", "E", "RE", ""]

    async def test_suggests_codes_under_the_same_heading_in_one_request(
        self, filled: PineconeClient, server: PineconeServer
    ):
        assert [each.statement_notation for each in await filled.suggest("XQ.99", 2)] == [
            "XQ.7", "XQ.6",
        ]  # fmt: skip
        assert await filled.suggest(GUID) == []
        assert paths(server) == ["/vectors/fetch_by_metadata"]

    async def test_keeps_to_five_fetches_by_metadata_in_a_second(
        self, filled: PineconeClient, server: PineconeServer
    ):
        started = time.monotonic()
        await asyncio.gather(*(filled.find(f"XQ.{number}") for number in range(8)))
        assert time.monotonic() - started > 0.95
        # The server refuses what is too quick; on a busy machine some come late, and again.
        assert len(server.sent("fetch_by_metadata")) >= 8

    async def test_asks_again_after_a_quota_of_the_second(
        self, filled: PineconeClient, server: PineconeServer
    ):
        server.fail("fetch_by_metadata", status=429, times=1)
        assert [found.id for found in await filled.find("XQ.1")] == ["R001"]

    async def test_reads_further_pages_of_a_selection_until_there_are_enough(
        self, client: PineconeClient, server: PineconeServer
    ):
        await client.upsert(record(number, "Text") for number in range(230))
        assert len(await client.select({"subject": "Mathematics"}, 1000)) == 230
        assert len(await client.select({"subject": "Mathematics"}, 120)) == 120
        sizes = [request.body["limit"] for request in server.sent("fetch_by_metadata")]
        assert sizes == [100, 100, 100, 100, 20]


class TestTheOverview:
    async def test_of_a_large_index_comes_from_its_first_500_records(self, client: PineconeClient):
        common = [record(number, "Text", _id=f"A{number:03}") for number in range(510)]
        first = record(0, "Text", _id="0", subject="Science", standard_set_id="other")
        await client.upsert([first, *common, record(1, "Text", _id="Z", subject="Rare")])
        facets, sets = await client.facets(), await client.sets()
        assert facets.subjects == {"Science": 1, "Mathematics": 499}
        assert facets.education_levels == {"03": 500}
        assert [(each.id, each.records) for each in sets.sets] == [("set-math", 499), ("other", 1)]
        values = await client.values("subject")
        assert values.counts == facets.subjects
        assert not any((values.complete, values.counted, sets.complete, sets.counted))

    async def test_of_a_small_index_is_complete_and_read_once(
        self, filled: PineconeClient, server: PineconeServer
    ):
        await asyncio.gather(filled.facets(), filled.facets(), filled.facets())
        assert (await filled.values("education_levels")).complete
        assert set((await filled.facets()).subjects) == {"Mathematics", "Language Arts", "Science"}
        assert paths(server) == ["/vectors/list", "/vectors/fetch"]

    async def test_has_the_size_and_the_place(self, filled: PineconeClient, server: PineconeServer):
        stats = await filled.stats()
        assert (stats.backend, stats.location) == ("pinecone", "common-core-standards")
        assert (stats.records, stats.model) == (8, "llama-text-embed-v2")
        assert (stats.details["namespace"], stats.details["host"]) == ("standards", server.url)
