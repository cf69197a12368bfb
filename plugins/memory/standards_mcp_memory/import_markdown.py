"""Read memories from Markdown: one for each file or second-level heading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import StringIO
from pathlib import PurePath
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from .records import TAGS_MARK, Draft, Origin, preview_of, tags_in

_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_HEADING: Final = re.compile(r" {0,3}(#{1,2})(?:[ \t](.*))?")
_CLOSING: Final = re.compile(r"(?:^|[ \t])#+$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_MEMORY_LEVEL: Final = 2
_NOTE_FIELD: Final = re.compile(r"\*\*(Title|Description|Preview):\*\*[ \t]*")
_NOTE_CONTENT: Final = "**Content:**"

Split: TypeAlias = Literal["file", "headings"]


class UnreadableError(ValueError):
    """The front matter of a file is invalid. The message follows the file's name."""


class _FrontMatter(NamedTuple):
    title: str | None = None
    preview: str | None = None
    tags: tuple[str, ...] | None = None
    key: str | None = None


class _Section(NamedTuple):
    level: int
    title: str
    line: int
    lines: list[str]


def read_markdown(text: str, where: str, origin: Origin, split: Split) -> Iterator[Draft | str]:
    """Yield the memories of a file, and the places of texts outside of second-level headings.

    A file without such headings is one memory. Otherwise, each preview begins with the description
    in the front matter.

    Args:
        where: The file, for reports.
        origin: The origin of the file; the heading, key and version are set here.

    Raises:
        UnreadableError: The front matter is damaged.
    """
    whole = text.replace("\r\n", "\n").replace("\r", "\n")
    front_matter, body = _split_front_matter(whole)
    origin = origin._replace(key=front_matter.key)
    sections = list(_sections(body))
    if split == "file" or all(section.level != _MEMORY_LEVEL for section in sections):
        yield _whole_file(front_matter, body, where).imported_from(origin)
        return
    first_line = whole.count("\n") - body.count("\n") + 1
    for section in sections:
        content = "\n".join(section.lines).strip("\n")
        position = f"{where}:{section.line + first_line}"
        if section.level == _MEMORY_LEVEL:
            preview = front_matter.preview and preview_of(content, front_matter.preview)
            draft = Draft(section.title, content, preview, front_matter.tags, where=position)
            yield draft.imported_from(origin._replace(heading=section.title))
        elif content.strip():
            yield position


def _whole_file(front_matter: _FrontMatter, body: str, where: str) -> Draft:
    if front_matter == _FrontMatter(key=front_matter.key) and (note := read_note(body)):
        return replace(note, where=where)
    headings = (section.title for section in _sections(body) if section.level == 1)
    content = body.strip()
    title = front_matter.title or next(filter(None, headings), None)
    title = title or (PurePath(where).stem if content else "")
    return Draft(title, content, front_matter.preview, front_matter.tags, where=where)


def read_note(text: str) -> Draft | None:
    """Return a draft of a note with bold field names, as below; None for any other text.

    **Title:** Retry on 502
    **Preview:** The gateway drops the first request after a deploy.

    **Content:** Wait a second, then try again.

    **Tags:** #retry #http
    """
    head, mark, rest = text.lstrip("\ufeff \t\r\n").partition(_NOTE_CONTENT)
    if not head.startswith("**Title:**") or not mark:
        return None
    parts = _NOTE_FIELD.split(head)[1:]
    fields = {
        name: " ".join(value.split()) for name, value in zip(parts[::2], parts[1::2], strict=True)
    }
    body, _, last_line = rest.rstrip().rpartition("\n")
    content = body if last_line.startswith(TAGS_MARK) else rest
    preview = fields.get("Preview") or fields.get("Description")
    return Draft(fields["Title"], content.strip(), preview, tuple(tags_in(rest)))


def _sections(text: str) -> Iterator[_Section]:
    """Yield the text before the first heading, then each heading of level 1 or 2 with its text."""
    section = _Section(0, "", 0, [])
    fence = ""
    for number, line in enumerate(text.split("\n")):
        if match := _FENCE.match(line):
            marks, info = match[1], match[2]
            if not fence:
                fence = "" if marks[0] == "`" and "`" in info else marks
            elif marks[0] == fence[0] and len(marks) >= len(fence) and not info.strip():
                fence = ""
        heading = None if fence else _HEADING.fullmatch(line)
        if heading:
            yield section
            title = _CLOSING.sub("", (heading[2] or "").strip()).strip()
            section = _Section(len(heading[1]), title, number, [])
        else:
            section.lines.append(line)
    yield section


def _split_front_matter(text: str) -> tuple[_FrontMatter, str]:
    """Return the front matter and the text after it."""
    match = _FRONT_MATTER.match(text)
    if not match:
        return _FrontMatter(), text
    try:
        data: Any = YAML(typ="safe", pure=True).load(StringIO(match[1] or ""))  # pyright: ignore[reportUnknownMemberType]
    except (YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise UnreadableError("has front matter that is not valid YAML") from error
    if not isinstance(data, dict | None):
        return _FrontMatter(), text  # a text that begins with a thematic break
    fields = cast("dict[str, Any]", data or {})
    title, preview, description, key = (
        _one_line(fields.get(name)) for name in ("title", "preview", "description", "id")
    )
    tags: Any = fields.get("tags")
    if isinstance(tags, str):
        tags = tags.replace(",", " ").split()
    if not isinstance(tags, list | None):
        raise UnreadableError("has tags that are not a list")
    if tags is not None:
        words = ((_one_line(tag) or "").lstrip("#") for tag in cast("list[object]", tags))
        tags = tuple(filter(None, words))
    return _FrontMatter(title, preview or description, tags, key), text[match.end() :]


def _one_line(value: object) -> str | None:
    # Lists are not converted to text: YAML aliases can make them endless.
    if isinstance(value, list | Mapping):
        raise UnreadableError("has front matter with lists or tables in place of texts")
    return None if value is None else " ".join(str(value).split()) or None
