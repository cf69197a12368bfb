"""From a line to a JSON-RPC message, or to the error that answers it; the streams of messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

Received: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]
]
"""What the SDK reads messages from, and what it writes them to."""

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TOO_DEEP: Final = "it is nested too deeply"


class MessageError(Exception):
    """A line is not a message that can be served.

    Attributes:
        reason: What is wrong with it, without any of its content.
        answer: The error to send, or None for a wrong response: those are never answered.
    """

    def __init__(self, code: int, reason: str, message: object = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.answer = None
        if not _is_response(message):
            what = "Parse error" if code == PARSE_ERROR else "Invalid request"
            error = ErrorData(code=code, message=f"{what}: {reason}.")
            self.answer = JSONRPCError(jsonrpc="2.0", id=_id_of(message), error=error)


def read_message(line: bytes) -> JSONRPCMessage:
    """Return the message that a line holds.

    Half a character, which is what remains when an emoji is cut in two, becomes U+FFFD, as does
    what is not UTF-8.

    Raises:
        MessageError: It is not JSON, or not a message.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _read_leniently(line)
    if isinstance(message, JSONRPCNotification) and b'"id"' in line:
        # The models take a request whose id is of the wrong type for a notification.
        return _read_leniently(line)
    return message


def _read_leniently(line: bytes) -> JSONRPCMessage:
    """Read a line that the strict parser refused, or raise what is wrong with it."""
    value = _parsed(line)
    if fault := _fault(value):
        raise MessageError(INVALID_REQUEST, fault, value)
    try:
        text = _LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False))
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except RecursionError:
        raise MessageError(INVALID_REQUEST, _TOO_DEEP, value) from None
    except ValidationError as exc:
        deep = exc.errors(include_url=False, include_input=False)[0]["type"] == "json_invalid"
        reason = _TOO_DEEP if deep else "it is neither a request nor a response"
        raise MessageError(INVALID_REQUEST, reason, value) from None


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line.decode(errors="replace"))
    except json.JSONDecodeError as exc:
        reason = f"the line is not JSON ({exc.msg} at column {exc.colno})"
    except RecursionError:
        reason = _TOO_DEEP
    except ValueError:
        reason = "a number has too many digits"
    raise MessageError(PARSE_ERROR, reason) from None


def _fault(value: object) -> str:
    """Return what keeps a JSON value from being a message, or an empty string."""
    if isinstance(value, list):
        return "batches are not supported; send each message on a line of its own"
    if not isinstance(value, Mapping):
        return "a message must be a JSON object"
    message = cast("Mapping[str, Any]", value)
    checks = {
        'jsonrpc must be "2.0"': message.get("jsonrpc") == "2.0",
        "id must be a string or an integer": _id_of(message) is not None or "id" not in message,
        "method must be a string": isinstance(message.get("method"), str),
        "params must be an object": isinstance(message.get("params"), dict | None),
    }
    if _is_response(message):
        return ""
    return next((fault for fault, holds in checks.items() if not holds), "")


def _is_response(message: object) -> bool:
    if not isinstance(message, Mapping) or "method" in message:
        return False
    return "result" in message or "error" in message


def _id_of(message: object) -> str | int | None:
    found = cast("Mapping[str, Any]", message).get("id") if isinstance(message, Mapping) else None
    if isinstance(found, str):
        return _LONE_SURROGATE.sub("\ufffd", found)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
