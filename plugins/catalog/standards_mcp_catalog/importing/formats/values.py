"""Decode documents, clean their texts, and read JSON of unknown shape without an exception."""

from __future__ import annotations

import codecs
import html
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final, TypeAlias, TypeGuard, cast

from standards_mcp_catalog.importing.report import Problem, SourceError, lost, note

LONGEST_TEXT: Final = 100_000
"""Longer descriptions are cut to this many characters."""
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAMPLE: Final = 4_096
_INLINE: Final = "a|abbr|b|code|em|font|i|mark|s|small|span|strong|sub|sup|u"
_BLOCK: Final = (
    "blockquote|br|dd|div|dl|dt|figure|h[1-6]|hr|img|li|ol|p|pre|section|table|tbody|td|th|thead"
    "|tr|ul"
)
# A tag is a known name with attributes that are written name=value, so that "a < b and c > d"
# stays what it is.
_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+\s?=\s?(?:"[^"]*"|'[^']*'|[^\s"'<>]+))*\s?/?"""
_INLINE_TAG: Final = re.compile(rf"</?(?:{_INLINE}){_ATTRIBUTES}>", re.IGNORECASE)
_BLOCK_TAG: Final = re.compile(rf"</?(?:{_BLOCK}){_ATTRIBUTES}>", re.IGNORECASE)
_RAISED: Final = re.compile(r"<(su[pb])>([0-9n+\-=()]{1,8})</\1>", re.IGNORECASE)
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]\w{1,30});")
# Control characters that `str.split` keeps, and marks that turn the direction of a line.
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_SUPERSCRIPT: Final = str.maketrans("0123456789n+-=()", "⁰¹²³⁴⁵⁶⁷⁸⁹ⁿ⁺⁻⁼⁽⁾")
_SUBSCRIPT: Final = str.maketrans("0123456789n+-=()", "₀₁₂₃₄₅₆₇₈₉ₙ₊₋₌₍₎")


def decode(data: bytes) -> str:
    """Return *data* as text; bytes that are not UTF-8 are Windows-1252.

    Raises:
        SourceError: *data* seems to be in UTF-32, in UTF-16 without a mark, or not text.
    """
    encoding = _encoding_of(data)
    try:
        return data.decode(encoding, "replace" if encoding == "utf-16" else "strict")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


class Lines:
    """The decoded lines of a stream, with their line ends, to be read once.

    A line that is not UTF-8 is Windows-1252. A line longer than *longest* is cut to
    *longest* + 1 characters.

    Attributes:
        has_windows: True if any line so far was in Windows-1252.

    Raises:
        SourceError: As in `decode`.
    """

    def __init__(self, stream: IO[bytes], longest: int) -> None:
        if not isinstance(stream, io.BufferedReader):
            stream = io.BufferedReader(cast("io.RawIOBase", stream))
        reader = cast("io.BufferedReader", stream)
        encoding = _encoding_of(reader.peek(_SAMPLE))
        errors = "replace" if encoding == "utf-16" else "surrogateescape"
        self._reader = io.TextIOWrapper(reader, encoding, errors, newline="")
        self._longest = longest
        self.has_windows = False

    def __iter__(self) -> Iterator[str]:
        try:
            while line := self._reader.readline(self._longest + 1):
                rest = line
                while len(rest) > self._longest and not rest.endswith("\n"):
                    rest = self._reader.readline(self._longest + 1)
                yield line if line.isascii() else self._from_windows(line)
        finally:
            with suppress(ValueError):  # the stream is closed
                self._reader.detach()  # else it would close the stream with itself

    def _from_windows(self, line: str) -> str:
        try:
            line.encode()
        except UnicodeEncodeError:
            self.has_windows = True
            return line.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
        return line


def _encoding_of(data: bytes) -> str:
    # Encodings are not guessed: of real tables in Windows-1252, charset-normalizer takes two in
    # five for another code page, and the wrong letters would look right.
    head = data[:_SAMPLE]
    # UTF-16 without the mark is not looked for, because spreadsheets do not write it.
    if head.startswith(_UTF16) and head[2:4] != b"\0\0":  # which would be UTF-32
        return "utf-16"
    if head.count(0) > len(head) // 4:
        raise SourceError(
            "it is in UTF-32, in UTF-16 without a byte order mark, or not text; save it as UTF-8"
        )
    return "utf-8-sig"


def clean(text: str) -> str:
    """Return *text* on one line, without markup, with its entities resolved.

    Raised and lowered digits keep their meaning: ``x<sup>2</sup>`` becomes ``x²``. Other raised
    marks, such as the star of modelling standards, are kept on the line. A text longer than
    `LONGEST_TEXT` is cut.
    """
    if _is_plain(text):
        return " ".join(text.split())  # nearly all texts; the rest takes several times as long
    # Texts are cleaned when they are read, because they go to models, terminals and logs.
    text = " ".join(without_controls(text[: 2 * LONGEST_TEXT]).split())
    if "<" in text:
        text = _INLINE_TAG.sub("", _BLOCK_TAG.sub(" ", _RAISED.sub(_to_script_digits, text)))
    if "&" in text:
        text = without_controls(_ENTITY.sub(lambda match: html.unescape(match[0]), text))
    if not text.isprintable():
        text = text.encode("utf-8", "replace").decode()  # UTF-8 cannot hold a lone surrogate
    return " ".join(text.split())[:LONGEST_TEXT]


def clean_all(texts: Sequence[str]) -> list[str]:
    """Return `clean` of each text. All are checked at once, because most are clean already."""
    joined = "".join(texts)
    if _is_plain(joined) and "  " not in joined:
        return [text.strip() for text in texts]
    return [clean(text) for text in texts]


