"""What comes of a line: a message, or the error that answers it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from standards_mcp._utils.messages import MessageError, read_message


def message(**fields: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | fields).encode()


def refusal(line: bytes) -> tuple[int, Any, str]:
    """Return code, id and reason of the error that answers a line."""
    with pytest.raises(MessageError) as caught:
        read_message(line)
    assert caught.value.answer is not None
    answer = json.loads(caught.value.answer.model_dump_json(exclude_unset=True))
    assert answer["jsonrpc"] == "2.0"
    return answer["error"]["code"], answer["id"], answer["error"]["message"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (message(id=1, method="ping"), JSONRPCRequest),
        (message(id="1", method="ping", params={}), JSONRPCRequest),
        (message(id=10**50, method="ping", params=None), JSONRPCRequest),
        (message(method="notifications/initialized"), JSONRPCNotification),
        (message(method="notifications/x", params={"id": 1.5}), JSONRPCNotification),
        (message(id=1, result={}), JSONRPCResponse),
        (message(id=1, error={"code": 1, "message": "x"}), JSONRPCError),
        (message(id=None, error={"code": 1, "message": "x"}), JSONRPCError),
        (message(id=1, method="ping") + b"\r", JSONRPCRequest),
    ],
)
def test_a_message_is_read(line: bytes, kind: type):
    assert isinstance(read_message(line), kind)


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        (rb"\ud83c", "\ufffd"),
        (rb"cut \ud83d in two", "cut \ufffd in two"),
        (rb"\udf55\ud83c", "\ufffd\ufffd"),
        (rb"\ud83c\udf55 whole, \ud83c not", "\N{SLICE OF PIZZA} whole, \ufffd not"),
        (b"\xf0\x9f", "\ufffd"),
        (b"\xed\xa0\xbc", "\ufffd\ufffd\ufffd"),
    ],
)
def test_half_a_character_is_replaced_and_the_rest_is_served(spelling: bytes, text: str):
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":["' + spelling + b'"]}}'
    read = read_message(line)
    assert isinstance(read, JSONRPCRequest)
    assert read.params == {"a": [text]}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"not json", "the line is not JSON (Expecting value at column 1)"),
        (b'{"jsonrpc":"2.0","id":1,"method"', "the line is not JSON (Expecting ':' delimiter"),
        (b"\xff\xfe", "the line is not JSON"),
        (b"[" * 5000, "it is nested too deeply"),
        (b'{"jsonrpc":"2.0","method":"m","id":1' + b"0" * 5000 + b"}", "a number has too many"),
    ],
)
def test_what_cannot_be_parsed_is_a_parse_error_without_an_id(line: bytes, reason: str):
    code, number, text = refusal(line)
    assert (code, number) == (PARSE_ERROR, None)
    assert text.startswith(f"Parse error: {reason}")


@pytest.mark.parametrize(
    ("line", "number", "reason"),
    [
        (b"[" + message(id=1, method="ping") + b"]", None, "batches are not supported"),
        (b"[]", None, "batches are not supported"),
        (b"5", None, "a message must be a JSON object"),
        (b"null", None, "a message must be a JSON object"),
        (b"{}", None, 'jsonrpc must be "2.0"'),
        (b'{"jsonrpc":"1.0","id":4,"method":"ping"}', 4, 'jsonrpc must be "2.0"'),
        (message(id=1.5, method="ping"), None, "id must be a string or an integer"),
        (message(id=None, method="ping"), None, "id must be a string or an integer"),
        (message(id=True, method="ping"), None, "id must be a string or an integer"),
        (message(id=[1], method="ping"), None, "id must be a string or an integer"),
        (message(id=7), 7, "method must be a string"),
        (message(id="7", method=5), "7", "method must be a string"),
        (message(id=7, method="ping", params=[1]), 7, "params must be an object"),
        (
            b'{"jsonrpc":"2.0","id":9,"method":"m","params":{"a":'
            + b"[" * 300
            + b"]" * 300
            + b"}}",
            9,
            "it is nested too deeply",
        ),
        (rb'{"jsonrpc":"2.0","id":"\ud83d","method":1}', "\ufffd", "method must be a string"),
    ],
)
def test_what_is_not_a_message_is_an_invalid_request_under_its_id(
    line: bytes, number: Any, reason: str
):
    code, found, text = refusal(line)
    assert (code, found) == (INVALID_REQUEST, number)
    assert text.startswith(f"Invalid request: {reason}")


@pytest.mark.parametrize("fields", [{"id": 1, "result": 5}, {"id": 1.5, "error": {}}])
def test_a_response_that_is_wrong_is_never_answered(fields: dict[str, Any]):
    with pytest.raises(MessageError) as caught:
        read_message(message(**fields))
    assert caught.value.answer is None
    assert caught.value.reason == "it is neither a request nor a response"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NEARLY = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON},
    optional={"id": JSON, "method": st.just("ping") | JSON, "params": JSON, "result": JSON},
)


@pytest.mark.slow
@given(st.binary() | (JSON | NEARLY).map(lambda value: json.dumps(value).encode()))
def test_any_line_is_a_message_or_has_a_reason(line: bytes):
    try:
        reason = type(read_message(line)).__name__
    except MessageError as error:
        reason = error.reason
    assert reason
