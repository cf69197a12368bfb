"""An emulated Pinecone on the loopback interface: checks every request, and can fail on demand."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs, urlsplit

from support.waiting import WAIT

from standards_mcp_catalog.settings import PineconeCatalogSettings
from standards_mcp_pinecone.client import PineconeClient

from .contract import ANSWERS, API_VERSION, ContractError, check
from .store import OPERATIONS, PineconeStore, RefusedError, Request

KEY = "pcsk_fake_key_for_tests_only"


@dataclass
class Fault:
    """A failure in place of an answer.

    Attributes:
        path: A part of the path of the requests that fail.
        kind: ``status``, ``reset``, ``hang``, ``slow``, ``truncated``, ``malformed``, ``empty``.
        times: Number of requests that fail; None for all.
        when: Returns True if a request with this body fails.
    """

    path: str
    kind: str = "status"
    status: int = 500
    text: str = "internal error"
    retry_after: float | None = None
    seconds: float = 0.0
    times: int | None = None
    when: Callable[[Any], bool] = lambda _body: True


class PineconeServer(PineconeStore):
    """Serves control and data plane on one port; use it as a context manager.

    Attributes:
        broken_answers: Answers of the emulator that break the contract; tests expect none.
        most_active: The greatest number of requests in progress at one time.
    """

    def __init__(self) -> None:
        self._http = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"pinecone": self}))
        super().__init__(f"http://127.0.0.1:{self._http.server_address[1]}")
        self.faults: list[Fault] = []
        self.broken_answers: list[str] = []
        self.active = self.most_active = 0
        self.closing = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        assert failure or not self.broken_answers

    def client(
        self,
        key: str = KEY,
        *,
        knows_host: bool = True,
        metadata_rate: int = 5,
        deadline: float = WAIT,
        **settings: Any,
    ) -> PineconeClient:
        """Return a client of the index with the shortest pauses."""
        settings = {"host": self.url if knows_host else None, "deadline": deadline} | settings
        client = PineconeClient(PineconeCatalogSettings(api_key=key, **settings))
        client.connections.metadata_rate = metadata_rate
        client.write_pauses = (0.01, 0.01)
        return client

    def fail(self, path: str, **fields: Any) -> Fault:
        self.faults.append(Fault(path, **fields))
        return self.faults[-1]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log: clients that disconnect are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    pinecone: ClassVar[PineconeServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        pinecone = self.pinecone
        request = self._read()
        with pinecone.lock:
            pinecone.requests.append(request)
            fault = self._fault(request)
        with self._counted():
            if fault is not None:
                self._fail(fault)
                if fault.kind != "slow":
                    return
            with pinecone.lock:
                status, answer = self._handle(request)
            self._send(status, answer)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        pinecone = self.pinecone
        with pinecone.lock:
            pinecone.active += 1
            pinecone.most_active = max(pinecone.most_active, pinecone.active)
        try:
            yield
        finally:
            with pinecone.lock:
                pinecone.active -= 1

    def _read(self) -> Request:
        parts = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body: Any = None
        if raw:
            lines = self.headers.get("Content-Type") == "application/x-ndjson"
            text = raw.decode()
            body = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(
            self.command, parts.path, headers, parse_qs(parts.query), body, time.monotonic()
        )

    def _handle(self, request: Request) -> tuple[int, Any]:
        name = next(
            (name for method, pattern, name in OPERATIONS
             if method == request.method and re.fullmatch(pattern, request.path)),
            "",
        )  # fmt: skip
        try:
            self._check_headers(request, name)
            status, answer = getattr(self.pinecone, name or "unknown")(request)
        except RefusedError as exc:
            return exc.status, self._error(exc.status, str(exc))
        except ContractError as exc:
            return 400, self._error(400, str(exc))
        if answer is not None:
            try:
                check(ANSWERS[name], answer)
            except ContractError as exc:
                self.pinecone.broken_answers.append(f"{name}: {exc}")
        return status, answer

    @staticmethod
    def _check_headers(request: Request, name: str) -> None:
        if request.headers.get("api-key") != KEY:
            raise RefusedError(401, "Unauthorized")
        if request.headers.get("x-pinecone-api-version") != API_VERSION:
            raise ContractError(f"X-Pinecone-Api-Version is not {API_VERSION}")
        wanted = "application/x-ndjson" if name == "upsert" else "application/json"
        if request.method == "POST" and request.headers.get("content-type") != wanted:
            raise ContractError(f"Content-Type is not {wanted}")

    def _fault(self, request: Request) -> Fault | None:
        for fault in self.pinecone.faults:
            if fault.path in request.path and fault.times != 0 and fault.when(request.body):
                fault.times = None if fault.times is None else fault.times - 1
                return fault
        return None

    def _fail(self, fault: Fault) -> None:
        if fault.kind == "status":
            plain = fault.status in (401, 403, 429)
            body = fault.text if plain else self._error(fault.status, fault.text)
            self._send(fault.status, body, fault.retry_after)
        elif fault.kind in ("malformed", "empty"):
            self._send_raw(200, b'{"result": [' if fault.kind == "malformed" else b"")
        elif fault.kind == "truncated":
            self._send_raw(200, b'{"result"', length=500)
            self.close_connection = True
        elif fault.kind == "reset":
            option = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
            for stream in (self.rfile, self.wfile, self.connection):
                stream.close()
            self.close_connection = True
        else:
            self.pinecone.closing.wait(60 if fault.kind == "hang" else fault.seconds)
            self.close_connection = fault.kind == "hang"

    def _error(self, status: int, message: str) -> Any:
        if status == HTTPStatus.UNAUTHORIZED:
            return message
        if self.path.startswith(("/vectors", "/namespaces", "/describe")):
            return {"code": 3, "message": message, "details": []}
        return {"status": status, "error": {"code": "INVALID_ARGUMENT", "message": message}}

    def _send(self, status: int, answer: Any, retry_after: float | None = None) -> None:
        plain = isinstance(answer, str)
        data = b"" if answer is None else answer.encode() if plain else json.dumps(answer).encode()
        headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
        headers["Content-Type"] = "text/plain" if plain else "application/json"
        self._send_raw(status, data, **headers)

    def _send_raw(
        self, status: int, data: bytes, length: int | None = None, **headers: str
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)
