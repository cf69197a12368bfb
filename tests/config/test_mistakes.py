"""Usual mistakes in the file, told in the reader's terms: the file, the line, what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from standards_mcp.config.loading import load_settings
from standards_mcp.errors import ConfigError

FILE = Path("standards-mcp.toml")


def told(text: str) -> str:
    FILE.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "advice"),
    [
        ("[tools]\r\nread_only = True\r\n", 2, "Invalid value (at line 2, column 13)"),
        ('state_dir = "C:\\Users\\me"', 1, "write the path in single quotes"),
        ('state_dir = "\\\\server\\share"', 1, "write the path in single quotes"),
        ("strict = true\nstrict = true", 2, "Cannot overwrite a value"),
        ("[tools]\n[tools]", 2, "Cannot declare ('tools',) twice"),
    ],
)
def test_a_usual_mistake_is_reported_with_the_correction(text: str, line: int, advice: str):
    message = told(text)
    assert message.startswith(f"standards-mcp.toml:{line}: not valid TOML: ")
    assert advice in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "text",
    ['state_dir = "C:\\temp"', '[servers.a]\ncommand = "x"\nargs = ["-f", "C:\\new\\file"]'],
)
def test_a_path_with_escapes_is_refused(text: str):
    message = told(text)
    assert message.startswith(f"standards-mcp.toml:{text.count(chr(10)) + 1}: ")
    assert message.endswith("write the path in single quotes")


@pytest.mark.parametrize(
    "text", ["state_dir = 'C:\\temp'", 'state_dir = "C:\\\\temp"', 'state_dir = "C:/temp"']
)
def test_a_correct_path_is_accepted(text: str):
    FILE.write_text(text)
    assert load_settings().settings.state_dir


def test_a_value_that_may_be_secret_is_not_quoted():
    for text in ("token = opensesame", "token = \u201copensesame\u201d", 'token = "opensesame\\q"'):
        assert "opensesame" not in told(f"[plugins.search]\n{text}")
