"""What was raised: without the groups in which task groups wrap it, and by whom."""

from __future__ import annotations

import dis
from types import TracebackType
from typing import cast


def leaves(exc: BaseException) -> list[BaseException]:
    """Return the exceptions in a group, however deep; of any other exception, itself."""
    if not isinstance(exc, BaseExceptionGroup):
        return [exc]
    inner = cast("BaseExceptionGroup[BaseException]", exc).exceptions
    return [leaf for each in inner for leaf in leaves(each)]


def is_from_outside(exc: BaseException) -> bool:
    """Tell whether Ctrl-C or the closing of a coroutine raised an exception, and no code did.

    A plugin that raises `KeyboardInterrupt` or `GeneratorExit` itself has failed like any other.
    """
    is_control_flow = isinstance(exc, KeyboardInterrupt | GeneratorExit)
    return is_control_flow and not is_raised(exc.__traceback__)


def is_raised(trace: TracebackType | None) -> bool:
    """Tell whether the last place of a traceback is a ``raise``.

    A built-in such as ``int()`` has no frame: its error stands in the line that calls it.
    """
    if trace is None:
        return False
    while trace.tb_next:
        trace = trace.tb_next
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
