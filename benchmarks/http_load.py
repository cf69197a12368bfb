"""Calls over HTTP: tool calls a second with a token, and on a bare `MCPServer` without any.

usage: python benchmarks/http_load.py [--rounds 3] [--seconds 3] [--clients 1 10 100]

Both serve the same async function from one process, without sessions and with JSON answers. The
clients write raw HTTP over connections that stay open, in the way of the generation of 2025-11-25
and that of 2026-07-28. The two serve in turn, and the median of the ratios is the figure to quote:
over 1, the host is faster. The ratio of processor times (Linux) holds on a busy machine, too.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calls import FUNCTION, PLUGIN, TYPED, install_distribution

PEER = (
    "import sys\nfrom mcp.server.mcpserver import MCPServer\n"
    + TYPED
    + 'server = MCPServer("peer", log_level="ERROR")\n@server.tool()'
    + FUNCTION.format(result="Sum")
    + '\nserver.run("streamable-http", port=int(sys.argv[1]), stateless_http=True,'
    + " json_response=True)\n"
)
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
}


def request(port: int, token: str, *, modern: bool) -> bytes:
    params: dict[str, Any] = {"name": "add", "arguments": {"a": 2, "b": 3}}
    headers = [f"host: 127.0.0.1:{port}", "content-type: application/json"]
    headers += ["accept: application/json, text/event-stream"]
    headers += [f"authorization: Bearer {token}"] if token else []
    if modern:
        params["_meta"] = META
        headers += ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", "mcp-name: add"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    body = json.dumps(message).encode()
    head = "\r\n".join(["POST /mcp HTTP/1.1", *headers, f"content-length: {len(body)}", "", ""])
    return head.encode() + body


async def call_for(seconds: float, port: int, data: bytes, latencies: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        writer.write(data)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if b'"sum":5' not in body.replace(b" ", b""):
            raise SystemExit(f"wrong answer: {(head + body).decode()}")
        latencies.append(time.perf_counter() - began)
    writer.close()


async def load(clients: int, seconds: float, port: int, data: bytes) -> tuple[float, list[float]]:
    """Return the calls a second, and how long each took, in seconds."""
    latencies: list[float] = []
    await asyncio.gather(*(call_for(seconds, port, data, latencies) for _ in range(clients)))
    return len(latencies) / seconds, latencies


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def start(command: list[str], environment: dict[str, str], port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return process
    raise SystemExit(f"{command} does not listen")


def install_host(folder: Path, port: int) -> tuple[list[str], dict[str, str], str]:
    """Return the command that serves the function with a token, its environment, and the token."""
    install_distribution(folder, PLUGIN)
    (folder / "config.toml").touch()
    program = [sys.executable, "-m", "standards_mcp", "--config", str(folder / "config.toml")]
    environment = {**os.environ, "PYTHONPATH": str(folder), "HOME": str(folder)}
    made = subprocess.run(
        [*program, "auth", "token", "new", "load"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    options = ["--transport", "http", "--port", str(port), "--stateless", "--json-response"]
    return [*program, "serve", *options], environment, made.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 10, 100])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, ours, theirs = Path(name), free_port(), free_port()
        command, environment, token = install_host(folder, ours)
        peer = [sys.executable, "-c", PEER, str(theirs)]
        host = Served(start(command, environment, ours), ours, token)
        bare = Served(start(peer, dict(os.environ), theirs), theirs, "")
        try:
            for clients in given.clients:
                for modern in (False, True):
                    compare(given, clients, host, bare, modern=modern)
        finally:
            for each in (host, bare):
                each.process.terminate()
                each.process.wait()


@dataclass
class Served:
    """One of the two servers, with what the last round found."""

    process: subprocess.Popen[bytes]
    port: int
    token: str
    rate: float = 0
    processor: float = 0
    latencies: list[float] = field(default_factory=list)

    def measure(self, clients: int, seconds: float, *, modern: bool) -> None:
        data = request(self.port, self.token, modern=modern)
        before = self.used()
        self.rate, self.latencies = asyncio.run(load(clients, seconds, self.port, data))
        self.processor = (self.used() - before) / len(self.latencies)

    def used(self) -> float:
        """Return the processor time of the process so far, in seconds."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        if not stat.exists():
            return 0.0
        ticks = stat.read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def compare(
    given: argparse.Namespace, clients: int, host: Served, peer: Served, *, modern: bool
) -> None:
    ratios: list[tuple[float, float]] = []
    for _ in range(given.rounds):
        for each in (host, peer):
            each.measure(clients, given.seconds, modern=modern)
        processor = peer.processor / host.processor if host.processor else 0.0
        ratios.append((host.rate / peer.rate, processor))
    rate, processor = (statistics.median(each) for each in zip(*ratios, strict=True))
    generation = "2026-07-28" if modern else "2025-11-25"
    print(f"{generation}, {clients} clients: ratio {rate:.2f}, by processor time {processor:.2f}")
    for name, each in {"host": host, "bare MCPServer": peer}.items():
        steps = statistics.quantiles(each.latencies, n=100)
        shown = ", ".join(f"p{p} {steps[p - 1] * 1000:.1f}" for p in (50, 95, 99))
        milliseconds = each.processor * 1000
        print(f"  {name:15} {each.rate:6.0f} calls/s, {shown} ms; processor {milliseconds:.2f} ms")


if __name__ == "__main__":
    main()
