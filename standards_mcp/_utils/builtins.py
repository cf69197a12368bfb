"""Protects the builtins, which all code in the process shares."""

from __future__ import annotations

import builtins
from types import TracebackType
from typing import Any


class ChangedBuiltinsError(Exception):
    """Code replaced or deleted builtins, which are restored."""


class KeptBuiltins:
    """A context that restores every builtin at its end; new ones may stay.

    Raises:
        ChangedBuiltinsError: Some had changed. It replaces what was raised within.
    """

    def __init__(self) -> None:
        self._names: Any = vars(builtins)  # a type checker may take it for read-only
        self._before: dict[str, Any] = {}

    def __enter__(self) -> None:
        self._before = {**self._names}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Until they are put back, there may be no builtin that works.
        names, before, absent = self._names, self._before, self
        changed = [name for name in before if names.get(name, absent) is not before[name]]
        names.update(before)
        if changed and not isinstance(error, KeyboardInterrupt):
            listed = ", ".join(changed)
            raise ChangedBuiltinsError(f"it changes builtins that all code uses: {listed}")
