"""``standards-mcp views explore``: the views in a browser on this machine.

The page and its calls have an address with a token, on loopback. Calls run one at a time in the
main thread.
"""

from __future__ import annotations

import json
import secrets
import sys
import webbrowser
from collections.abc import Mapping
from concurrent.futures import Future
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote

import click

from standards_mcp import ToolCaller, ToolResult
from standards_mcp.commands import examples, print_text

from .pages import TOOLS, explore_page

_MAX_BODY: Final = 100_000
_CALL_SECONDS: Final = 60.0
_WAIT_SECONDS: Final = 0.5
"""On Windows, Ctrl-C does not interrupt a thread that waits without a time limit."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_Call: TypeAlias = tuple[str, Mapping[str, Any], "Future[ToolResult]"]


class Server(ThreadingHTTPServer):
    """Serves the page on loopback, and queues its calls for the main thread."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return f"http://127.0.0.1:{self.server_address[1]}/{self.token}/"

    def answer_calls(self, call: ToolCaller) -> None:
        """Run the calls of the page in this thread, until the queue has None."""
        while True:
            try:
                item = self.calls.get(timeout=_WAIT_SECONDS)
            except Empty:
                continue
            if item is None:
                return
            name, arguments, answer = item
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(call(name, arguments))
            except Exception as exc:  # noqa: BLE001  - the page shows it
                answer.set_exception(exc)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report the failure of a request on stderr, except that its tab was closed."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = 30.0

    def do_GET(self) -> None:
        if self._is_allowed("/"):
            text, policy = explore_page()
            self._send(text, "text/html; charset=utf-8", policy=policy)

    def do_POST(self) -> None:
        name = self.path.rpartition("/")[2]
        if not self._is_allowed(f"/tools/{name}"):
            return
        arguments = self._arguments()
        if name not in TOOLS or arguments is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "The page may not make this call.")
            return
        answer: Future[ToolResult] = Future()
        self._own.calls.put((name, arguments, answer))
        try:
            result = answer.result(_CALL_SECONDS)
        except Exception as exc:  # noqa: BLE001  - any failure of a call is for the person
            answer.cancel()
            self._refuse(HTTPStatus.BAD_GATEWAY, str(exc) or "The call took too long.")
            return
        answer_data = result.structured or {"message": result.text}
        status = HTTPStatus.UNPROCESSABLE_ENTITY if result.is_error else HTTPStatus.OK
        self._send(json.dumps(answer_data), "application/json", status=status)

    @property
    def _own(self) -> Server:
        return cast("Server", self.server)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  - the name of the base
        """Write nothing: the token is in each line."""

    def _is_allowed(self, path: str) -> bool:
        """Check host, origin, token and path; answer a request that does not fit."""
        host = f"127.0.0.1:{self._own.server_address[1]}"
        token, _, rest = self.path.removeprefix("/").partition("/")
        is_own = self.headers.get("Host") == host
        is_same_origin = self.headers.get("Origin") in (None, f"http://{host}")
        is_known = secrets.compare_digest(token.encode(), self._own.token.encode())
        if is_own and is_same_origin and is_known and f"/{rest}" == path:
            return True
        command = "standards-mcp views explore"
        self._refuse(HTTPStatus.NOT_FOUND, f"Open the address that `{command}` printed.")
        return False

    def _arguments(self) -> dict[str, Any] | None:
        """Return the arguments in the body, or None if it is too long or no JSON object."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _MAX_BODY:
            return None
        try:
            body: Any = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return None
        return cast("dict[str, Any]", body) if isinstance(body, dict) else None

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._send(json.dumps({"message": reason}), "application/json", status=status)

    def _send(
        self, text: str, kind: str, *, status: HTTPStatus = HTTPStatus.OK, policy: str = ""
    ) -> None:
        data = text.encode()
        self.send_response(status)
        headers = _HEADERS | {"Content-Type": kind, "Content-Length": str(len(data))}
        for name, value in (
            headers | ({"Content-Security-Policy": policy} if policy else {})
        ).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@click.command(
    "explore",
    epilog=examples(
        "views explore", 'views explore "comparing fractions"', "views explore --no-open"
    ),
)
@click.argument("query", default="")
@click.option("--grade", default="", help="Begin with this grade, for example 3.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free port.")
@click.option("--no-open", is_flag=True, help="Print the address, and open no browser.")
@click.pass_obj
def explore(call: ToolCaller, *, query: str, grade: str, port: int, no_open: bool) -> None:
    """Search and browse the standards in your browser, beginning with QUERY.

    Only this machine reaches the page, and only with the address that is printed. End it with
    Ctrl-C.
    """
    try:
        server = Server(port)
    except OSError as exc:
        raise click.ClickException(f"port {port} cannot be used: {exc.strerror}") from exc
    fragment = f"{quote(query, safe='')}{'&grade=' if grade else ''}{quote(grade, safe='')}"
    url = f"{server.url}#{fragment}" if fragment else server.url
    print_text(f"{url}\nEnd with Ctrl-C.")
    Thread(target=server.serve_forever, daemon=True).start()
    if not no_open:
        webbrowser.open(url)
    try:
        server.answer_calls(call)
    except KeyboardInterrupt:
        print_text("Ended.")
    finally:
        server.shutdown()
        server.server_close()