def _is_plain(text: str) -> bool:
    return len(text) < LONGEST_TEXT and text.isprintable() and "<" not in text and "&" not in text


def without_controls(text: str) -> str:
    """Return *text* without control and direction characters; line ends stay."""
    return text if text.isprintable() else _CONTROL.sub("", text)


def _to_script_digits(match: re.Match[str]) -> str:
    table = _SUPERSCRIPT if match[1].lower() == "sup" else _SUBSCRIPT
    return match[2].translate(table)


Object: TypeAlias = Mapping[str, object]
"""A JSON object."""

_NUMBER: Final = (int, float)


def parse_json(data: bytes | str) -> object:
    """Return the value of a JSON document.

    Raises:
        SourceError: *data* is not JSON, nests too deep, or has an encoding that `decode` refuses.
    """
    text = data if isinstance(data, str) else decode(data)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise SourceError(f"it is not JSON that can be read: {reason}") from None


def is_object(value: object) -> TypeGuard[Object]:
    """Return whether *value* is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether *value* is a JSON array."""
    return isinstance(value, list)


def unwrapped(value: object) -> object:
    """Return the value under ``data`` if this is the only key: ``{"data": ...}``."""
    if is_object(value) and set(value) == {"data"}:
        return value["data"]
    return value


class Fields:
    """Access to the fields of one JSON object, with a method for each expected type.

    Null, a missing field and blank text are the same. A value of a wrong type counts as missing
    and is noted in *problems*.
    """

    def __init__(self, data: Object, source: str, where: str, problems: list[Problem]) -> None:
        self.data = data
        self._source = source
        self._where = where
        self._problems = problems

    def note(self, reason: str, detail: str = "") -> None:
        """Note something about this object."""
        self._problems.append(note(reason, self._source, self._where, detail))

    def text(self, *names: str) -> str:
        """Return the first of the named fields that holds text or a number, cleaned, or ""."""
        found = (self._cleaned(name, self.data.get(name)) for name in names)
        return next((text for text in found if text), "")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts of an array, or of a single text."""
        value = self.data.get(name)
        elements = value if is_array(value) else (value,)
        found = (self._cleaned(name, element) for element in elements)
        return tuple(dict.fromkeys(filter(None, found)))

    def number(self, name: str, default: float) -> float:
        """Return a finite number, also if it is written as text."""
        value = self.data.get(name)
        if value is None:
            return default
        try:
            number = float(value) if isinstance(value, (*_NUMBER, str)) else float("nan")
        except (ValueError, OverflowError):
            number = float("nan")
        if isinstance(value, bool) or not abs(number) < float("inf"):
            self._note_wrong_type(name, value)
            return default
        return number

    def part(self, name: str) -> Fields:
        """Return the object in a field, or an empty one if it is missing."""
        value = self.data.get(name)
        if value is not None and not is_object(value):
            self._note_wrong_type(name, value)
        found: Object = value if is_object(value) else {}
        return Fields(found, self._source, self._where, self._problems)

    def parts(self, name: str) -> Iterator[Fields]:
        """Yield the objects in a field that is an array or a map; other elements are noted."""
        value = self.data.get(name)
        if value is None:
            return
        elements = list(value.values()) if is_object(value) else value
        if not is_array(elements):
            self._note_wrong_type(name, value)
            return
        for element in elements:
            if is_object(element):
                yield Fields(element, self._source, self._where, self._problems)
            else:
                self._note_wrong_type(name, element)

    def elements(self, name: str, noun: str, id_name: str) -> Iterator[tuple[str, Fields]]:
        """Yield key and fields of each object in a map or an array; other elements are skipped.

        Args:
            noun: Names the elements in problems, and with a number the keys of an array.
            id_name: The field with the id of an element.
        """
        value = self.data.get(name)
        if value is not None and not (is_object(value) or is_array(value)):
            self._note_wrong_type(name, value)
        listed = value if is_array(value) else ()
        numbered = ((f"{noun} {number}", each) for number, each in enumerate(listed, 1))
        for key, element in value.items() if is_object(value) else numbered:
            if is_object(element):
                where = str(element.get(id_name) or key)[:120]
                yield key, Fields(element, self._source, where, self._problems)
            else:
                self._problems.append(lost(f"{noun} is no object", self._source, key[:120]))

    def skip(self, reason: str) -> None:
        """Skip this object."""
        self._problems.append(lost(reason, self._source, self._where))

    def _cleaned(self, name: str, value: object) -> str:
        if isinstance(value, str):
            if len(value) > LONGEST_TEXT:
                self.note("text cut", f"{name} has {len(value):,} characters")
            return clean(value)
        if isinstance(value, _NUMBER) and not isinstance(value, bool):
            return clean(json.dumps(value))
        if value is not None:
            self._note_wrong_type(name, value)
        return ""

    def _note_wrong_type(self, name: str, value: object) -> None:
        self.note("wrong type", f"{name} is {type_name(value)}")


def type_name(value: object) -> str:
    """Return the JSON name of the type of *value*, with its article."""
    names: Mapping[type, str] = {
        dict: "an object", list: "an array", str: "text", bool: "true or false",
        int: "a number", float: "a number",
    }  # fmt: skip
    return names.get(type(value), "null")


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return *fields* without None, "" and empty lists."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [])}


def array_of(value: object) -> Sequence[object]:
    """Return *value* as an array: an array itself, or any other value as its one element."""
    return value if is_array(value) else (value,)
