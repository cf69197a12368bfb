"""Says in the reader's terms what is wrong with a text that is not TOML."""

from __future__ import annotations

import re
from typing import Final

_PLACE: Final = re.compile(r"\(at line (\d+), column (\d+)\)")
_IN_A_STRING: Final = ("Unescaped", "Invalid hex", "Illegal character", "Unterminated")
_DOUBLE_QUOTES: Final = "\u201c\u201d\u201e\u201f\u00ab\u00bb"
_SINGLE_QUOTES: Final = "\u2018\u2019\u201a\u201b"
_WORDS: Final = {
    **dict.fromkeys(("True", "TRUE", "yes", "Yes", "on", "On"), "write true"),
    **dict.fromkeys(("False", "FALSE", "no", "No", "off", "Off"), "write false"),
    **dict.fromkeys(("None", "null", "nil", "NULL"), "leave the key out"),
}
_TWICE: Final = (
    "Cannot declare",
    "Cannot overwrite",
    "Cannot mutate immutable",
    "Duplicate inline table key",
)
_WINDOWS_PATH: Final = re.compile(r'"((?:[A-Za-z]:|\\\\[^\\"]+)\\(?!\\)[^"]*)"')
_EATEN: Final = re.compile(r"[A-Za-z]:[\b\t\n\f\r]")


def explain(text: str, error: str) -> str:
    """Return where a text is not TOML and what to write instead, for the usual mistakes.

    No value of the text is quoted but a path: it may be secret.

    Args:
        error: What the parser says.

    Returns:
        The number of the line with a colon before it, where it is known, and the reason.
    """
    lines, place = text.split("\n"), _PLACE.search(error)
    number, column = (int(place[1]), int(place[2])) if place else (0, 1)
    if error.startswith(_IN_A_STRING):
        # A string that is not closed may have begun anywhere.
        for at in (number,) if number else range(1, len(lines) + 1):
            if advice := path_advice(lines[at - 1]):
                return f":{at}: not valid TOML: {advice}"
    if error.startswith(_TWICE):
        return _twice(lines, number)
    rest = lines[number - 1][column - 1 :] if 0 < number <= len(lines) else ""
    where = f":{number}" if number else ""
    return f"{where}: not valid TOML: {_advice(rest, error) or error}"


def _twice(lines: list[str], number: int) -> str:
    """Return that a table or a key is there twice, with both lines where they can be found."""
    number = number or len("\n".join(lines).rstrip().split("\n"))  # at the end of the document
    line = lines[number - 1].split("#")[0].strip()
    name = line if line.startswith("[") else line.partition("=")[0].strip()
    same = [
        at
        for at, each in enumerate(lines[: number - 1], 1)
        if each.split("#")[0].split("=")[0].strip() == name
    ]
    before = f" (line {same[-1]})" if same else ""
    how = "put its keys into one table" if line.startswith("[") else "keep one of them"
    return f":{number}: not valid TOML: {name} is set twice{before}; {how}"


def is_eaten_path(value: object) -> bool:
    r"""Tell whether a value is a path of Windows of which TOML took ``\t`` for a tab, say."""
    return isinstance(value, str) and bool(_EATEN.match(value))


def path_advice(line: str) -> str:
    """Return how to write the path of Windows in a line, or an empty string without one."""
    found = _WINDOWS_PATH.search(line)
    if found is None:
        return ""
    return f"a backslash means something in double quotes; write the path as '{found[1]}'"


def _advice(rest: str, error: str) -> str:
    """Return what to write in place of what begins where the parser stopped."""
    if rest[:1] and rest[0] in _DOUBLE_QUOTES + _SINGLE_QUOTES:
        straight = '"' if rest[0] in _DOUBLE_QUOTES else "'"
        return f"{rest[0]} is a curly quote; write {straight}, before the text and behind it"
    if error.startswith("Expected '='") and rest.startswith(":"):
        return "write = between a key and its value, in place of :"
    word = re.match(r"[A-Za-z_][\w.-]*", rest)
    if word is None or not error.startswith("Invalid value"):
        return ""
    if advice := _WORDS.get(word[0]):
        return f"{word[0]} means nothing here; {advice}"
    return 'text must be in quotes; write "..."'
