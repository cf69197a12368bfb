"""A server on two pipes, without a process around it, and a client that says all at once."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

import anyio
import anyio.to_thread

from standards_mcp.calls.context import LOCAL, Principal
from standards_mcp.host import Host
from standards_mcp.server.server import build_server
from standards_mcp.server.stdio import serve_stdio
from standards_mcp.start.front import PlainStreams

from .waiting import WAIT

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def request(number: int, method: str, **params: Any) -> bytes:
    data = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(data).encode() + b"\n"


async def conversation(
    host: Host,
    *lines: bytes,
    drain_seconds: float = WAIT,
    pause: float = 0,
    until: int | None = None,
    opens: bool = True,
    principal: Principal = LOCAL,
    **capabilities: Any,
) -> dict[int | None, dict[str, Any]]:
    """Serve a client that sends all lines at once and the end after them; return the answers.

    Args:
        pause: Seconds that the client takes before it reads.
        until: The request whose answer the client waits for before its end.
        opens: Whether the client sends ``initialize`` before its lines.
        principal: The caller.
        capabilities: What the client can do.

    Returns:
        The answers by the ids of the requests; 0 is that of ``initialize``, and None is an error
        without an id.
    """
    (their_end, ours), (answers, wire) = os.pipe(), os.pipe()
    received, is_answered = bytearray(), threading.Event()

    def write() -> None:
        first = request(0, "initialize", **INITIALIZE | {"capabilities": capabilities})
        data = (first if opens else b"") + b"".join(lines)
        while data:
            data = data[os.write(ours, data) :]
        is_answered.wait(0 if until is None else WAIT)
        os.close(ours)

    def read() -> None:
        time.sleep(pause)
        while data := os.read(answers, 1 << 16):
            received.extend(data)
            if f'"id":{until},'.encode() in received:
                is_answered.set()

    threads = [threading.Thread(target=task, daemon=True) for task in (write, read)]
    for thread in threads:
        thread.start()
    with anyio.fail_after(WAIT):
        server = build_server(host, "1", lambda _: principal)
        streams = PlainStreams(their_end, wire)
        await serve_stdio(server, streams, drain_seconds=drain_seconds)
    os.close(wire)
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join)
    os.close(their_end)
    os.close(answers)
    found = [json.loads(line) for line in received.splitlines()]
    found = [message for message in found if "method" not in message]
    assert not any(answer.get("id", "") is None for answer in found), "an unknown id is left out"
    assert len({answer.get("id") for answer in found}) == len(found), "one answer to each"
    return {answer.get("id"): answer for answer in found}
