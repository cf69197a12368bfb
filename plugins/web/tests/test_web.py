"""Searches of the web, through a client, on a loopback engine."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp_types import TextContent
from support.marks import untrusted_tools

from standards_mcp import ConfigError
from standards_mcp.testing import Connect, check_plugin
from standards_mcp_web.plugin import WebPlugin
from standards_mcp_web.requests import MAX_BYTES
from standards_mcp_web.settings import WebSettings

pytestmark = pytest.mark.anyio
OpenWeb = Callable[..., AbstractAsyncContextManager[Client]]
KEY = "BSA-opensesame-0123456789"
QUERY = "a very private question"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("standards_mcp_web.requests.PAUSES", (0.01, 0.02))


async def search(client: Client, query: str = QUERY, **more: Any) -> dict[str, Any]:
    answer = await client.call_tool("web_search", {"query": query, **more})
    assert answer.structured_content is not None
    (content,) = answer.content
    assert isinstance(content, TextContent)
    assert json.loads(content.text) == answer.structured_content
    return answer.structured_content


def error(status: int, code: str, detail: str) -> dict[str, Any]:
    about = {"id": "1", "status": status, "code": code, "detail": detail}
    return {"type": "ErrorResponse", "error": about, "time": 1}


def found(*pages: Any) -> dict[str, Any]:
    return {"type": "search", "web": {"type": "search", "results": list(pages)}}


def said(answer: dict[str, Any]) -> tuple[str, str]:
    assert (answer["success"], answer["results"]) == (False, [])
    return answer["error_type"], answer["message"]


async def one_of(open_web: OpenWeb, engine: Any, **result: Any) -> dict[str, Any]:
    engine.body = {"web": {"results": [{"title": "A", "url": "https://a.org", **result}]}}
    async with open_web() as client:
        (found,) = (await search(client))["results"]
        return found


# Answers


async def test_a_search_answers_with_pages_in_the_order_of_the_engine(
    open_web: OpenWeb, engine: Any
):
    async with open_web() as client:
        answer = await search(client, "  folding \n bicycles ", top_k=3)
    assert answer["tool"] == "web.search"
    assert [each["title"] for each in answer["results"]] == ["Page 1", "Page 2", "Page 3"]
    assert answer["results"][0] == {
        "title": "Page 1",
        "url": "https://example.org/1",
        "snippet": "All about 1 & more.",
        "profile": "Example",
        "price": None,
        "availability": None,
    }
    ((parameters, headers),) = engine.asked
    assert parameters == {"q": ["folding bicycles"], "count": ["3"]}
    assert headers["x-subscription-token"] == KEY
    assert (headers["accept"], headers["accept-encoding"]) == ("application/json", "gzip")


@pytest.mark.parametrize(
    ("result", "price", "availability"),
    [
        (
            {
                "product": {
                    "price": "1",
                    "offers": [
                        {"priceCurrency": "USD"},
                        {
                            "price": "12.99",
                            "priceCurrency": "USD",
                            "availability": "https://schema.org/InStock",
                        },
                    ],
                }
            },
            "12.99 USD",
            "InStock",
        ),
        ({"product_cluster": [{"offers": [{"price": 3}]}]}, "3", None),
        ({"product_cluster": [{}, {"price": "from $4"}]}, "from $4", None),
        ({"product": {"price": "$1,349.50", "offers": []}}, "$1,349.50", None),
        ({"product": {"offers": [{"price": True}, {"price": None}, {"price": ""}]}}, None, None),
        ({"product": [], "product_cluster": "odd"}, None, None),
        ({"product": {"offers": [{"price": float("nan")}, {"price": 0}]}}, None, None),
        ({"product": {"offers": [{"price": float("inf")}, {"price": -1}]}}, None, None),
        ({"product": {"offers": [{"price": "on request"}, {"price": "0.00"}]}}, None, None),
        ({"product": {"price": "7" * 51}}, None, None),
        ({"product": {"price": "\u0667"}}, "\u0667", None),
        (
            {"product": {"offers": [{"price": 5, "availability": "a.org/InStock?b=/c#d"}]}},
            "5",
            "InStock",
        ),
        ({"product": {"offers": "odd"}}, None, None),
    ],
)
async def test_a_price_is_that_of_the_first_offer_that_has_one(
    open_web: OpenWeb, engine: Any, result: dict[str, Any], price: str | None, availability: str
):
    found = await one_of(open_web, engine, **result)
    assert (found["price"], found["availability"]) == (price, availability)


async def test_the_tool_warns_of_the_texts_of_pages(open_web: OpenWeb):
    async with open_web() as client:
        assert await untrusted_tools(client) == {"web_search"}


async def test_texts_have_no_tags_entities_and_control_characters(open_web: OpenWeb, engine: Any):
    found = await one_of(
        open_web,
        engine,
        title="<b>Tom&amp;#x27;s</b> 1 < 2 > 0",
        description="a\x1b[31m\u202eb<!-- c --><script>d</script> &lt;i&gt;" + "e" * 600,
        profile=None,
    )
    assert found["title"] == "Tom's 1 < 2 > 0"
    assert found["snippet"].startswith("a [31m bd <i>e")
    assert (len(found["snippet"]), found["profile"]) == (500, None)


async def test_comparisons_and_tags_that_a_page_shows_stay_in_texts(open_web: OpenWeb, engine: Any):
    found = await one_of(
        open_web,
        engine,
        title="if x<y and z>1",
        description="The &lt;table&gt; <b>tag</b><x on=1> <!DOCTYPE a>b<!-- open",
    )
    assert (found["title"], found["snippet"]) == ("if x<y and z>1", "The <table> tag b")


async def test_no_text_is_longer_than_its_bound(open_web: OpenWeb, engine: Any):
    long = "7" * 5000
    found = await one_of(
        open_web,
        engine,
        title=f"&#{long};{long}",
        description=long,
        profile={"name": long},
        product={"offers": [{"price": 1, "priceCurrency": long, "availability": long}]},
    )
    assert {key: len(text) for key, text in found.items()} == {
        "title": 1,
        "url": len("https://a.org"),
        "snippet": 500,
        "profile": 100,
        "price": len("1 ") + 50,
        "availability": 100,
    }
    assert len((await one_of(open_web, engine, title=long))["title"]) == 300


@pytest.mark.parametrize("hostile", ["<!--", "<a ", "<y ", "&lt;!--", "<", "&#"])
async def test_a_hostile_text_is_read_quickly(open_web: OpenWeb, engine: Any, hostile: str):
    async def seconds(text: str) -> float:
        result = {"title": text, "url": "https://a.org", "description": text}
        engine.body = {"web": {"results": [result]}}
        began = time.process_time()
        assert (await search(client, text[:9]))["results"]
        return time.process_time() - began

    async with open_web() as client:
        harmless = min([await seconds(letter * len(hostile) * 60_000) for letter in "abc"])
        assert await seconds(hostile * 60_000) < 50 * max(harmless, 0.01)


async def test_no_more_results_are_read_than_wanted(
    open_web: OpenWeb, engine: Any, monkeypatch: pytest.MonkeyPatch
):
    read: list[object] = []
    monkeypatch.setattr(
        "standards_mcp_web.providers.brave.link", lambda url: read.append(url) or url
    )
    engine.body = found(*[{"url": "http://a"}] * 30_000)
    async with open_web() as client:
        assert len((await search(client, top_k=3))["results"]) == 3
    assert len(read) == 3


async def test_results_without_a_link_are_left_out_before_they_are_counted(
    open_web: OpenWeb, engine: Any
):
    unseen = "\0\x7f\x80\x9f\u200b\u200f\u202a\u202e\u2066\u2069\ufeff\ud800\u2028"
    addresses = [
        *("javascript:alert(1)", None, 7, "ftp://a.org", "https://a b.org", "http:a.org"),
        *("http://", "http://?", "http://#a", "http://:80", "https://[::1"),
        *(f"https://a.org/{each}b" for each in unseen),
        "https://a.org/" + "b" * 5000,
        "HTTPS://c.org",
    ]
    results = [{"title": "x", "url": each} for each in addresses]
    engine.body = {"web": {"results": [*results, "odd", None, {"url": "http://d.org"}]}}
    async with open_web() as client:
        found = (await search(client, top_k=2))["results"]
    assert [each["url"] for each in found] == ["HTTPS://c.org", "http://d.org"]
    assert found[1]["title"] == "http://d.org"


@pytest.mark.parametrize("body", [{}, {"web": None}, {"web": {}}, {"web": {"results": []}}])
async def test_an_answer_without_results_is_no_error(open_web: OpenWeb, engine: Any, body: Any):
    engine.body = body
    async with open_web() as client:
        assert (await search(client))["results"] == []


async def test_a_searxng_whose_engines_do_not_answer_has_not_found_nothing(
    open_web: OpenWeb, engine: Any
):
    silent = [["mojeek", "timeout"], ["b<b>ing</b>", "access denied"], "odd", [], None]
    engine.body = {"results": [], "unresponsive_engines": silent}
    async with open_web(provider="searxng", searxng_url=engine.url) as client:
        kind, message = said(await search(client))
        assert (kind, "did not answer: mojeek, bing, odd. Try" in message) == ("api_error", True)
        engine.body = {"results": [], "unresponsive_engines": []}
        assert (await search(client))["results"] == []
        engine.body = {"results": [{"url": "https://a.org"}], "unresponsive_engines": silent}
        assert len((await search(client, "another"))["results"]) == 1


async def test_without_a_key_nothing_is_asked_and_the_answer_says_so(
    open_web: OpenWeb, engine: Any
):
    async with open_web(api_key=None) as client:
        answer = await search(client)
        assert (answer["results"], engine.asked) == ([], [])
        assert "SEARCH_API_KEY is not set" in answer["notice"]


async def test_searxng_answers_in_the_same_form(open_web: OpenWeb, engine: Any):
    results = [
        {"title": "A", "url": "https://a.org", "content": "x &amp; y", "engines": ["mojeek", "b"]},
        {"title": "B", "url": "https://b.org", "engines": []},
    ]
    engine.body = {"query": "q", "results": results}
    async with open_web(provider="searxng", searxng_url=f"{engine.url}/", api_key=None) as client:
        first, second = (await search(client))["results"]
    assert (first["snippet"], first["profile"]) == ("x & y", "mojeek")
    assert (second["snippet"], second["profile"]) == (None, None)
    assert engine.asked[0][0] == {"q": [QUERY], "format": ["json"]}


# Errors


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, {}, "Brave refuses the key. Set a valid one by SEARCH_API_KEY"),
        (403, b"<html>", "Brave refuses the key. Set a valid one by SEARCH_API_KEY"),
        (
            422,
            {"error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "x"}},
            "Brave refuses the key.",
        ),
        (422, {"error": {"code": "VALIDATION", "detail": "q" * 300}}, f"answered 422: {'q' * 200}"),
        (404, [], "Brave answered 404: no reason was given"),
        (302, {}, "Brave answered 302"),
        (503, {}, "Brave answered 503. Try again later."),
        (200, b"{", "did not answer with a list of results"),
        (200, b"[" * 100_000, "did not answer with a list of results"),
        (200, [1], "did not answer with a list of results"),
        (200, {"web": 1}, "did not answer with a list of results"),
        (200, {"web": {"results": {"a": 1}}}, "did not answer with a list of results"),
        (200, {"web": {"results": ["odd", None]}}, "did not answer with a list of results"),
        (200, {"error": {"code": "ODD"}}, "did not answer with a list of results"),
        (200, {"type": "ErrorResponse"}, "did not answer with a list of results"),
        (200, b'{"web": "' + b"x" * MAX_BYTES + b'"}', "did not answer with a list of results"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_with_the_next_step(
    open_web: OpenWeb, engine: Any, status: int, body: Any, expected: str
):
    engine.status, engine.body, engine.headers = [status], body, {"location": "/elsewhere"}
    async with open_web() as client:
        kind, message = said(await search(client))
    assert kind == "api_error"
    assert expected in message
    assert len(message) < 400
    assert len(engine.asked) == (3 if status == 503 else 1)


async def test_a_searxng_that_gives_no_json_is_told_how_to(open_web: OpenWeb, engine: Any):
    engine.status = [403]
    async with open_web(provider="searxng", searxng_url=engine.url) as client:
        kind, message = said(await search(client))
    assert (kind, "search.formats" in message) == ("api_error", True)


async def test_a_failure_that_passes_is_tried_again(open_web: OpenWeb, engine: Any):
    engine.status = [500, 502, 200]
    async with open_web() as client:
        assert len((await search(client))["results"]) == 5
    assert len(engine.asked) == 3


async def test_what_is_tried_again_counts_and_is_not_beyond_the_limit(
    open_web: OpenWeb, engine: Any
):
    engine.status = [500]
    async with open_web(rate_limit="4/minute") as client:
        kinds = [said(await search(client, query))[0] for query in ("a", "b", "c")]
    assert kinds == ["api_error", "api_error", "rate_limited"]
    assert len(engine.asked) == 4


async def test_a_limit_that_others_reach_meanwhile_ends_the_attempts(
    open_web: OpenWeb, engine: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("standards_mcp_web.requests.PAUSES", (0.5, 0.5))
    engine.status = [500, 200]
    kinds: list[str] = []
    async with open_web(rate_limit="2/minute") as client:

        async def fail() -> None:
            kinds.append(said(await search(client, "a"))[0])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            while not engine.asked:  # noqa: ASYNC110  it answers in another thread
                await anyio.sleep(0.01)
            assert (await search(client, "b"))["results"]
    assert (kinds, len(engine.asked)) == (["api_error"], 2)


async def test_a_connection_that_breaks_or_is_refused_is_an_error_without_the_query(
    open_web: OpenWeb, engine: Any
):
    engine.keeps_silent = True
    async with open_web() as client:
        kind, message = said(await search(client))
    assert (kind, len(engine.asked)) == ("api_error", 3)
    assert "Brave at 127.0.0.1 cannot be reached" in message
    async with open_web(base_url="http://127.0.0.1:9") as client:
        assert "cannot be reached" in said(await search(client))[1]


async def test_an_answer_that_does_not_come_in_time_is_a_timeout(open_web: OpenWeb, engine: Any):
    engine.pause = 1
    async with open_web(timeout=0.1) as client:
        kind, message = said(await search(client))
    assert (kind, "within 0.1 s" in message) == ("timeout", True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"query": "  \n "}, "query"),
        ({"query": "x" * 401}, "query"),
        ({"query": "w " * 51}, "query has 51 words"),
        ({"query": "\ud800"}, "query"),
        ({"query": "x", "top_k": 6}, "top_k"),
        ({"query": "x", "top_k": 0}, "top_k"),
        ({}, "query"),
    ],
)
async def test_wrong_input_is_refused_by_name_before_anything_is_asked(
    connect: Connect, engine: Any, arguments: dict[str, Any], expected: str
):
    async with connect(WebPlugin, name="web", base_url=engine.url, api_key=KEY) as client:
        answer = await client.call_tool("web_search", arguments)
    assert answer.is_error
    assert answer.structured_content is not None
    kind, message = said(answer.structured_content)
    assert (kind, expected in message, engine.asked) == ("invalid_input", True, [])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"provider": "bing"}, "provider"),
        ({"provider": "searxng"}, "needs searxng_url"),
        ({"base_url": "http://example.org"}, "use https://"),
        ({"base_url": "example.org"}, "begins with https://"),
        ({"base_url": "https://example.org?key=1"}, "has no query"),
        ({"base_url": "https://example.org:port"}, "check its host and its port"),
        ({"base_url": "https://example.org:70000"}, "check its host and its port"),
        ({"base_url": "https://exa\x01mple.org"}, "no control characters"),
        ({"base_url": "https://ann:opensesame@example.org"}, "no query, user name and password"),
        ({"searxng_url": "http://ann@localhost"}, "no query, user name and password"),
        ({"api_key": "opensesame\u00e9"}, "an invalid character"),
        ({"api_key": "open\nsesame"}, "an invalid character"),
        ({"api_key": "open sesame"}, "an invalid character"),
        ({"rate_limit": "ten"}, "rate_limit"),
    ],
)
async def test_settings_that_cannot_work_are_refused_with_the_reason(
    connect: Connect, options: dict[str, Any], expected: str
):
    with pytest.raises(Exception, match=expected) as raised:
        async with connect(WebPlugin, name="web", **options):
            pass
    assert isinstance(raised.value, ConfigError) or "web" in str(raised.value)
    assert "sesame" not in str(raised.value)


async def test_white_space_around_a_key_does_not_count(open_web: OpenWeb, engine: Any):
    async with open_web(api_key=f" {KEY}\n") as client:
        await search(client)
    assert engine.asked[0][1]["x-subscription-token"] == KEY


# Cache and limits


async def test_an_answer_is_kept_for_equal_questions(open_web: OpenWeb, engine: Any):
    async with open_web() as client:
        first = await search(client, "kept answers")
        assert await search(client, " kept   answers ") == first
        await search(client, "kept answers", top_k=4)
        assert len(engine.asked) == 2


@pytest.mark.slow
async def test_no_more_answers_are_kept_than_wanted_and_none_for_longer(
    open_web: OpenWeb, engine: Any, monkeypatch: pytest.MonkeyPatch
):
    async with open_web(cache_size=2) as client:
        for query in ("a", "b", "c", "a"):
            await search(client, query)
    assert len(engine.asked) == 4
    async with open_web(cache_ttl=0) as client:
        for _ in range(2):
            await search(client)
    assert len(engine.asked) == 6
    now = 0
    clock = SimpleNamespace(monotonic=lambda: now, time=time.time)
    monkeypatch.setattr("standards_mcp_web.search.time", clock)
    async with open_web(cache_ttl=300) as client:
        for moment in (0, 299, 301, 302):
            now = moment
            await search(client)
    assert len(engine.asked) == 8


def test_an_answer_is_kept_for_five_minutes_and_a_hundred_are():
    settings = WebSettings()
    assert (settings.cache_ttl, settings.cache_size) == (300, 100)


async def test_failures_and_notices_are_not_kept(open_web: OpenWeb, engine: Any):
    engine.status = [404, 200]
    async with open_web() as client:
        assert said(await search(client))
        assert (await search(client))["results"]


async def test_equal_questions_at_one_time_are_one_request(open_web: OpenWeb, engine: Any):
    engine.pause = 0.3
    answers: list[dict[str, Any]] = []
    async with open_web() as client:

        async def ask() -> None:
            answers.append(await search(client))

        async with anyio.create_task_group() as tasks:
            for _ in range(100):
                tasks.start_soon(ask)
    assert len(engine.asked) == 1
    assert all(each == answers[0] for each in answers)


async def test_a_caller_who_leaves_ends_the_search_of_nobody(open_web: OpenWeb, engine: Any):
    engine.pause = 0.3
    async with open_web() as client:
        with anyio.move_on_after(0.1):
            await search(client)
        assert (await search(client))["results"]
    assert len(engine.asked) == 1


async def test_the_provider_is_asked_only_so_often_and_kept_answers_do_not_count(
    open_web: OpenWeb, engine: Any
):
    async with open_web(rate_limit="10/minute") as client:
        for number in (*range(10), 3):
            assert (await search(client, f"question {number}"))["results"]
        refused = await search(client, "the 11th")
    kind, message = said(refused)
    assert (kind, len(engine.asked)) == ("rate_limited", 10)
    assert message.startswith("Web search is limited to 10/minute. Try again in ")
    assert 50 <= refused["retry_after"] <= 60


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 1),
        (("1, 15000", "0, 100", "1, 5000"), 1),
        (("1, 15000", "0, 0", "1, 5000"), 5000),
        (("1, 0", "0, 0", "2, 5000"), 2),
        (("odd", "0", "-3"), 1),
        (("", "1, 0", "1, 5000"), 5000),
        (("1", "0, 0", "1, 5000"), 5000),
        (("1, 15000", "0, 0", "1"), 1),
    ],
)
async def test_while_a_window_of_the_provider_is_used_up_nothing_is_sent(
    open_web: OpenWeb, engine: Any, headers: Any, seconds: int
):
    names = ("x-ratelimit-limit", "x-ratelimit-remaining", "X-RateLimit-Reset")
    engine.status, engine.headers = [429], dict(zip(names, headers, strict=False))
    async with open_web() as client:
        answers = [await search(client, query) for query in ("a", "b")]
    for answer in answers:
        assert said(answer)[0] == "rate_limited"
        assert answer["retry_after"] == seconds
    assert len(engine.asked) == 1


USED_UP = {
    "X-RateLimit-Limit": "1, 2000",
    "X-RateLimit-Remaining": "1, 0",
    "X-RateLimit-Reset": "1, 86400",
}


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b"{"), (200, b" " * (MAX_BYTES + 1)), (401, {}), (404, {}), (500, {})],
)
async def test_a_window_that_a_failure_uses_up_counts_and_ends_the_attempts(
    open_web: OpenWeb, engine: Any, status: int, body: Any
):
    engine.status, engine.body, engine.headers = [status], body, USED_UP
    async with open_web() as client:
        failed, refused = [await search(client, query) for query in ("a", "b")]
    assert (said(failed)[0], said(refused)[0]) == ("api_error", "rate_limited")
    assert (refused["retry_after"], len(engine.asked)) == (86400, 1)


async def test_a_window_that_an_answer_uses_up_counts_too(open_web: OpenWeb, engine: Any):
    engine.headers = USED_UP
    async with open_web() as client:
        assert (await search(client, "the last one"))["results"]
        refused = await search(client, "one too many")
        assert (await search(client, "the last one"))["results"], "it is kept"
    assert (said(refused)[0], refused["retry_after"]) == ("rate_limited", 86400)
    assert len(engine.asked) == 1


# Secrets


async def test_neither_key_nor_query_stands_in_a_log_or_a_message(
    open_web: OpenWeb, engine: Any, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "standards_mcp")
    caplog.set_level(logging.WARNING)
    told: list[str] = []
    async with open_web(cache_ttl=0, timeout=2) as client:
        for status, pause, silent in (
            *((200, 0, False), (401, 0, False), (500, 0, False)),
            *((200, 0, True), (200, 3, False)),
        ):
            engine.status, engine.pause, engine.keeps_silent = [status], pause, silent
            told.append(json.dumps(await search(client)))
        engine.status, engine.pause = [400], 0
        for echo in (QUERY, QUERY.upper(), QUERY.replace(" ", "+"), QUERY.replace(" ", "%20")):
            engine.body = error(400, "VALIDATION", f"{'x' * 180} q={echo} key={KEY} is bad")
            told.append(json.dumps(await search(client)))
    assert len(set(told)) > 5
    for text in (caplog.text, *map(str, map(vars, caplog.records)), *told):
        assert KEY not in text
        assert "very private" not in re.sub(r"\+|%20", " ", text).lower()


async def test_the_reason_of_a_refusal_is_told_without_the_query(open_web: OpenWeb, engine: Any):
    engine.status = [400]
    engine.body = error(400, "VALIDATION", "q 'a <b>c</b> &amp; d' is bad, a q can be 400 long")
    async with open_web() as client:
        message = said(await search(client, "a <b>c</b> &amp; d"))[1]
        assert message == "Brave answered 400: q '...' is bad, a q can be 400 long"
        engine.body = error(400, "VALIDATION", "a query of a bad form")
        assert said(await search(client, "a"))[1].endswith(": ... query of ... bad form")


@pytest.mark.parametrize("around", ["token_{}", "{}2", "x{}x", "q {}"])
async def test_the_key_stands_in_no_message_also_within_a_word(
    open_web: OpenWeb, engine: Any, around: str
):
    engine.status, engine.body = [400], error(400, "X", f"unknown {around.format(KEY)}")
    async with open_web() as client:
        # A part of the key in the query leaves no rest of it.
        message = said(await search(client, f"q {KEY[:3]}"))[1]
    assert message == f"Brave answered 400: unknown {around.format('...')}"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "[::1]"])
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
async def test_what_goes_to_this_machine_goes_through_no_proxy(
    open_web: OpenWeb, engine: Any, monkeypatch: pytest.MonkeyPatch, host: str, variable: str
):
    monkeypatch.setenv(variable, engine.url)
    async with open_web(base_url=f"http://{host}:9") as client:
        assert "cannot be reached" in said(await search(client))[1]
    assert engine.asked == []


async def test_what_goes_beyond_this_machine_goes_through_the_proxy_of_the_environment(
    open_web: OpenWeb, engine: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", engine.url)
    monkeypatch.setenv("NO_PROXY", "")
    engine.body = {"results": []}
    async with open_web(provider="searxng", searxng_url="http://searxng.example") as client:
        assert (await search(client))["results"] == []
    assert engine.asked[0][1]["host"] == "searxng.example"


@pytest.mark.slow
def test_the_plugin_keeps_the_rules_of_plugins(engine: Any):
    calls = [("web.search", {"query": "x"})]
    check_plugin(WebPlugin, name="web", calls=calls, base_url=engine.url, api_key=KEY)
