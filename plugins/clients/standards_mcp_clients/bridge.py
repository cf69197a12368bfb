"""Forward the messages of a client on stdin and stdout to a service over HTTP.

A message is passed on as it came: the bridge reads only the fields that the HTTP transport needs in
headers. The SDK's transport is not used, since it takes a second to import, ends with the first
request that cannot be sent, and answers every HTTP error with one sentence.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias, cast

import anyio
import httpx2
from anyio.abc import TaskGroup

Message: TypeAlias = Mapping[str, Any]
Write: TypeAlias = Callable[[str], Awaitable[None]]

TIMEOUT: Final = httpx2.Timeout(30.0, read=None)
"""A tool may take long, and the stream of changes is silent for hours."""
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
"""The parameters that 2026-07-28 wants in the header `Mcp-Name`, by method."""
_PLAIN_HEADER: Final = re.compile(r"(?!=\?base64\?)[!-~]([ -~]*[!-~])?")
_PARSE_ERROR, _INTERNAL_ERROR = -32700, -32603
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
        self._requests: dict[object, anyio.CancelScope] = {}
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
        if message is None:
            await self._send(_error(_PARSE_ERROR, "Parse error: the line is not a message."))
        elif "method" in message and "id" in message:
            requests.start_soon(self._request, message, line, listeners)
        elif message.get("method") == "notifications/cancelled" and not self._session:
            # In 2026-07-28 the end of a request's connection is its cancellation.
            if scope := self._requests.get(_params(message).get("requestId")):
                scope.cancel()
        else:
            if message.get("method") == "notifications/initialized":
                self._initialized = line
                listeners.start_soon(self._listen)
            await self._notify(line)

    async def _request(self, message: Message, line: bytes, listeners: TaskGroup) -> None:
        """Post a request and write what comes back; a failure becomes an error response."""
        request = message["id"]
        try:
            with anyio.CancelScope() as self._requests[request]:
                try:
                    await self._post(message, line)
                except _SessionEndedError:
                    await self._reopen(listeners)
                    await self._post(message, line)
        except _RefusedError as exc:
            await self._send(_error(_INTERNAL_ERROR, str(exc), id=request))
        except httpx2.HTTPError as exc:
            reason = str(exc) or type(exc).__name__
            advice = "check the address, and that the service runs"
            text = f"{self._url} cannot be reached ({reason}); {advice}."
            await self._send(_error(_INTERNAL_ERROR, text, id=request))
        finally:
            self._requests.pop(request, None)

    async def _post(self, message: Message, line: bytes) -> None:
        is_handshake = message["method"] == "initialize"
        if is_handshake:
            self._session = self._version = ""
            self._initialize = line
        session = self._session
        headers = self._headers(message)
        async with self._http.stream("POST", self._url, content=line, headers=headers) as response:
            if response.status_code == HTTPStatus.NOT_FOUND and session:
                raise _SessionEndedError("The session has ended; start the client again.")
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

        A stream that breaks is resumed, if the service numbers its events.
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
                async with self._http.stream("GET", self._url, headers=headers) as resumed:
                    newest_event, is_answered = await self._pass_on(resumed, request)
                    last_event = newest_event or last_event
            except httpx2.TransportError:
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
        except (httpx2.TransportError, httpx2.SSEError):
            pass  # the caller opens the stream again
        return last_event, False

    async def _listen(self) -> None:
        """Write the messages that the service sends by itself, while the session lasts."""
        session, last_event, failures = self._session, "", 0
        while session and session == self._session:
            headers = self._headers() | ({"last-event-id": last_event} if last_event else {})
            try:
                async with self._http.stream("GET", self._url, headers=headers) as response:
                    if not response.is_success:
                        return  # the service has no such stream, or the session has ended
                    newest_event, _ = await self._pass_on(response)
                    last_event, failures = newest_event or last_event, 0
            except httpx2.TransportError:
                failures += 1
            await anyio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])

    async def _notify(self, line: bytes) -> None:
        """Post a notification or a response, to which no answer comes."""
        try:
            await self._http.post(self._url, content=line, headers=self._headers())
        except httpx2.HTTPError:
            return  # the next request tells the client

    async def _reopen(self, listeners: TaskGroup) -> None:
        """Open a new session with the client's own handshake, unless another request has done so.

        Raises:
            _RefusedError: The service accepts no new session.
        """
        ended = self._session
        async with self._reopening:
            if self._session != ended:
                return
            response = await self._http.post(self._url, content=self._initialize, headers=_HEADERS)
            session = response.headers.get("mcp-session-id", "")
            if not response.is_success or not session:
                raise _RefusedError("The session has ended; start the client again.")
            self._session = session
            await self._notify(self._initialized)
            listeners.start_soon(self._listen)

    async def _close(self) -> None:
        if self._session:
            try:
                await self._http.delete(self._url, headers=self._headers())
            except httpx2.HTTPError:
                return  # the service closes idle sessions by itself

    async def _send(self, message: Message) -> None:
        async with self._writing:
            await self._write(json.dumps(message, separators=(",", ":")))

    def _note_version(self, message: Message) -> None:
        result = message.get("result")
        if isinstance(result, dict) and "protocolVersion" in result:
            self._version = str(cast("Message", result)["protocolVersion"])

    def _headers(self, message: Message | None = None) -> dict[str, str]:
        """Return the headers that the transport demands for a message."""
        params = _params(message or {})
        meta = params.get("_meta")
        version = cast("Message", meta).get(_VERSION_KEY) if isinstance(meta, dict) else None
        if message and isinstance(version, str):
            method = str(message["method"])
            headers = _HEADERS | {"mcp-protocol-version": version, "mcp-method": method}
            name = params.get(_NAME_KEYS.get(method, ""))
            return headers | ({"mcp-name": _encoded(name)} if isinstance(name, str) else {})
        session = {"mcp-session-id": self._session} if self._session else {}
        negotiated = {"mcp-protocol-version": self._version} if self._version else {}
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


def _is_response(message: Message, request: object) -> bool:
    return "method" not in message and message.get("id") == request


def _encoded(value: str) -> str:
    """Return a text for a header, in the transport's form for texts that are not plain ASCII."""
    if _PLAIN_HEADER.fullmatch(value) or not value:
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="
