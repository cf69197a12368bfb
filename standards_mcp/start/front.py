"""Answer a client over stdio from a snapshot until the server is loaded.

The front answers only the first requests of a client: the handshake and the lists. The server then
gets all messages in the same order, and its answers to the requests that the front has answered are
dropped. The front leaves every request of an unusual form to the server.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any, Final, Protocol, TypeAlias, cast

from standards_mcp._utils.lines import Consumer, DescriptorLines, Lines

from .snapshot import Snapshot

RequestId: TypeAlias = str | int
LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
DISCOVER: Final = "server/discover"
INITIALIZE: Final = "initialize"
MODERN_VERSION: Final = "2026-07-28"
"""The protocol version without a handshake, in which each request names version and client."""
META_PREFIX: Final = "io.modelcontextprotocol/"

_MAX_LINE: Final = 1 << 16
"""Longer messages are left to the server; requests for lists are never this long."""
_MAX_WAITING: Final = 32 << 20
"""The number of bytes that wait for the server before the front stops reading."""
_BYTES_OF_LINE: Final = 100
"""What a short line takes in memory besides its text."""
_MAX_ID: Final = 1 << 53
# The shapes of clients' descriptions of themselves. The server ignores keys that are not here.
_CLIENT: Final[dict[str, Any]] = {
    **dict.fromkeys(("name", "version", "title", "description", "websiteUrl"), str),
    "icons": [{"src": str, "mimeType": str, "sizes": [str], "theme": ("light", "dark")}],
}
_ANY_KEY: Final = "*"
_CAPABILITIES: Final[dict[str, Any]] = {
    "roots": {"listChanged": bool},
    "sampling": {"tools": dict, "context": dict},
    "elicitation": {"form": dict, "url": dict},
    "tasks": {
        "list": dict,
        "cancel": dict,
        "requests": {"sampling": {"createMessage": dict}, "elicitation": {"create": dict}},
    },
    "experimental": {_ANY_KEY: dict},
    "extensions": {_ANY_KEY: dict},
}


def result_key(version: str, method: str, cursor: str = "") -> str:
    """Return the key of a result in a snapshot."""
    return f"{version} {method} {cursor}".rstrip()


def is_complete(snapshot: Snapshot) -> bool:
    """True if a server has stored its results.

    A snapshot that only commands have written has no such results.
    """
    return result_key(MODERN_VERSION, DISCOVER) in snapshot.results


class Streams(Lines, Protocol):
    """The client's end of a server over stdio: its lines, and where answers go.

    Attributes:
        writer: The file descriptor for answers.
        answered: The methods and results of the requests that were answered already, by id.
    """

    writer: int
    answered: dict[RequestId, tuple[str, bytes]]


class PlainStreams(DescriptorLines):
    """Two file descriptors of which nothing is read before a server starts. See `Streams`."""

    def __init__(self, reader: int, writer: int) -> None:
        super().__init__(reader)
        self.writer = writer
        self.answered: dict[RequestId, tuple[str, bytes]] = {}


class Front:
    """The stdin and stdout of the process, until `start` hands them to a server.

    Args:
        lines: The lines of the client.
        writer: The file descriptor of the client's end.

    It has the attributes of `Streams`, which do not change after a server has taken over. Answers
    are written in a thread of their own: a client may send much before it reads.

    Attributes:
        first_list: `time.perf_counter` at the first answer to ``tools/list``, or None.
    """

    def __init__(self, snapshot: Snapshot, lines: Lines, writer: int) -> None:
        self.writer = writer
        self.limit = lines.limit
        self.answered: dict[RequestId, tuple[str, bytes]] = {}
        self.first_list: float | None = None
        self._results = snapshot.results
        self._waiting: list[bytes] = []
        self._has_ended = False
        self._waiting_bytes = 0
        self._consume: Consumer | None = None
        self._lock = threading.Lock()
        self._taken_over = threading.Event()
        self._is_silent = False
        self._version = ""
        self._ids = set[RequestId]()
        self._outgoing = SimpleQueue[tuple[str, bytes] | None]()
        self._writing = threading.Thread(target=self._write_all, daemon=True)
        self._writing.start()
        lines.start(self._receive)

    def start(self, consume: Consumer) -> None:
        """Hand over to a server: pass on all lines so far, and those that follow."""
        with self._lock:
            self._is_silent = True
        self._outgoing.put(None)
        self._writing.join()  # the front's answers come before the server's
        with self._lock:
            self._consume = consume
            waiting, self._waiting = self._waiting, []
            if waiting:
                consume(waiting)
            if self._has_ended:
                consume([])
        self._taken_over.set()

    def _receive(self, lines: list[bytes]) -> bool:
        with self._lock:
            if self._consume:
                return self._consume(lines)
            self._has_ended = not lines
            for line in lines:
                if line and not line.isspace():
                    self._waiting.append(line)
                    self._waiting_bytes += len(line) + _BYTES_OF_LINE
                    self._answer(line)
            is_full = self._waiting_bytes > _MAX_WAITING
        if is_full:
            self._taken_over.wait()
        return True

    def _answer(self, line: bytes) -> None:
        """Answer a request, if the snapshot has its result."""
        if self._is_silent:
            return
        try:
            message = _message_of(line)
            if message is None or "id" not in message:
                return
            request_id, method = message["id"], message["method"]
            if request_id in self._ids:  # only the server knows what to do with a repeated id
                self._is_silent = True
                return
            self._ids.add(request_id)
            result = self._look_up(method, message.get("params"))
        except Exception:  # noqa: BLE001  - the thread must go on to read
            self._is_silent = True
            return
        if result is None:
            # Without an answer to its first request, the front does not know the client's protocol
            # version, so it stays silent.
            self._is_silent = self._is_silent or not self._version
            return
        self.answered[request_id] = method, result
        head = f'{{"jsonrpc":"2.0","id":{json.dumps(request_id)},"result":'.encode()
        self._outgoing.put((method, head + result + b"}\n"))

    def _write_all(self) -> None:
        while item := self._outgoing.get():
            method, answer = item
            view = memoryview(answer)
            try:
                while view:
                    view = view[os.write(self.writer, view) :]
            except OSError:  # the server meets the broken pipe, too, and ends as it always does
                return
            if method == LISTS[0] and self.first_list is None:
                self.first_list = time.perf_counter()

    def _look_up(self, method: str, params: Any) -> bytes | None:
        """Return the stored result of a request, or None if the server must answer.

        The first result determines the protocol version of the client. A second handshake, or one
        that the server may refuse, makes the front silent.
        """
        if method == INITIALIZE:
            if self._version or not _is_handshake(params):
                self._is_silent = True  # a second handshake, or one that may be refused
                return None
            version = params["protocolVersion"]
            result = self._results.get(result_key(version, method))
            if result:
                self._version = version
            return result
        cursor = _cursor_of(params)
        if cursor is None:
            return None
        if (
            method in LISTS
            and self._version not in ("", MODERN_VERSION)
            and _has_plain_meta(params)
        ):
            return self._results.get(result_key(self._version, method, cursor))
        if (
            method in (*LISTS, DISCOVER)
            and self._version in ("", MODERN_VERSION)
            and _has_envelope(params)
        ):
            self._version = MODERN_VERSION
            return self._results.get(result_key(MODERN_VERSION, method, cursor))
        return None


def _message_of(line: bytes) -> dict[str, Any] | None:
    """Return a request or a notification of plain shape, or None for any other line."""
    if len(line) > _MAX_LINE:
        return None
    try:
        message: object = json.loads(line.decode(), parse_constant=_refuse_constant)
    except ValueError:
        return None
    if not isinstance(message, dict):
        return None
    fields = cast("dict[str, Any]", message)
    request_id = fields.get("id", 0)
    is_plain = (
        fields.keys() <= {"jsonrpc", "id", "method", "params"}
        and fields.get("jsonrpc") == "2.0"
        and isinstance(fields.get("method"), str)
        and (
            (type(request_id) is int and abs(request_id) <= _MAX_ID)
            or (isinstance(request_id, str) and request_id.isascii())
        )
    )
    return fields if is_plain else None


def _refuse_constant(constant: str) -> float:
    raise ValueError(constant)


def _cursor_of(params: Any) -> str | None:
    """Return the cursor of a list request, "" without one, or None for other parameters."""
    if params is None:
        return ""
    if not isinstance(params, dict) or cast("dict[str, Any]", params).keys() - {"cursor", "_meta"}:
        return None
    cursor: object = cast("dict[str, Any]", params).get("cursor", "")
    return cursor if isinstance(cursor, str) else None


def _has_plain_meta(params: Mapping[str, Any] | None) -> bool:
    """True if `_meta` holds at most a progress token."""
    meta = (params or {}).get("_meta", {})
    return isinstance(meta, dict) and _has_only_token(cast("dict[str, Any]", meta))


def _has_envelope(params: Mapping[str, Any] | None) -> bool:
    """True if `_meta` names the version, the client and its capabilities.

    Besides these, it holds at most a progress token.
    """
    envelope = (params or {}).get("_meta")
    if not isinstance(envelope, dict):
        return False
    meta = dict(cast("dict[str, Any]", envelope))
    return (
        meta.pop(f"{META_PREFIX}protocolVersion", None) == MODERN_VERSION
        and _is_client(meta.pop(f"{META_PREFIX}clientInfo", None))
        and _fits(meta.pop(f"{META_PREFIX}clientCapabilities", None), _CAPABILITIES)
        and _has_only_token(meta)
    )


def _has_only_token(meta: Mapping[str, Any]) -> bool:
    token: object = meta.get("progressToken", 0)
    return not meta.keys() - {"progressToken"} and (isinstance(token, str) or type(token) is int)


def _is_handshake(params: Any) -> bool:
    return (
        isinstance(params, dict)
        and cast("dict[str, Any]", params).keys()
        == {"protocolVersion", "clientInfo", "capabilities"}
        and isinstance(params["protocolVersion"], str)
        and _is_client(params["clientInfo"])
        and _fits(params["capabilities"], _CAPABILITIES)
    )


def _is_client(value: Any) -> bool:
    """True for the name and version of a client, with optional texts and icons."""
    if not _fits(value, _CLIENT) or not {"name", "version"} <= value.keys():
        return False
    return all("src" in icon for icon in value.get("icons", ()))


def _fits(value: Any, shape: Any) -> bool:
    """True if a JSON value has the types of a shape; keys that the shape lacks may have any."""
    if isinstance(shape, type):
        return isinstance(value, shape)
    if isinstance(shape, tuple):
        return value in shape
    if isinstance(shape, list):
        items = cast("Sequence[Any]", value)
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in items)
    if not isinstance(value, dict):
        return False
    shapes = cast("dict[str, Any]", shape)
    return all(
        _fits(inner, shapes.get(key, shapes.get(_ANY_KEY, object)))
        for key, inner in cast("dict[str, Any]", value).items()
    )
