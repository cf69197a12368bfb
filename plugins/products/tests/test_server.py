"""A Chroma server in place of a folder: it is started, killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.http import free_port
from support.waiting import wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Build = OpenProducts = Callable[..., Any]
Row = dict[str, Any]
SPELL = "opensesame"
SERVE = "import sys; from chromadb.cli.cli import app; sys.argv[0] = 'chroma'; app()"


class Server:
    """A Chroma server of a folder, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        options = ["--path", str(folder), "--host", "127.0.0.1", "--port", str(self.port)]
        self._command = [sys.executable, "-c", SERVE, "run", *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
        )
        wait_until(self._answers, "Chroma does not serve")

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/api/v2/heartbeat").status_code == 200
        except httpx2.HTTPError:
            return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path / "served")
    one.start()
    yield one
    one.kill()


async def test_a_server_is_built_asked_killed_and_asked_again(
    server: Server, make: Build, open_products: OpenProducts, lamp: Row, soap: Row, tent: Row
):
    make(lamp, soap, url=server.url)
    async with open_products(url=server.url, timeout=5) as client:

        async def ask(**more: Any) -> Any:
            answer = await client.call_tool("rag_search", {"query": "a lamp", **more})
            return answer.structured_content

        def ids(found: Any) -> list[str]:
            return [each["doc_id"] for each in found["results"]]

        assert ids(await ask(top_k=1)) == ["lamp"]
        assert ids(await ask(filters={"price": {"$lt": 5}})) == ["soap"]
        assert ids(await ask(filters={"brand": {"$ne": "Glow"}})) == ["soap"]

        report = make(lamp, tent, url=server.url)
        assert (report["indexed"], report["unchanged"], report["removed"]) == (1, 1, 1)
        assert ids(await ask()) == ["lamp", "tent"]

        server.kill()
        for _ in range(2):
            found = await ask()
            assert found["error_type"] == "api_error"
            assert f"127.0.0.1:{server.port} cannot be reached or read" in found["message"]
            assert "Check that it runs" in found["message"]

        server.start()
        assert ids(await ask()) == ["lamp", "tent"]
    async with open_products(url=server.url, collection="other") as client:
        found = await ask()
        assert (
            f"There are no products 'other' in the Chroma server at 127.0.0.1:{server.port}"
            in (found["message"])
        )


async def test_a_server_that_is_silent_is_given_up(open_products: OpenProducts):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with open_products(url=url, timeout=0.5) as client:
            await client.call_tool("rag_search", {"query": "x"})  # opens the encoder, too
            began = time.monotonic()
            answer = await client.call_tool("rag_search", {"query": "x"})
    assert time.monotonic() - began < 3
    assert answer.structured_content is not None
    assert answer.structured_content["error_type"] in ("timeout", "api_error")


class _Refusing(BaseHTTPRequestHandler):
    seen: list[str] = []  # noqa: RUF012  - read by the test

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        self.send_response(401)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


async def test_a_server_that_refuses_the_token_is_told_without_it(open_products: OpenProducts):
    refusing = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=refusing.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{refusing.server_port}"
    async with open_products(url=url, auth_token=SPELL) as client:
        answer = await client.call_tool("rag_search", {"query": "x"})
    refusing.shutdown()
    refusing.server_close()
    assert _Refusing.seen[0] == f"Bearer {SPELL}"
    assert answer.structured_content is not None
    assert "url and auth_token" in answer.structured_content["message"]
    assert SPELL not in str(answer)
