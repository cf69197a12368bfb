"""Clients of earlier generations whose connection breaks during a call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute
from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCResponse
from support.hosts import MakeHost
from support.http import http_client, served_over_http
from support.waiting import WAIT, until

from standards_mcp import CallContext, Plugin, tool
from standards_mcp_service.sessions import SessionEvents

pytestmark = pytest.mark.anyio


class BooksPlugin(Plugin):
    """A tool that waits."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.going, self.go = anyio.Event(), anyio.Event()

    @tool
    async def wait(self, context: CallContext) -> str:
        """Wait."""
        await context.report_progress(1, message="begun")
        self.going.set()
        await self.go.wait()
        await context.report_progress(2, message="halfway")
        return "waited"


class Wire:
    """Passes connections on to a service, until they are cut."""

    def __init__(self) -> None:
        self._open: set[anyio.CancelScope] = set()

    @asynccontextmanager
    async def to(self, url: str) -> AsyncGenerator[str]:
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            host, _, port = url.removeprefix("http://").partition(":")

            async def carry(stream: ByteStream) -> None:
                service = await anyio.connect_tcp(host, int(port))
                async with stream, service, anyio.create_task_group() as both:
                    self._open.add(both.cancel_scope)
                    both.start_soon(_copy, stream, service)
                    both.start_soon(_copy, service, stream)

            tasks.start_soon(listener.serve, carry)
            port_here = listener.extra(SocketAttribute.local_port)  # noqa: S610
            yield f"http://127.0.0.1:{port_here}"
            tasks.cancel_scope.cancel()

    def cut(self) -> None:
        while self._open:
            self._open.pop().cancel()


async def _copy(source: ByteStream, target: ByteStream) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for data in source:
            await target.send(data)
    with suppress(OSError):
        await target.send_eof()


async def test_a_client_whose_connection_broke_gets_the_answer_of_its_call(make_host: MakeHost):
    host, wire, heard = make_host({"books": BooksPlugin}, server={"port": 0}), Wire(), list[str]()
    plugin = host.manager.records["books"].plugin
    assert isinstance(plugin, BooksPlugin)

    async def hear(_done: float, _total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def cut_midway() -> None:
        await plugin.going.wait()
        await until(lambda: heard)
        wire.cut()
        plugin.go.set()

    async with (
        served_over_http(host) as service,
        wire.to(service) as url,
        http_client(url, mode="legacy") as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(cut_midway)
        with anyio.fail_after(WAIT):
            answer = await client.call_tool("wait", {}, progress_callback=hear)
        assert answer.content[0].text == "waited"
        assert heard == ["begun", "halfway"]


def answer(text: str = "", number: int = 7) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=number, result={"text": text})


PROGRESS = JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params={"n": 1})


async def replayed(session: SessionEvents, last: str) -> tuple[list[JSONRPCMessage], str | None]:
    found: list[EventMessage] = []

    async def take(event: EventMessage) -> None:
        found.append(event)

    stream = await session.replay_events_after(last, take)
    return [each.message for each in found], stream


async def test_later_events_of_a_stream_are_sent_again_up_to_its_answer():
    session = SessionEvents(lambda: 10_000)
    begun = await session.store_event("7\n", None)
    assert "\n" not in begun
    await session.store_event("8", answer(number=8))
    seen = await session.store_event("7\n", PROGRESS)
    assert await replayed(session, begun) == ([PROGRESS], "7\n")
    await session.store_event("7\n", answer())
    assert await replayed(session, begun) == ([PROGRESS, answer()], None)
    assert await replayed(session, seen) == ([answer()], None), "nothing more will come"
    for wrong in ("", "x", "1-zz", "1-ff", "99-37"):
        assert await replayed(session, wrong) == ([], None)


async def test_the_oldest_events_make_room_and_a_session_reads_only_its_own():
    limit = 3000
    one, other = SessionEvents(lambda: limit), SessionEvents(lambda: limit)
    begun = await one.store_event("7", None)
    for _ in range(9):
        await one.store_event("7", answer())
    assert len((await replayed(one, begun))[0]) == 5
    assert await replayed(other, begun) == ([], None)
    limit = 2000
    one.trim()
    assert len((await replayed(one, begun))[0]) == 3, "more sessions leave less for each"
    await one.store_event("7", answer("x" * 9000))
    assert await replayed(one, begun) == ([], None)


async def test_calls_that_are_never_answered_are_forgotten_as_their_events_are():
    session = SessionEvents(lambda: 3000)
    begun = [await session.store_event(f"{number}", None) for number in range(100)]
    still = [(await replayed(session, each))[1] for each in begun]
    assert still == [None] * 95 + ["95", "96", "97", "98", "99"]
    long = await session.store_event("x" * 3000, None)
    assert await replayed(session, long) == ([], None), "the id of a request counts, too"
