"""Unwrap exception groups, find the origin of an exception, and give internal errors an id."""

from __future__ import annotations

import dis
import uuid
from types import TracebackType
from typing import cast


def leaves(exc: BaseException) -> list[BaseException]:
    """Return the exceptions in a group and its inner groups, or else the exception itself."""
    if not isinstance(exc, BaseExceptionGroup):
        return [exc]
    inner = cast("BaseExceptionGroup[BaseException]", exc).exceptions
    return [leaf for member in inner for leaf in leaves(member)]


def is_from_outside(exc: BaseException) -> bool:
    """Return True if Ctrl-C or the closing of a coroutine raised an exception, not a ``raise``.

    A plugin that itself raises `KeyboardInterrupt` or `GeneratorExit` has failed like any other.
    """
    is_control_flow = isinstance(exc, KeyboardInterrupt | GeneratorExit)
    return is_control_flow and not is_raised(exc.__traceback__)


def is_raised(trace: TracebackType | None) -> bool:
    """Return True if the last line of a traceback is a ``raise``.

    A built-in such as ``int()`` has no frame, so its traceback ends at the line with the call.
    """
    if trace is None:
        return False
    while trace.tb_next:
        trace = trace.tb_next
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"


def new_incident() -> str:
    """Return an id of 12 hexadecimal digits, for the client's message and the log."""
    return uuid.uuid4().hex[:12]


def internal_error(what: str, incident: str) -> str:
    """Return the message about an internal error for a client.

    Args:
        what: The failed request or function, at the beginning of the sentence.
    """
    return (
        f"{what} failed with an internal error (id {incident}). Try again; if it persists, the "
        "server's log has the details under this id."
    )
