from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp._utils.logs import JsonFormatter, PlainFormatter, configure_logging


def _format(message: object, secrets: Iterable[str] = (), **extra: object) -> str:
    record = logging.LogRecord("standards_mcp.x", logging.INFO, "f.py", 1, message, (), None)
    vars(record).update(extra)
    return JsonFormatter(lambda: secrets).format(record)


def _raised(exc: Exception) -> tuple[type[Exception], Exception, None]:
    return type(exc), exc, None


def test_a_record_is_one_json_object_on_one_line():
    line = _format("two\nlines", tool="x", count=2, plugins={"a": "started"})
    data = json.loads(line)
    assert "\n" not in line
    assert data.pop("time").endswith("+00:00")
    assert data == {
        "level": "info",
        "logger": "standards_mcp.x",
        "event": "two\nlines",
        "tool": "x",
        "count": 2,
        "plugins": {"a": "started"},
    }


def test_an_exception_is_part_of_the_line():
    line = _format("x", exc_info=_raised(ValueError("broken")))
    assert "\n" not in line
    assert json.loads(line)["exception"].endswith("ValueError: broken")


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", {("a", 1): 2}, {None: 1}, 1 + 2j])
def test_values_that_json_does_not_know_do_not_lose_the_line(value: object):
    assert json.loads(_format("x", value=value))["event"] == "x"


SECRETS = ["hush", 'q"uote', "back\\slash", "new\nline", "ünïcode", "😀", "12345"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "spell",
    [str, json.dumps, repr, lambda secret: f"https://user:{secret}@host/"],
    ids=["plain", "json", "repr", "url"],
)
def test_no_secret_gets_through_in_any_spelling(secret: str, spell: Any):
    text = spell(secret)
    line = _format(text, [secret], arguments={"key": text, text: ["x", {"deep": text}]})
    data = json.loads(line)
    for spelling in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        assert spelling not in str(data)
        assert spelling not in line
    assert "***" in data["event"]


def test_a_secret_in_an_exception_is_masked():
    line = _format("x", ["hush"], exc_info=_raised(ValueError('refused "hush"')))
    assert "hush" not in line


def test_a_secret_that_looks_like_a_number_is_masked_and_leaves_json():
    assert json.loads(_format("x", ["12345"], pin=12345, other=7)) | {"time": 0} == {
        "time": 0,
        "level": "info",
        "logger": "standards_mcp.x",
        "event": "x",
        "pin": "***",
        "other": 7,
    }


@given(st.text(min_size=1), st.text(), st.text())
def test_the_line_stays_json_whatever_the_secret(secret: str, before: str, after: str):
    line = _format(before + secret + after, [secret], value=[secret, 1, None, True])
    assert isinstance(json.loads(line), dict)
    assert "\n" not in line


Capture = pytest.CaptureFixture[str]


def _events(capsys: Capture) -> list[str]:
    return [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]


def test_the_hosts_records_go_to_stderr_from_the_level_on(capsys: Capture):
    configure_logging(logging.INFO, lambda: ["hush"])
    logging.getLogger("standards_mcp.calls.pipeline").info("hush there")
    logging.getLogger("standards_mcp.calls.pipeline").debug("unseen")
    assert _events(capsys) == ["*** there"]


def test_other_libraries_are_heard_from_warnings_on(capsys: Capture):
    configure_logging(logging.DEBUG)
    logging.getLogger("somebody").info("unseen")
    logging.getLogger("somebody").warning("seen")
    assert _events(capsys) == ["seen"]


def test_configuring_again_replaces_what_was_there(capsys: Capture):
    for _ in range(3):
        configure_logging(logging.INFO)
    logging.getLogger("standards_mcp").info("once")
    assert _events(capsys) == ["once"]


def test_a_closed_stderr_is_no_error(monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    configure_logging(logging.INFO)
    stream.close()
    logging.getLogger("standards_mcp").info("nobody hears this")


def test_a_handler_that_a_plugin_sets_up_takes_nothing_away(capsys: Capture):
    configure_logging(logging.INFO)
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)
    logging.getLogger("standards_mcp").info("still heard")
    assert _events(capsys) == ["still heard"]


def _plain(message: str, *, tracebacks: bool = False, **extra: object) -> str:
    record = logging.LogRecord("standards_mcp.x", logging.ERROR, "f.py", 1, message, (), None)
    vars(record).update(extra)
    return PlainFormatter(lambda: ["hush"], tracebacks=tracebacks).format(record)


def test_people_get_one_line_with_what_it_does_not_say_already():
    line = _plain("plugin 'acme' failed:\n a hush", plugin="acme", reason="a hush", count=2, no="")
    assert line == "error: plugin 'acme' failed: a *** (count=2)"


def test_people_get_the_last_line_of_an_exception_or_all_of_it():
    cause = _raised(ValueError("no hush"))
    assert _plain("crashed", exc_info=cause) == "error: crashed: ValueError: no ***"
    lines = _plain("crashed", tracebacks=True, exc_info=cause).splitlines()
    assert (lines[0], lines[-1]) == ("error: crashed", "ValueError: no ***")


def test_people_get_nothing_that_steers_their_terminal():
    record = logging.makeLogRecord({"msg": "a\x1b[2Jb\r\x9b1m", "text": "c\nd\u202e"})
    assert PlainFormatter().format(record).endswith("a\\u001b[2Jb \\u009b1m\nc\nd\\u202e")


def test_people_get_plain_lines(capsys: Capture):
    configure_logging(logging.WARNING, plain=True)
    logging.getLogger("standards_mcp").warning("mind this")
    logging.getLogger("somebody").warning("and that")
    assert capsys.readouterr().err == "warning: mind this\nwarning: and that\n"
