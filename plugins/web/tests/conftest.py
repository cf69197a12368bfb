"""A loopback Brave and SearXNG, and a host with the plugin before them.

Their answers have the shapes of the published references: Brave's Web Search API (`web.results`,
`product`, `product_cluster`, the error object, the headers of limits) and SearXNG's search API.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp import Client

from standards_mcp.testing import Connect
from standards_mcp_web.plugin import WebPlugin

KEY = "BSA-opensesame-0123456789"
OpenWeb = Callable[..., AbstractAsyncContextManager[Client]]


def page(number: int, **more: Any) -> dict[str, Any]:
    return {
        "title": f"Page <strong>{number}</strong>",
        "url": f"https://example.org/{number}",
        "description": f"All about <strong>{number}</strong> &amp; more.",
        "profile": {"name": "Example", "url": f"https://example.org/{number}"},
        **more,
    }


def found(*pages: Any) -> dict[str, Any]:
    return {"type": "search", "web": {"type": "search", "results": list(pages)}}


class Engine(ThreadingHTTPServer):
    """A search engine that answers what a test says.

    Attributes:
        status: Of its next answers; a list is used up one by one, and its last counts on.
        body: JSON data, or bytes as they are.
        headers: Beside the usual ones.
        pause: Seconds before an answer.
        asked: The parameters and the headers of each request.
        keeps_silent: It closes each connection without an answer.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status: list[int] = [200]
        self.body: Any = found(*map(page, range(1, 9)))
        self.headers: Mapping[str, str] = {}
        self.pause = 0.0
        self.keeps_silent = False
        self.asked: list[tuple[dict[str, list[str]], dict[str, str]]] = []

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients leave where an answer is late or too long."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Engine

    def do_GET(self) -> None:
        engine, address = self.server, urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        engine.asked.append((parse_qs(address.query), headers))
        time.sleep(engine.pause)
        if engine.keeps_silent:
            return
        status = engine.status.pop(0) if len(engine.status) > 1 else engine.status[0]
        body = engine.body if isinstance(engine.body, bytes) else json.dumps(engine.body).encode()
        packed = gzip.compress(body)
        given = {"content-type": "application/json", "content-encoding": "gzip"}
        self.send_response(status)
        for name, value in {**given, "content-length": str(len(packed)), **engine.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(packed)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def engine() -> Iterator[Engine]:
    server = Engine()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def open_web(connect: Connect, engine: Engine) -> OpenWeb:
    """Return a function that opens a client of a host with the plugin before the engine."""

    def open_one(**options: Any) -> AbstractAsyncContextManager[Client]:
        given = {"base_url": engine.url, "api_key": KEY, "rate_limit": "1000/second", **options}
        return connect(WebPlugin, name="web", **given)

    return open_one
