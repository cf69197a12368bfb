"""A client of the front and of the server behind it, without a process."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from typing import Any

import anyio

from standards_mcp import Plugin, Prompt, Resource, Tool, hookimpl
from standards_mcp._utils.installation import HOST
from standards_mcp._utils.lines import MAX_LINE, Consumer
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.server.server import build_server
from standards_mcp.server.snapshotting import offered_results
from standards_mcp.server.stdio import serve_stdio
from standards_mcp.start.front import Front, PlainStreams
from standards_mcp.start.snapshot import Snapshot

from .waiting import WAIT

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


class ManyPlugin(Plugin):
    """Has two pages of tools, of two each."""

    count = 3

    @hookimpl
    def register_tools(self):
        def name(number: int = 0) -> int:
            return number

        return [
            Tool(name=f"tool_{number}", description="A tool.", function=name)
            for number in range(self.count)
        ]

    @hookimpl
    def register_prompts(self):
        return [Prompt(name="say", description="Say.", function=lambda: "Say it.")]

    @hookimpl
    def register_resources(self):
        return [Resource(uri="a://b", name="b", description="B.", function=lambda: "b")]


class Client:
    """The end of a client: its lines, passed on one by one, and the messages that it receives."""

    limit = MAX_LINE

    def __init__(self) -> None:
        self._consume: Consumer = lambda _: True
        self._reader, self.writer = os.pipe()
        self.received = bytearray()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while data := os.read(self._reader, 1 << 16):
            self.received.extend(data)

    def close(self) -> list[dict[str, Any]]:
        """End the answers, and return the messages."""
        os.close(self.writer)
        self._reading.join()
        os.close(self._reader)
        return [json.loads(message) for message in self.received.splitlines()]

    def start(self, consume: Consumer) -> None:
        self._consume = consume

    def send(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            self._consume([line])

    def leave(self) -> None:
        self._consume([])


def line(method: str, number: int | str | None = None, **params: Any) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        message["id"] = number
    if params:
        message["params"] = params
    return json.dumps(message).encode()


def new_host() -> Host:
    """Return a host that reads and writes no state."""
    plugin = PluginInfo(name="many", load=lambda: ManyPlugin, distribution=HOST)
    host = Host(LoadedSettings(Settings(), None), installed=[plugin], remembers=False)
    host.load()
    return host


def snapshot_of(results: dict[str, bytes]) -> Snapshot:
    return Snapshot(fingerprint={}, variables=(), files=(), results=results)


async def stored(host: Host) -> dict[str, bytes]:
    return await offered_results(build_server(host, "1"))


async def messages(
    host: Host, lines: Sequence[bytes], results: dict[str, bytes] | None, early: int = 0
) -> list[dict[str, Any]]:
    """Return the messages that a client receives.

    Args:
        results: The results of a snapshot; None for a server without a front.
        early: The number of lines that arrive before the server is loaded.
    """
    client = Client()

    def write() -> None:
        client.send(lines[early:])
        client.leave()

    if results is None:
        streams: Any = PlainStreams(0, client.writer)
        streams.start = client.start
        early = 0
    else:
        streams = Front(snapshot_of(results), client, client.writer)
        client.send(lines[:early])
    server = build_server(host, "1")
    with anyio.fail_after(WAIT):
        async with anyio.create_task_group() as group:
            group.start_soon(
                lambda: serve_stdio(
                    server, streams, on_stale=server.report_stale, drain_seconds=WAIT
                )
            )
            await anyio.wait_all_tasks_blocked()
            await anyio.to_thread.run_sync(write)
    return await anyio.to_thread.run_sync(client.close)


def unordered(messages: Sequence[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(message, sort_keys=True) for message in messages)
