"""Text: hints for misspelt names, control characters, the style of files, and JSON data."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, Concatenate, Final, ParamSpec

BYTE_ORDER_MARK: Final = "\ufeff"
BYTES_PER_TOKEN: Final = 4
"""A rule of thumb for English text and JSON; every model counts in its own way."""
_LONGEST_NAME: Final = 200
_P = ParamSpec("_P")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the most similar known name, or an empty string."""
    similar = nearest(name, known)
    return f"; did you mean {similar!r}?" if similar else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the most similar known name, or an empty string."""
    if len(name) > _LONGEST_NAME:  # the comparison would take seconds
        return ""
    lowered = {item.lower(): item for item in known}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else ""


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, as in ``1 record`` and ``1,748 records``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def describe_decoding(error: UnicodeDecodeError) -> str:
    """Return the message about a file that is not UTF-8, with the line and a remedy."""
    if error.object.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it is UTF-16 text; save it as UTF-8"
    line = error.object.count(b"\n", 0, error.start) + 1
    return f"line {line} is not UTF-8 text; save the file as UTF-8"


def describe_exception(exc: BaseException) -> str:
    """Return an exception as one line."""
    try:
        if isinstance(exc, SystemExit):
            return f"it called sys.exit({exc.code!r})"
    except BaseException:  # noqa: BLE001  - as below
        return "it called sys.exit"
    text = " ".join(text_of(exc).split())
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def text_of(exc: BaseException) -> str:
    """Return the text of an exception, or an empty string if its ``__str__`` fails."""
    try:
        return "".join(str(exc))
    except BaseException:  # noqa: BLE001  - a plugin may raise anything anywhere
        return ""


# Control characters except tabs and line ends, and characters that change the text direction.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Return *text* with control characters as ``\u001b``, as in JSON and TOML."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def readable(text: str) -> str:
    r"""Return the text of another program, `printable` and with ``\n`` as its line ends."""
    return printable(text.replace("\r\n", "\n"))


def keeping_style(
    edit: Callable[Concatenate[str, _P], str],
) -> Callable[Concatenate[str, _P], str]:
    """Wrap *edit* so that it keeps a byte order mark and Windows line ends.

    Both are removed before the edit, and restored in its result. A text with mixed line ends is
    edited as it is.
    """

    @functools.wraps(edit)
    def in_style(text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> str:
        bare = text.removeprefix(BYTE_ORDER_MARK)
        has_windows_ends = 0 < bare.count("\n") == bare.count("\r\n")
        after = edit(bare.replace("\r\n", "\n") if has_windows_ends else bare, *args, **kwargs)
        if has_windows_ends:
            after = after.replace("\n", "\r\n")
        return BYTE_ORDER_MARK + after if text.startswith(BYTE_ORDER_MARK) else after

    return in_style


def tokens(text: str) -> int:
    """Estimate the tokens of *text*."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def json_copy(value: object) -> Any:
    r"""Return a deep copy of JSON data, with lists in place of tuples.

    Raises:
        ValueError: *value* cannot be written as JSON: it has another type, refers to itself, or has
            half of a surrogate pair, as in ``"\ud83d"``, which no text encoding can write.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as exc:
        half = exc.object[exc.start]
        raise ValueError(f"a text in it has half a character ({half!a})") from None
    except (TypeError, RecursionError) as exc:
        raise ValueError(str(exc)) from None
    return json.loads(text)
