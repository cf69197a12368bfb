"""A client of the whole program: a process and its pipes, and nothing of the SDK."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from standards_mcp.start.launch import Launch

from .waiting import WAIT, wait_until

COMMAND = [sys.executable, "-m", "standards_mcp"]


def store_snapshot() -> None:
    """Start a server from which the next one in this folder answers its client at once."""
    Launch(()).remove_snapshot()
    peer = Peer()
    try:
        peer.initialize()
        peer.tool_names()
        wait_until(lambda: Launch(()).last_note() is not None, peer.log)
        assert peer.end() == 0
    finally:
        peer.kill()


class Peer:
    """A client that speaks raw lines and holds every line of stdout against JSON-RPC."""

    def __init__(self, *arguments: str, command: Sequence[str] = COMMAND) -> None:
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._errors: list[bytes] = []
        self._readers = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_stdout(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _read_stderr(self) -> None:
        self._errors.extend(self.process.stderr)

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None, number: int | None = None):
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        self.write(
            json.dumps(message | ({} if number is None else {"id": number})).encode() + b"\n"
        )

    def call(self, number: int, tool: str, **arguments: Any) -> None:
        self.send("tools/call", {"name": tool, "arguments": arguments}, number)

    def answer(self) -> dict[str, Any]:
        line = self._lines.get(timeout=WAIT)
        assert line, self.log()
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answers(self, count: int) -> dict[int, dict[str, Any]]:
        """Return so many answers, by the numbers of their requests; notices are passed over."""
        found: dict[int, dict[str, Any]] = {}
        while len(found) < count:
            message = self.answer()
            if "id" in message:
                found[message["id"]] = message
        return found

    def initialize(self, version: str = "2025-11-25") -> dict[str, Any]:
        client = {"name": "peer", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        self.send("initialize", params, 0)
        answer = self.answer()
        self.send("notifications/initialized")
        return answer["result"]

    def tool_names(self) -> list[str]:
        """Return the names of all tools that are listed, page by page."""
        names: list[str] = []
        page: dict[str, Any] = {}
        for number in itertools.count(1000):
            self.send("tools/list", page, number)
            result = self.answers(1)[number]["result"]
            names += [tool["name"] for tool in result["tools"]]
            if not result.get("nextCursor"):
                break
            page = {"cursor": result["nextCursor"]}
        return names

    def kill(self) -> None:
        """End the process if it runs, and let go of its pipes."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def end(self) -> int:
        """Close stdin, wait for the end, and check that nothing but JSON-RPC came."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait(WAIT)
        for reader in self._readers:
            reader.join(WAIT)
        while not self._lines.empty():
            if line := self._lines.get():
                assert json.loads(line)["jsonrpc"] == "2.0"
        return code

    def log(self) -> str:
        return b"".join(self._errors).decode()

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: text in self.log(), self.log)

    def wait_at_work(self, condition: Callable[[], object]) -> None:
        """Wait until *condition* holds, as long as the process runs."""
        wait_until(lambda: self.process.poll() is not None or condition(), self.log)
        assert self.process.poll() is None

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
