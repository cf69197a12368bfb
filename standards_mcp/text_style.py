"""Keeps what editors put into a file beside its words: a byte-order mark, and their line ends."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec

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
