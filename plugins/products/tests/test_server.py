"""A Chroma server in place of a folder: it is started, killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from support.http import free_port
from support.waiting import WAIT, wait_until

from standards_mcp import ApiError
from standards_mcp_products import store as store_module
from standards_mcp_products.settings import ProductsSettings
from standards_mcp_products.store import Catalogue, Store

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
            f"The products 'other' are not built in the Chroma server at 127.0.0.1:{server.port}"
            in (found["message"])
        )


async def test_a_server_that_is_silent_is_given_up(open_products: OpenProducts):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with open_products(url=url, timeout=0.5) as client:
            await client.call_tool("rag_search", {"query": "x"})  # opens the encoder, too
            answer = await client.call_tool("rag_search", {"query": "x"})
    assert answer.structured_content is not None
    assert answer.structured_content["error_type"] in ("timeout", "api_error")


async def test_a_server_that_is_silent_has_few_threads_and_is_left_at_once(
    open_products: OpenProducts,
):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with open_products(url=url, timeout=0.5) as client:

            async def ask() -> None:
                answer = await client.call_tool("rag_search", {"query": "x"})
                assert answer.structured_content["error_type"] in ("timeout", "api_error")

            for _ in range(6):
                async with anyio.create_task_group() as tasks:
                    for _ in range(8):
                        tasks.start_soon(ask)
            busy = asking()
        assert busy <= 16
        wait_until(lambda: not asking(), "threads ask after the end")


def test_a_store_that_is_closed_while_it_is_opened_stays_closed(
    state: Path, monkeypatch: pytest.MonkeyPatch
):
    class Slow(Catalogue):
        def open(self, min_timeout: float = 0) -> Any:
            assert min_timeout == 0
            opening.set()
            assert closing.wait(WAIT)
            return "a client"

    opening, closing, closed = threading.Event(), threading.Event(), list[Any]()
    monkeypatch.setattr(store_module, "close_client", closed.append)
    store = Store(Slow(ProductsSettings.model_validate({"url": "http://127.0.0.1:9"}), state))
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(store.ask, lambda all_: all_.count()) for _ in range(2)]
        assert opening.wait(WAIT)
        ended = pool.submit(store.close)
        wait_until(lambda: store._is_closed, "the store is not being closed")
        closing.set()
        ended.result(WAIT)
        for each in asked:
            with pytest.raises(ApiError, match="is closed"):
                each.result(WAIT)
    assert closed == ["a client"]


def asking() -> int:
    """Return how many threads are in the plugin's store."""

    def is_in_store(frame: Any) -> bool:
        while frame is not None:
            if frame.f_code.co_filename.endswith("standards_mcp_products/store.py"):
                return True
            frame = frame.f_back
        return False

    return sum(map(is_in_store, sys._current_frames().values()))


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
