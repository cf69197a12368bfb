"""Forward the messages of a client on stdin and stdout to a service over HTTP.

Requests are forwarded unchanged; answers are written again as JSON on one line. The bridge reads
only the fields that the HTTP transport needs in headers. The SDK's transport is not used, since it
takes a second to import, ends with the first request that cannot be sent, and answers every HTTP
error with one sentence.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import Any, Final, TypeAlias, TypeGuard, cast

import anyio
import httpx2
from anyio.abc import TaskGroup

Message: TypeAlias = Mapping[str, Any]
Write: TypeAlias = Callable[[str], Awaitable[None]]

TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)
"""The seconds of silence after which a request fails. The service sends a ping every 15 seconds."""
_STREAM_TIMEOUT: Final = httpx2.Timeout(30.0, read=60.0)
"""For streams that can be opened again without loss: four pings of the service."""
_NOTIFY_TIMEOUT: Final = httpx2.Timeout(30.0, read=5.0)
_REOPEN_SECONDS: Final = 30.0
_MAX_EVENT: Final = 64 << 20
_DRAIN_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 1.0
_PAUSES: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""The seconds before a stream is opened again; the last pause repeats for the stream of changes."""
_HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_NAME_KEYS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""By method, the parameter that goes into the header `Mcp-Name` (since 2026-07-28)."""
_PLAIN_HEADER: Final = re.compile(r"(?!=\?base64\?)[!-~]([ -~]*[!-~])?")
_PARSE_ERROR, _INVALID_REQUEST, _INTERNAL_ERROR = -32700, -32600, -32603
_NO_STREAM: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
"""The session has ended, or the service sends nothing by itself."""
_ADVICE: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "check the token, which is in the variable of --token-env",
    HTTPStatus.FORBIDDEN: "the token does not permit this; ask the operator of the service",
    HTTPStatus.NOT_FOUND: "check the path of the address, which is /mcp by default",
    HTTPStatus.TOO_MANY_REQUESTS: "too many requests; try again later",
}


class _RefusedError(Exception):
    """The service gave no answer to a request; the text says why."""


class _SessionEndedError(_RefusedError):
    """The service does not know the session, for example after a restart."""

    def __init__(self, session: str) -> None:
        super().__init__("The session has ended; start the client again.")
        self.session = session


class Bridge:
    """One client's connection to a service.

    Args:
        http: Sends the requests, with the token.
        write: Writes one line to the client.
    """

    def __init__(self, http: httpx2.AsyncClient, url: str, write: Write) -> None:
        self._http = http
        self._url = url
        self._write = write
        # In 2026-07-28 the end of a request's connection is its cancellation.
        self._cancellable: dict[str | int, anyio.CancelScope] = {}
        # Before 2026-07-28, a client has a session.
        self._session = ""
        self._version = ""
        self._initialize = b""
        self._initialized = b""
        self._reopening = anyio.Lock()
        self._writing = anyio.Lock()

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Forward until the client's lines end and its open requests are answered."""
        async with anyio.create_task_group() as listeners:
            async with anyio.create_task_group() as requests:
                async for line in lines:
                    if line.strip():
                        await self._forward(line, requests, listeners)
                requests.cancel_scope.deadline = anyio.current_time() + _DRAIN_SECONDS
            listeners.cancel_scope.cancel()
        with anyio.move_on_after(_CLOSE_SECONDS):
            await self._close()

    async def _forward(self, line: bytes, requests: TaskGroup, listeners: TaskGroup) -> None:
        message = _parsed(line)
        method = message.get("method") if message else None
        if message is None:
            await self._send(_error(_PARSE_ERROR, "Parse error: the line is not a message."))
        elif "method" in message and "id" in message:
            if not _is_id(message["id"]) or not isinstance(method, str):
                text = (
                    "Invalid request: the id must be a string or an integer, the method a string."
                )
                await self._send(_error(_INVALID_REQUEST, text))
                return
            # A subscription has no answer to wait for when the client's lines end.
            tasks = listeners if method == "subscriptions/listen" else requests
            tasks.start_soon(self._request, message, line, listeners)
        elif method == "notifications/cancelled" and (scope := self._scope_of(message)):
            scope.cancel()
        elif method == "notifications/initialized":
            self._initialized = line
            await self._notify(line)
            listeners.start_soon(self._listen)
        else:
            requests.start_soon(self._notify, line)

    def _scope_of(self, cancellation: Message) -> anyio.CancelScope | None:
        request = _params(cancellation).get("requestId")
        return self._cancellable.get(request) if _is_id(request) else None

    async def _request(self, message: Message, line: bytes, listeners: TaskGroup) -> None:
        """Post a request and write what comes back; a failure becomes an error response."""
        request = message["id"]
        try:
            with anyio.CancelScope() as scope:
                if _version_of(message):
                    self._cancellable[request] = scope
                try:
                    await self._post(message, line)
                except _SessionEndedError as exc:
                    await self._reopen(exc.session, listeners)
                    await self._post(message, line)
        except _RefusedError as exc:
            await self._send(_error(_INTERNAL_ERROR, str(exc), id=request))
        except httpx2.HTTPError as exc:
            reason = str(exc) or type(exc).__name__
            advice = "check the address, and that the service runs"
            text = f"{self._url} cannot be reached ({reason}); {advice}."
            await self._send(_error(_INTERNAL_ERROR, text, id=request))
        except Exception as exc:  # noqa: BLE001  - one odd message must not end the others
            text = f"The request cannot be forwarded ({type(exc).__name__})."
            await self._send(_error(_INTERNAL_ERROR, text, id=request))
        finally:
            self._cancellable.pop(request, None)

    async def _post(self, message: Message, line: bytes) -> None:
        is_handshake = message["method"] == "initialize"
        if is_handshake:
            self._session = self._version = ""
            self._initialize = line
        session = self._session
        headers = self._headers(message)
        async with self._http.stream("POST", self._url, content=line, headers=headers) as response:
            if response.status_code == HTTPStatus.NOT_FOUND and session:
                raise _SessionEndedError(session)
            if is_handshake:
                self._session = response.headers.get("mcp-session-id", "")
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                await self._answer_from_events(response, message["id"])
                return
            answer = _parsed(await response.aread())
        if answer is None or "jsonrpc" not in answer:
            status = response.status_code
            advice = _ADVICE.get(status, "ask the operator of the service")
            raise _RefusedError(f"The service answered with HTTP status {status}; {advice}.")
        self._note_version(answer)
        await self._send({**answer, "id": message["id"]})

    async def _answer_from_events(self, response: httpx2.Response, request: object) -> None:
        """Write the messages of a stream up to the response to a request.

        A stream that breaks is resumed, if the service numbers its events and knows the session.
        """
        last_event, is_answered = await self._pass_on(response, request)
        for pause in _PAUSES:
            if is_answered:
                return
            if not last_event:
                break
            await anyio.sleep(pause)
            headers = self._headers() | {"last-event-id": last_event}
            try:
                async with self._get(headers) as resumed:
                    if not resumed.is_success:
                        break
                    newest_event, is_answered = await self._pass_on(resumed, request)
                    last_event = newest_event or last_event
            except httpx2.HTTPError:
                continue
        if not is_answered:
            raise _RefusedError("The connection ended before the answer came; try again.")

    async def _pass_on(self, response: httpx2.Response, request: object = None) -> tuple[str, bool]:
        """Write the messages of a stream until it ends, or until the response to a request.

        Returns:
            The id of the last event, and True if the response came.
        """
        last_event = ""
        try:
            async for event in httpx2.EventSource(response, max_event_size=_MAX_EVENT):
                last_event = event.id or last_event
                if message := _parsed(event.data.encode()):
                    self._note_version(message)
                    await self._send(message)
                    if request is not None and _is_response(message, request):
                        return last_event, True
        except httpx2.HTTPError:
            pass  # the caller opens the stream again
        return last_event, False

    async def _listen(self) -> None:
        """Write the messages that the service sends by itself, while the session lasts."""
        session, last_event, failures = self._session, "", 0
        while session and session == self._session:
            headers = self._headers() | ({"last-event-id": last_event} if last_event else {})
            try:
                async with self._get(headers) as response:
                    if response.status_code in _NO_STREAM:
                        return
                    response.raise_for_status()
                    newest_event, _ = await self._pass_on(response)
                    last_event, failures = newest_event or last_event, 0
            except httpx2.HTTPError:
                failures += 1
            except Exception:  # noqa: BLE001  - the requests need no such stream
                return
            await anyio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])

    def _get(self, headers: Mapping[str, str]) -> AbstractAsyncContextManager[httpx2.Response]:
        return self._http.stream("GET", self._url, headers=headers, timeout=_STREAM_TIMEOUT)

    async def _notify(self, line: bytes) -> None:
        """Post a notification or a response; neither has an answer."""
        try:
            headers = self._headers()
            await self._http.post(self._url, content=line, headers=headers, timeout=_NOTIFY_TIMEOUT)
        except Exception:  # noqa: BLE001  - see below
            return  # The client learns of the failure from its next request.

    async def _reopen(self, ended: str, listeners: TaskGroup) -> None:
        """Open a session in place of *ended* with the client's own handshake, unless there is one.

        The version stays, since the client keeps to the one that it has agreed on.

        Raises:
            _RefusedError: The service accepts no new session.
        """
        async with self._reopening:
            if self._session != ended:
                return
            with anyio.move_on_after(_REOPEN_SECONDS):
                answer = await self._http.post(
                    self._url, content=self._initialize, headers=_HEADERS
                )
                session = answer.headers.get("mcp-session-id", "")
                if answer.is_success and session:
                    headers = self._headers() | {"mcp-session-id": session}
                    await self._http.post(self._url, content=self._initialized, headers=headers)
                    self._session = session  # only now, so that no request overtakes `initialized`
                    listeners.start_soon(self._listen)
                    return
            raise _SessionEndedError(ended)

    async def _close(self) -> None:
        if self._session:
            try:
                await self._http.delete(self._url, headers=self._headers())
            except Exception:  # noqa: BLE001  - the service closes idle sessions by itself
                return

    async def _send(self, message: Message) -> None:
        async with self._writing:
            await self._write(json.dumps(message, separators=(",", ":")))

    def _note_version(self, message: Message) -> None:
        result = message.get("result")
        version = (
            cast("Message", result).get("protocolVersion") if isinstance(result, dict) else None
        )
        if isinstance(version, str):
            self._version = version

    def _headers(self, message: Message | None = None) -> dict[str, str]:
        """Return the headers that the transport demands for a message."""
        if message and (version := _version_of(message)):
            method = str(message["method"])
            name = _params(message).get(_NAME_KEYS.get(method, ""))
            own = {"mcp-protocol-version": _encoded(version), "mcp-method": _encoded(method)}
            named = {"mcp-name": _encoded(name)} if isinstance(name, str) else {}
            return _HEADERS | own | named
        session = {"mcp-session-id": self._session} if self._session else {}
        negotiated = {"mcp-protocol-version": _encoded(self._version)} if self._version else {}
        return _HEADERS | session | negotiated


def _error(code: int, text: str, **request: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **request, "error": {"code": code, "message": text}}


def _parsed(line: bytes) -> Message | None:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("Message", value) if isinstance(value, dict) else None


def _params(message: Message) -> Message:
    params = message.get("params")
    return cast("Message", params) if isinstance(params, dict) else {}


def _version_of(message: Message) -> str:
    """Return the version that a request of 2026-07-28 or later names, or ""."""
    meta = _params(message).get("_meta")
    version = cast("Message", meta).get(_VERSION_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else ""


def _is_id(value: object) -> TypeGuard[str | int]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_response(message: Message, request: object) -> bool:
    return "method" not in message and message.get("id") == request


def _encoded(value: str) -> str:
    """Return a text for a header, in the transport's form for texts that are not plain ASCII."""
    if _PLAIN_HEADER.fullmatch(value) or not value:
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="
