"""Small works on text: hints for misspelt names, what a terminal can show, the style of a file."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Concatenate, Final, ParamSpec

_LONGEST_NAME: Final = 200


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known name most like *name*, or an empty string."""
    found = nearest(name, known)
    return f"; did you mean {found!r}?" if found else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name most like *name*, or an empty string."""
    if len(name) > _LONGEST_NAME:  # the comparison would take seconds
        return ""
    lowered = {item.lower(): item for item in known}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else ""


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return how many there are, as in ``1 record`` and ``1,748 records``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def describe_decoding(error: UnicodeDecodeError) -> str:
    """Return in plain words that a file is not UTF-8, with the line and what to do."""
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
    """Return the text of an exception; an empty one if it raises another when it is asked."""
    try:
        return "".join(str(exc))
    except BaseException:  # noqa: BLE001  - a plugin may raise anything anywhere
        return ""


# Control characters but for tabs and line ends, and those that turn the direction of a line.
_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Return *text* with whatever would steer a terminal as ``\u001b``, as JSON and TOML do."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def readable(text: str) -> str:
    r"""Return a text of another program as `printable` does, with ``\n`` as its line ends."""
    return printable(text.replace("\r\n", "\n"))


BYTE_ORDER_MARK: Final = "\ufeff"


_P = ParamSpec("_P")


def keeping_style(
    edit: Callable[Concatenate[str, _P], str],
) -> Callable[Concatenate[str, _P], str]:
    """Return *edit* for texts of any style: it sees them without a mark, and with plain line ends.

    What it returns gets both back. A text with line ends of both kinds keeps each where it is.
    """

    @functools.wraps(edit)
    def in_style(text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> str:
        bare = text.removeprefix(BYTE_ORDER_MARK)
        is_of_windows = 0 < bare.count("\n") == bare.count("\r\n")
        after = edit(bare.replace("\r\n", "\n") if is_of_windows else bare, *args, **kwargs)
        if is_of_windows:
            after = after.replace("\n", "\r\n")
        return BYTE_ORDER_MARK + after if text.startswith(BYTE_ORDER_MARK) else after

    return in_style
