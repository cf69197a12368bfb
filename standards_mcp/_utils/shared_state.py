"""Protects what all code in the process shares, such as builtins, modules and the import path."""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, cast


class ChangedStateError(Exception):
    """Code changed what all code in the process uses; it is restored."""


class KeptState:
    """A context that restores at its end what code within it has replaced or taken away.

    That is every builtin, every entry of ``sys.path``, ``sys.argv`` and ``PATH``, every variable of
    the environment, every imported module, the working directory, and the room for recursion. What
    code has added may stay, and so may a module that it has put in the place of another.

    Raises:
        ChangedStateError: Something had to be restored. It replaces what was raised within.
    """

    def __init__(self) -> None:
        self._names: Any = vars(builtins)  # a type checker may take it for read-only
        self._builtins: dict[str, Any] = {}
        self._path = list[str]()
        self._arguments = list[str]()
        self._environment: Mapping[str, str] = {}
        self._folder: str | None = None
        self._modules: Mapping[str, Any] = {}
        self._recursion = 0

    def __enter__(self) -> None:
        self._builtins = {**self._names}
        self._path, self._arguments = sys.path[:], sys.argv[:]
        self._environment, self._folder = {**os.environ}, _folder()
        self._modules, self._recursion = {**sys.modules}, sys.getrecursionlimit()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Until they are put back, there may be no builtin that works, and no room for calls.
        has_less_room = self._restores_recursion()
        names, before, absent = self._names, self._builtins, self
        changed = [name for name in before if names.get(name, absent) is not before[name]]
        names.update(before)
        faults = [f"builtins ({', '.join(changed)})"] if changed else []
        faults += ["the recursion limit"] if has_less_room else []
        restored: dict[str, Callable[[], bool]] = {
            "sys.modules": self._restores_modules,
            "sys.path": self._restores_path,
            "sys.argv": self._restores_arguments,
            "environment variables": self._restores_environment,
            "the working directory": self._restores_folder,
        }
        faults += [what for what, restores in restored.items() if restores()]
        if faults and not isinstance(error, KeyboardInterrupt):
            raise ChangedStateError(f"it changes what all code uses: {', '.join(faults)}")

    def _restores_recursion(self) -> bool:
        if sys.getrecursionlimit() >= self._recursion:
            return False
        sys.setrecursionlimit(self._recursion)
        return True

    def _restores_modules(self) -> bool:
        now = sys.modules
        lost = {name: module for name, module in self._modules.items() if now.get(name) is None}
        now.update(lost)
        return any(module is not None for module in lost.values())

    def _restores_path(self) -> bool:
        now = cast("object", sys.path)
        if isinstance(now, list) and set(self._path) <= {*map(str, cast("list[object]", now))}:
            return False
        sys.path = self._path
        return True

    def _restores_arguments(self) -> bool:
        if sys.argv == self._arguments:
            return False
        sys.argv = self._arguments
        return True

    def _restores_environment(self) -> bool:
        now = os.environ
        lost = {name: value for name, value in self._environment.items() if name not in now}
        folders = self._environment.get("PATH", "")
        if not {*folders.split(os.pathsep)} <= {*now.get("PATH", "").split(os.pathsep)}:
            lost["PATH"] = folders
        now.update(lost)
        return bool(lost)

    def _restores_folder(self) -> bool:
        if self._folder is None or self._folder == _folder():
            return False
        os.chdir(self._folder)
        return True


def _folder() -> str | None:
    """Return the working directory; None when it has been deleted."""
    with suppress(OSError):
        return str(Path.cwd())
    return None
