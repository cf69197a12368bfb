"""Edit JSON with comments and trailing commas in place, the format of VS Code and Zed.

Python's parser reads the text with spaces for comments and trailing commas, so that its positions
are positions in the text. All other characters stay unchanged by an edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from standards_mcp.files import BYTE_ORDER_MARK

# An unclosed string or comment runs to the end, so that no text takes quadratic time.
_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_COMMENT: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?P<end>\*/|\Z)", re.DOTALL)
# A trailing comma follows a value: `{,}` stays a mistake.
_TRAILING: Final = re.compile(rf"((?:{_STRING}|[\w.}}\]])\s*),(?=\s*[}}\]])|{_STRING}", re.DOTALL)
_SPACE: Final = re.compile(r"\s*")


class JsoncError(ValueError):
    """The text is not JSON with comments, or an edit does not fit its values."""


class _Member(NamedTuple):
    """``"key": value`` of an object, with positions in the text.

    Attributes:
        start: The start of the key.
        value_start: The start of the value.
        end: The end of the value.
        comma: The end of the comma after the value, or None if there is no comma.
    """

    key: str
    value: Any
    start: int
    value_start: int
    end: int
    comma: int | None


class _Place(NamedTuple):
    """The innermost object on a path.

    Attributes:
        closing: The position of its closing brace.
        depth: The number of keys of the path that lead to *member*.
        member: The member with the last of these keys, or None if the object lacks the key.
    """

    members: list[_Member]
    closing: int
    depth: int
    member: _Member | None


# The only library on PyPI that keeps comments was last released in 2023. TOML and YAML have tomlkit
# and ruamel.yaml.
class _Document:
    """A parsed text, with spaces in place of comments and trailing commas."""

    def __init__(self, text: str) -> None:
        bare = " " + text[1:] if text.startswith(BYTE_ORDER_MARK) else text
        self._code = _COMMENT.sub(_without_comment, bare)
        self._json = _TRAILING.sub(
            lambda match: f"{match[1]} " if match[1] else match[0], self._code
        )
        self.is_empty = not self._json.strip()
        try:
            self.value = None if self.is_empty else json.loads(self._json)
        except json.JSONDecodeError as exc:
            raise JsoncError(f"line {exc.lineno}, column {exc.colno}: {exc.msg}") from None

    def locate(self, path: Sequence[str]) -> _Place:
        """Return the innermost existing object on *path*.

        Raises:
            JsoncError: A value on the path is not an object.
        """
        value, start, depth = self.value, _skip(self._json, 0), 0
        while isinstance(value, dict):
            members, closing = self._members(start)
            # JSON readers use the last of several members with one key.
            matches = [member for member in members if member.key == path[depth]]
            member, depth = matches[-1] if matches else None, depth + 1
            if member is None or member.value is None or depth == len(path):
                return _Place(members, closing, depth, member)
            value, start = member.value, member.value_start
        raise JsoncError(f"{'.'.join(path[:depth]) or 'the document'} is not an object")

    def _members(self, start: int) -> tuple[list[_Member], int]:
        """Return the members of the object at *start*, and the position of its closing brace."""
        members: list[_Member] = []
        decode = json.JSONDecoder().raw_decode
        position = _skip(self._json, start + 1)
        while self._json[position] == '"':
            key, colon = decode(self._json, position)
            value_start = _skip(self._json, _skip(self._json, colon) + 1)
            value, end = decode(self._json, value_start)
            comma = _skip(self._code, end) + 1
            has_comma = self._code[comma - 1] == ","
            comma_end = comma if has_comma else None
            members.append(_Member(key, value, position, value_start, end, comma_end))
            position = _skip(self._json, comma if has_comma else end)
        return members, position


def loads(text: str) -> Any:
    """Return the value of *text*, or None if it has only space and comments.

    Raises:
        JsoncError: *text* is not JSON with comments; the message names the line.
    """
    return _Document(text).value


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """Return *text* with *value* at *path*, a list of keys; missing objects are added.

    Raises:
        JsoncError: *text* is not JSON with comments, or a value on the path is not an object.
    """
    document = _Document(text)
    if document.is_empty:
        head = text.rstrip()
        return (head + "\n" if head else "") + json.dumps(_nested(path, value), indent=2) + "\n"
    place = document.locate(path)
    new = _rendered(text, _nested(path[place.depth :], value), place.depth)
    if member := place.member:
        return text[: member.value_start] + new + text[member.end :]
    return _inserted(text, place, f"{json.dumps(path[place.depth - 1], ensure_ascii=False)}: {new}")


def remove_value(text: str, path: Sequence[str]) -> str:
    """Return *text* without the member at *path*, if it has such a member.

    Raises:
        JsoncError: *text* is not JSON with comments, or a value on the path is not an object.
    """
    document = _Document(text)
    if document.is_empty:
        return text
    members, _, depth, member = document.locate(path)
    if member is None or depth < len(path):
        return text
    # Remove the member, its comma, and the whole line if nothing else is on it. If the member was
    # the last and had no comma, remove the comma before it, too: strict readers of JSON refuse a
    # comma before the brace.
    before = members[: members.index(member)]
    start, end = member.start, member.comma or member.end
    if not text[end:].split("\n", 1)[0].strip() and not text[:start].rsplit("\n", 1)[-1].strip():
        start = text.rfind("\n", 0, start) + 1
        end = text.find("\n", end) + 1 or len(text)
    head = text[:start]
    if before and member.comma is None and (comma := before[-1].comma):
        head = head[: comma - 1] + head[comma:]
    return head + text[end:]


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _without_comment(match: re.Match[str]) -> str:
    is_string, is_open = match[0].startswith('"'), match["end"] == ""
    return match[0] if is_string or is_open else re.sub(r"[^\r\n]", " ", match[0])


def _skip(text: str, position: int) -> int:
    """Return the position of the next character other than space."""
    return cast("re.Match[str]", _SPACE.match(text, position)).end()


def _inserted(text: str, place: _Place, line: str) -> str:
    # The new member goes after the last text inside the braces, which may be a comment; a missing
    # comma goes right after the last value, before that comment.
    newline, indent = _newline(text), _indent(text)
    at = len(text[: place.closing].rstrip())
    head, space = text[:at], text[at : place.closing]
    if place.members and place.members[-1].comma is None:
        last = place.members[-1].end
        head = head[:last] + "," + head[last:]
    if "\n" not in space:
        space = newline + indent * (place.depth - 1)
    return f"{head}{newline}{indent * place.depth}{line}{space}{text[place.closing :]}"


def _rendered(text: str, value: Any, depth: int) -> str:
    plain = json.dumps(value, indent=_indent(text), ensure_ascii=False)
    return plain.replace("\n", _newline(text) + _indent(text) * depth)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str) -> str:
    match = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return match[1] if match else "  "
