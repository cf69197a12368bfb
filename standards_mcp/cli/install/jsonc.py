"""Edits JSON with comments and trailing commas in place, as VS Code and Zed keep their settings.

The grammar is that of RFC 8259 with ``//`` and ``/* */`` comments and a comma allowed after the
last member. Every character that an edit does not concern stays as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from standards_mcp._utils.text import BYTE_ORDER_MARK

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
    |(?P<word>true|false|null|-?\d[\d.eE+-]*)
    |(?P<mark>[][{}:,])""",
    re.VERBOSE | re.DOTALL,
)


class JsoncError(ValueError):
    """The text is not JSON with comments, or an edit does not fit what it holds."""


@dataclass(frozen=True, slots=True)
class _Member:
    """``"key": value`` of an object.

    Attributes:
        start: Where the key begins.
        comma: Where the comma after the value ends, or None without one.
    """

    key: str
    start: int
    node: _Node
    comma: int | None


@dataclass(frozen=True, slots=True)
class _Node:
    value: Any
    start: int
    end: int
    members: tuple[_Member, ...] = ()

    def member(self, key: str) -> _Member | None:
        """Return the member that a JSON reader would see: the last one of that key."""
        return next((each for each in reversed(self.members) if each.key == key), None)


def loads(text: str) -> Any:
    """Return the value of *text*, or None when it holds nothing but space and comments.

    Raises:
        JsoncError: It is not JSON with comments; the message names the line.
    """
    root = _Parser(text).document()
    return None if root is None else root.value


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """Return *text* with *value* at *path*, a list of keys; missing objects are added.

    Raises:
        JsoncError: It is not JSON with comments, or something on the path is not an object.
    """
    node = _Parser(text).document()
    if node is None:
        head = text.rstrip()
        return (head + "\n" if head else "") + json.dumps(_nested(path, value), indent=2) + "\n"
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise JsoncError(f"{'.'.join(path[:depth]) or 'the document'} is not an object")
        member = node.member(key)
        rest = path[depth + 1 :]
        if member is None:
            return _inserted(text, node, depth + 1, key, _nested(rest, value))
        if not rest or member.node.value is None:
            new = _rendered(text, _nested(rest, value), depth + 1)
            return text[: member.node.start] + new + text[member.node.end :]
        node = member.node
    return json.dumps(value, indent=2) + "\n"


def remove_value(text: str, path: Sequence[str]) -> str:
    """Return *text* without the member at *path*; the same text when there is none.

    Raises:
        JsoncError: It is not JSON with comments.
    """
    node = _Parser(text).document()
    for key in path[:-1]:
        member = node.member(key) if node else None
        node = member.node if member else None
    member = node.member(path[-1]) if node else None
    if node is None or member is None:
        return text
    # What goes: the member, its comma, and its whole line where nothing else is on that line. If it
    # was the last one without a comma, the comma of the one before goes, too: strict readers of
    # JSON refuse a comma before the brace.
    before = node.members[: node.members.index(member)]
    start, end = member.start, member.comma or member.node.end
    if not text[end:].split("\n", 1)[0].strip() and not text[:start].rsplit("\n", 1)[-1].strip():
        start = text.rfind("\n", 0, start) + 1
        end = text.find("\n", end) + 1 or len(text)
    head = text[:start]
    if before and member.comma is None and (comma := before[-1].comma):
        head = head[: comma - 1] + head[comma:]
    return head + text[end:]


def _nested(path: Iterable[str], value: Any) -> Any:
    for key in reversed(list(path)):
        value = {key: value}
    return value


def _inserted(text: str, node: _Node, depth: int, key: str, value: Any) -> str:
    # The new member goes after the last text inside the braces, which may be a comment; a missing
    # comma goes right after the last value, before that comment.
    newline, indent = _newline(text), _indent(text)
    at = len(text[: node.end - 1].rstrip())
    head, closing = text[:at], text[at : node.end - 1]
    if node.members and node.members[-1].comma is None:
        last = node.members[-1].node.end
        head = head[:last] + "," + head[last:]
    if "\n" not in closing:
        closing = newline + indent * (depth - 1)
    line = f"{json.dumps(key, ensure_ascii=False)}: {_rendered(text, value, depth)}"
    return f"{head}{newline}{indent * depth}{line}{closing}{text[node.end - 1 :]}"


def _rendered(text: str, value: Any, depth: int) -> str:
    indent = _indent(text)
    plain = json.dumps(value, indent=indent, ensure_ascii=False)
    return plain.replace("\n", _newline(text) + indent * depth)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent(text: str) -> str:
    match = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return match[1] if match else "  "


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _Parser:
    """Reads values with their positions: an edit replaces only the text between two of them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0

    def document(self) -> _Node | None:
        if not self._tokens:
            return None
        node = self._value()
        if self._next < len(self._tokens):
            raise self._fault(self._tokens[self._next])
        return node

    def _value(self) -> _Node:
        token = self._take()
        if token.text == "{":
            return self._object(token)
        if token.text == "[":
            return self._array(token)
        if token.kind == "mark":
            raise self._fault(token)
        return _Node(self._scalar(token), token.start, token.end)

    def _object(self, opening: _Token) -> _Node:
        members: list[_Member] = []
        while (token := self._take()).text != "}":
            if token.kind != "string":
                raise self._fault(token)
            key = self._scalar(token)
            self._take(":")
            node = self._value()
            members.append(_Member(key, token.start, node, self._comma("}")))
        value = {member.key: member.node.value for member in members}
        return _Node(value, opening.start, token.end, tuple(members))

    def _array(self, opening: _Token) -> _Node:
        values: list[Any] = []
        while not self._is_next("]"):
            values.append(self._value().value)
            self._comma("]")
        return _Node(values, opening.start, self._take("]").end)

    def _comma(self, closing: str) -> int | None:
        """Take a comma and return where it ends; without one, *closing* must follow."""
        if self._is_next(closing):
            return None
        return self._take(",").end

    def _is_next(self, text: str) -> bool:
        return self._next < len(self._tokens) and self._tokens[self._next].text == text

    def _take(self, text: str = "") -> _Token:
        if self._next == len(self._tokens):
            raise JsoncError("it ends too early")
        token = self._tokens[self._next]
        if text and token.text != text:
            raise self._fault(token)
        self._next += 1
        return token

    def _scalar(self, token: _Token) -> Any:
        try:
            return json.loads(token.text)
        except ValueError:
            raise self._fault(token) from None

    def _fault(self, token: _Token) -> JsoncError:
        return _fault(self._text, token.start)


def _tokens(text: str) -> Iterable[_Token]:
    position = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _fault(text, position)
        if match.lastgroup and match.lastgroup != "space":
            yield _Token(match.lastgroup, match[0], position)
        position = match.end()


def _fault(text: str, position: int) -> JsoncError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return JsoncError(f"line {line}, column {column}: not valid JSON")
