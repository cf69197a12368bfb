"""The clients of `http_load`: raw HTTP over connections that stay open."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from _http_servers import Served

OLD, NEW = "2025-11-25", "2026-07-28"
_ABOUT = {"name": "load", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": NEW,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _ABOUT,
}
_SUM = {"a": 2, "b": 3}


def add(_: int) -> tuple[str, Mapping[str, Any], bytes]:
    """Return the call that all servers know, and what its answer has."""
    return "add", _SUM, b'"sum":5'


def request(
    served: Served, method: str, params: Mapping[str, Any], version: str = OLD, session: str = ""
) -> bytes:
    """Return a request as its client sends it; a notification where the method is one."""
    headers = [f"host: 127.0.0.1:{served.port}", "content-type: application/json"]
    headers += ["accept: application/json, text/event-stream"]
    headers += [f"authorization: Bearer {served.token}"] if served.token else []
    headers += [f"mcp-session-id: {session}"] if session else []
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
    if version == NEW:
        message["params"]["_meta"] = _META
        headers += [f"mcp-protocol-version: {NEW}", f"mcp-method: {method}"]
        headers += [f"mcp-name: {params['name']}"] if "name" in params else []
    if not method.startswith("notifications/"):
        message["id"] = 1
    body = json.dumps(message).encode()
    head = "\r\n".join(["POST /mcp HTTP/1.1", *headers, f"content-length: {len(body)}", "", ""])
    return head.encode() + body


@dataclass
class Client:
    """One client with one connection."""

    served: Served
    version: str = OLD
    session: str = ""

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self.served.port, limit=2**22
        )

    async def open_session(self) -> None:
        about = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": _ABOUT}
        head, body = await self.exchange("initialize", about)
        assert b'"result"' in body, body
        found = head.partition(b"mcp-session-id:")[2].split(b"\r\n")[0]
        self.session = found.strip().decode()
        await self.exchange("notifications/initialized", {})

    async def call(self, tool: str, arguments: Mapping[str, Any], expected: bytes) -> None:
        _, body = await self.exchange("tools/call", {"name": tool, "arguments": arguments})
        if expected not in body.replace(b'": ', b'":'):
            raise SystemExit(f"wrong answer: {body[:2000].decode()}")

    async def exchange(self, method: str, params: Mapping[str, Any]) -> tuple[bytes, bytes]:
        """Return the head of the answer, in lower case, and its body."""
        self._writer.write(request(self.served, method, params, self.version, self.session))
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if b"transfer-encoding: chunked" not in head:
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            return head, await self._reader.readexactly(length)
        body = b""
        while size := int(await self._reader.readline(), 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return head, body

    def close(self) -> None:
        self._writer.close()


@dataclass
class Load:
    """What a number of clients found.

    Attributes:
        latencies: How long each call took, in seconds.
        processor: The processor time of the server, in seconds.
    """

    seconds: float
    latencies: list[float] = field(default_factory=list)
    processor: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    @property
    def of_a_call(self) -> float:
        """The processor time of a call, in milliseconds."""
        return self.processor / len(self.latencies) * 1000

    def percentile(self, percent: int) -> float:
        """Return so long a call took, in milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] * 1000

    def __str__(self) -> str:
        shown = ", ".join(f"p{each} {self.percentile(each):.1f}" for each in (50, 95, 99))
        return f"{self.rate:6.0f} calls/s, {shown} ms; processor {self.of_a_call:.2f} ms a call"


async def load(
    served: Served,
    clients: int,
    seconds: float,
    version: str = OLD,
    *,
    sessions: bool = False,
    call: Callable[[int], tuple[str, Mapping[str, Any], bytes]] = add,
) -> Load:
    """Let clients call, each again as soon as it has its answer.

    Args:
        sessions: Each client opens one.
        call: Returns each call by its number.
    """
    made = [Client(served, version) for _ in range(clients)]
    await asyncio.gather(*(each.connect() for each in made))
    if sessions:
        # At once, as a server closes a connection that is silent for five seconds.
        await asyncio.gather(*(each.open_session() for each in made))
    done, before, began = Load(seconds), served.processor, time.perf_counter()
    numbers = iter(range(10**9))

    async def keep_calling(client: Client) -> None:
        while (start := time.perf_counter()) < began + seconds:
            await client.call(*call(next(numbers)))
            done.latencies.append(time.perf_counter() - start)

    await asyncio.gather(*map(keep_calling, made))
    done.processor = served.processor - before
    done.seconds = time.perf_counter() - began
    for each in made:
        each.close()
    return done


def slow_reader(served: Served) -> socket.socket:
    """Return a connection that has asked for a megabyte, and reads nothing of it."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.connect(("127.0.0.1", served.port))
    found.send(request(served, "tools/call", {"name": "long", "arguments": {}}))
    return found


def half_open(served: Served, number: int) -> socket.socket:
    """Return a connection whose request stops in its head, or in its body."""
    data = request(served, "tools/call", {"name": "add", "arguments": _SUM})
    found = socket.create_connection(("127.0.0.1", served.port))
    found.send(data[: 40 if number % 2 else -20])
    return found
