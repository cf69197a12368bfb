"""Memories as Markdown: a file each with front matter or in the form, or one for each heading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import PurePath
from typing import Any, Final, NamedTuple, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from standards_mcp_memory.answers import Skipped
from standards_mcp_memory.origins import Origin
from standards_mcp_memory.records import Draft
from standards_mcp_memory.texts.forms import preview_of, read_form

from .problems import UnreadableError

_FRONT: Final = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_HEADING: Final = re.compile(r" {0,3}(#{1,2})(?:[ \t](.*))?")
_CLOSING: Final = re.compile(r"(?:^|[ \t])#+$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_SECOND: Final = 2


class _Front(NamedTuple):
    title: str | None = None
    preview: str | None = None
    tags: tuple[str, ...] | None = None
    key: str | None = None


class _Section(NamedTuple):
    level: int
    title: str
    line: int
    lines: list[str]


def read_file(text: str, where: str) -> Iterator[Draft]:
    """Yield the one memory of a file.

    Raises:
        UnreadableError: Its front matter is damaged.
    """
    front, body = _split_front(_with_newlines(text))
    origin = Origin(key=front.key)
    if front == _Front(key=front.key) and (form := read_form(body)):
        yield Draft(form.title, form.content, form.preview, form.tags, where=where, origin=origin)
        return
    headings = (each.title for each in _sections(body) if each.level == 1 and each.title)
    content = body.strip()
    title = front.title or next(headings, None) or (PurePath(where).stem if content else "")
    yield Draft(title, content, front.preview, front.tags, where=where, origin=origin)


def read_headings(text: str, where: str) -> Iterator[Draft | Skipped]:
    """Yield a memory for each second-level heading, and where there are other texts.

    Of a file without such headings it is the whole file. The description of the front matter begins
    the preview of each heading.

    Raises:
        UnreadableError: Its front matter is damaged.
    """
    whole = _with_newlines(text)
    front, body = _split_front(whole)
    first = whole.count("\n") - body.count("\n") + 1
    found = list(_sections(body))
    if all(each.level != _SECOND for each in found):
        yield from read_file(text, where)
        return
    for each in found:
        content = "\n".join(each.lines).strip("\n")
        place = f"{where}:{each.line + first}"
        if each.level == _SECOND:
            origin = Origin(heading=each.title, key=front.key)
            preview = front.preview and preview_of(content, front.preview)
            yield Draft(each.title, content, preview, front.tags, where=place, origin=origin)
        elif content.strip():
            yield {"where": place, "reason": "stands under no second-level heading"}


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _sections(text: str) -> Iterator[_Section]:
    """Yield the headings of the first two levels that stand outside of fences, with their texts."""
    section = _Section(0, "", 0, [])
    fence = ""
    for number, line in enumerate(text.split("\n")):
        fence = _fence_after(fence, line)
        heading = None if fence else _HEADING.fullmatch(line)
        if heading:
            yield section
            title = _CLOSING.sub("", (heading[2] or "").strip()).strip()
            section = _Section(len(heading[1]), title, number, [])
        else:
            section.lines.append(line)
    yield section


def _fence_after(fence: str, line: str) -> str:
    """Return the fence that is open after a line, empty where none is."""
    found = _FENCE.match(line)
    if not found:
        return fence
    marks, more = found[1], found[2]
    if not fence:
        return "" if marks[0] == "`" and "`" in more else marks
    is_end = marks[0] == fence[0] and len(marks) >= len(fence) and not more.strip()
    return "" if is_end else fence


def _split_front(text: str) -> tuple[_Front, str]:
    found = _FRONT.match(text)
    if not found:
        return _Front(), text
    try:
        data: Any = YAML(typ="safe", pure=True).load(StringIO(found[1] or ""))  # pyright: ignore[reportUnknownMemberType]
    except (YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise UnreadableError("has front matter that is no YAML") from error
    if not isinstance(data, dict | None):
        return _Front(), text  # it begins with a rule
    return _front(cast("dict[str, Any]", data or {})), text[found.end() :]


def _front(data: Mapping[str, Any]) -> _Front:
    tags: Any = data.get("tags")
    if isinstance(tags, str):
        tags = tags.replace(",", " ").split()
    if not isinstance(tags, list | None):
        raise UnreadableError("has tags that are no list")
    given = cast("list[object] | None", tags)
    names = None if given is None else tuple(filter(None, map(_tag, given)))
    preview = _text(data.get("preview")) or _text(data.get("description"))
    return _Front(_text(data.get("title")), preview, names, _text(data.get("id")))


def _tag(value: object) -> str | None:
    return (_text(value) or "").lstrip("#") or None


def _text(value: object) -> str | None:
    # Lists are not written out: aliases can make them endless.
    if isinstance(value, list | Mapping):
        raise UnreadableError("has front matter with other things than texts")
    return None if value is None else " ".join(str(value).split()) or None
