"""Failures of Pinecone and of the network, the secrecy of the key, and the life of connections."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import warnings
from typing import Any

import pytest
from emulator.server import PineconeServer
from support.waiting import WAIT, until

from standards_mcp_catalog import CatalogUnavailableError
from standards_mcp_pinecone.client import PineconeClient
from standards_mcp_pinecone.connections import CONCURRENCY, proxy_for
from standards_mcp_pinecone.failures import PineconeUnavailableError

pytestmark = pytest.mark.anyio

FAULTS = [
    ({"status": 401, "text": "Unauthorized"}, "key", "PINECONE_API_KEY"),
    ({"status": 403, "text": "Forbidden"}, "forbidden", "PINECONE_API_KEY"),
    ({"status": 404, "text": "Resource not found"}, "index", "PINECONE_INDEX_NAME"),
    ({"status": 402, "text": "Payment required"}, "payment", "wants a payment"),
    ({"status": 400, "text": "Bad filter"}, "refused", "Bad filter"),
    ({"status": 400, "text": "no \x1b[31mred\x1b[0m"}, "refused", "no \\u001b[31mred\\u001b[0m"),
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
    async def test_have_a_cause_and_a_next_step_within_the_deadline(
        self, server: PineconeServer, fault: dict[str, Any], cause: str, advice: str
    ):
        client = server.client(deadline=1.5 if cause == "timeout" else WAIT)
        server.fail("/vectors/fetch", **fault)
        with pytest.raises(CatalogUnavailableError) as caught:
            await client.fetch(["R000"])
        assert isinstance(caught.value, PineconeUnavailableError)
        assert caught.value.cause == cause
        assert advice in str(caught.value)
        server.faults.clear()
        assert await client.fetch(["R000"]) == []  # the client is usable afterwards
        await client.aclose()

    @pytest.mark.parametrize("fault", [{"status": 503}, {"status": 500}, {"kind": "reset"}])
    async def test_that_pass_are_not_noticed(
        self, client: PineconeClient, server: PineconeServer, fault: dict[str, Any]
    ):
        server.fail("search", times=1, **fault)
        assert (await client.search("fractions")).notes == ()

    @pytest.mark.parametrize(
        ("described", "cause", "message"),
        [
            (None, "index", "has no index 'common-core-standards'"),
            ({"host": "http://elsewhere.example.org"}, "malformed", "unencrypted"),
            ({"host": ""}, "server", "still being made"),
        ],
    )
    async def test_of_an_index_without_a_usable_host_say_so(
        self,
        server: PineconeServer,
        monkeypatch: pytest.MonkeyPatch,
        described: dict[str, str] | None,
        cause: str,
        message: str,
    ):
        client, original = server.client(knows_host=False), server.described
        monkeypatch.setattr(server, "described", lambda index: original(index) | (described or {}))
        if described is None:
            server.indexes.clear()
        with pytest.raises(PineconeUnavailableError, match=message) as caught:
            await client.search("fractions")
        assert caught.value.cause == cause
        await client.aclose()

    async def test_of_a_host_where_nothing_listens_are_unreachable(self, server: PineconeServer):
        client = server.client(host="http://127.0.0.1:9")
        with pytest.raises(PineconeUnavailableError) as caught:
            await client.search("fractions")
        assert caught.value.cause == "unreachable"
        await client.aclose()

    async def test_of_our_own_code_are_not_taken_for_pinecones(self, client: PineconeClient):
        async def broken() -> None:
            async with client.connections.index():
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await broken()


class TestCalls:
    async def test_that_are_cancelled_end_at_once_and_leave_the_client_usable(
        self, client: PineconeClient, server: PineconeServer
    ):
        fault = server.fail("search", kind="hang", times=1)
        task = asyncio.create_task(client.search("fractions"))
        await until(lambda: not fault.times)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.search("fractions")).hits == ()

    async def test_wait_for_others_beyond_the_limit(
        self, client: PineconeClient, server: PineconeServer
    ):
        server.fail("fetch", kind="slow", seconds=0.3)
        await asyncio.gather(*(client.fetch([f"R{number}"]) for number in range(3 * CONCURRENCY)))
        assert server.most_active == CONCURRENCY

    async def test_that_run_together_ask_for_the_host_once(self, server: PineconeServer):
        client = server.client(knows_host=False)
        await asyncio.gather(*(client.search(f"fractions {number}") for number in range(20)))
        await client.aclose()
        assert len(server.sent("/indexes/")) == 1
        assert len(server.sent("search")) == 20

    def test_work_in_two_event_loops_in_a_row(self, server: PineconeServer):
        client = server.client()

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

    async def test_go_through_the_proxy_of_the_environment(
        self, server: PineconeServer, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        client = server.client(host="http://localhost:9")
        # The server answers like a proxy: it takes the path of an absolute address.
        assert await client.fetch(["R000"]) == []
        await client.aclose()


class TestTheKey:
    async def test_is_in_no_error_log_or_repr(
        self, server: PineconeServer, caplog: pytest.LogCaptureFixture
    ):
        caplog.set_level(logging.DEBUG)
        client = server.client("pcsk_wrong_secret_key\n")
        shown = [repr(client), repr(client.connections), repr(vars(client.connections))]
        for text in ("Unauthorized", "no such key: pcsk_wrong_secret_key"):
            server.fail("describe_index_stats", status=401, text=text, times=1)
            with pytest.raises(PineconeUnavailableError) as caught:
                await client.stats()
            shown += [str(caught.value), repr(caught.value)]
        await client.aclose()
        assert server.requests[-1].headers["api-key"] == "pcsk_wrong_secret_key"
        assert "secret_key" not in "".join([*shown, caplog.text])

    async def test_that_no_header_can_hold_is_not_shown_either(self, server: PineconeServer):
        client = server.client("pcsk_sécret_key")
        with pytest.raises(PineconeUnavailableError, match="Copy it") as caught:
            await client.stats()
        assert caught.value.cause == "key"
        assert "cret_key" not in str(caught.value)
        await client.aclose()


class TestTheSdk:
    async def test_retries_as_it_was_told(
        self, client: PineconeClient, server: PineconeServer, caplog: pytest.LogCaptureFixture
    ):
        for status, attempts in ((429, 1), (503, 3)):
            server.requests.clear()
            server.fail("search", status=status, times=attempts)
            with pytest.raises(PineconeUnavailableError):
                async with client.connections.index() as index:
                    await index.search(namespace="standards", top_k=1, inputs={"text": "x"})
            assert len(server.sent("search")) == attempts
        assert "in its own way" not in caplog.text

    async def test_keeps_its_own_retries_if_a_later_version_takes_no_others(
        self,
        client: PineconeClient,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ):
        from pinecone._internal import constants

        monkeypatch.delattr(constants, "DATA_PLANE_API_VERSION")
        assert await client.fetch(["R000"]) == []
        assert "in its own way" in caplog.text

    def test_is_imported_by_the_first_call(self):
        program = (
            "import sys, standards_mcp_pinecone.backend as backend; "
            "from standards_mcp_catalog.settings import PineconeCatalogSettings; "
            "backend.open_catalog(PineconeCatalogSettings(api_key='key'), None); "
            "print('pinecone' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        assert done.stdout.strip() == b"False"


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
):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(host) == proxy
