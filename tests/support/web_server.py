"""An MCP server of the handshake generation by HTTP, in a thread, that can be told to misbehave."""

from __future__ import annotations

import http.server
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

TOOLS = [{"name": "count", "inputSchema": {"type": "object"}}]


Server = TypeVar("Server", bound=http.server.ThreadingHTTPServer)


@contextmanager
def in_thread(server: Server) -> Iterator[Server]:
    """Let a server serve while the context is open."""
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class QuietHandler(http.server.BaseHTTPRequestHandler):
    """Answers requests, and writes nothing about them."""

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        # Some servers quote the address in their refusal.
        reason = f"no access to {self.path}" if status >= 400 else None
        self.send_response(status, reason)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


class WebServer(http.server.ThreadingHTTPServer):
    """
    Attributes:
        status: What it answers every request with; 0: as the protocol says.
        page: What it answers with in place of JSON.
        refusal: What it answers calls with, as an error of the protocol.
        sessions: Those that it knows.
        calls: How many calls of its tool it has taken.
        page_of: Its pages of tools, by their number; None for the only page that there is.
    """

    status = 0
    page = ""
    refusal = ""
    calls = 0
    page_of: Callable[[int], dict[str, Any]] | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sessions: set[str] = set()
        self.pages = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def answer(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            info = {"name": "web", "version": "1"}
            able: dict[str, Any] = {"tools": {}}
            return {"protocolVersion": "2025-06-18", "capabilities": able, "serverInfo": info}
        if method == "tools/list":
            self.pages += 1
            return self.page_of(self.pages) if self.page_of else {"tools": TOOLS}
        self.calls += 1
        return {"content": [{"type": "text", "text": str(self.calls)}]}


class _Handler(QuietHandler):
    server: WebServer

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, session = message["method"], self.headers.get("Mcp-Session-Id", "")
        if self.server.status:
            self.say(self.server.status)
        elif self.server.page:
            self.say(200, self.server.page, kind="text/html")
        elif method == "server/discover":
            error = {"code": -32601, "message": "Method not found"}
            self.say(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        elif method == "initialize":
            session = uuid.uuid4().hex
            self.server.sessions.add(session)
            self.respond(message, session)
        elif method == "tools/call" and self.server.refusal:
            error = {"code": -32000, "message": self.server.refusal}
            self.say(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        elif session not in self.server.sessions:
            self.say(404)
        elif "id" in message:
            self.respond(message, session)
        else:
            self.say(202)

    def do_GET(self) -> None:
        self.say(405)

    def do_DELETE(self) -> None:
        self.say(200)

    def respond(self, message: dict[str, Any], session: str) -> None:
        result = self.server.answer(message["method"])
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        self.say(200, text, session=session)

    def say(
        self, status: int, text: str = "", *, kind: str = "application/json", session: str = ""
    ) -> None:
        of_session = {"Mcp_Session_Id": session} if session else {}
        self.reply(status, text.encode(), Content_Type=kind, **of_session)
