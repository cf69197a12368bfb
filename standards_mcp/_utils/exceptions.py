"""What was raised, without the groups in which task groups wrap it."""

from __future__ import annotations

from typing import cast


def leaves(exc: BaseException) -> list[BaseException]:
    """Return the exceptions in a group, however deep; of any other exception, itself."""
    if not isinstance(exc, BaseExceptionGroup):
        return [exc]
    inner = cast("BaseExceptionGroup[BaseException]", exc).exceptions
    return [leaf for each in inner for leaf in leaves(each)]
