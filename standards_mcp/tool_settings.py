"""``[tools]``: which tools are served."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from .catalog_settings import Seconds, Table


class ToolSettings(Table):
    """``[tools]``: which tools are served. A match in ``disable`` always wins.

    Attributes:
        enable: Globs over declared and published names.
        disable: Globs over declared and published names.
        read_only: Serve only tools that change nothing.
        timeout: Seconds for one call of a tool that sets no timeout of its own.
    """

    enable: tuple[str, ...] = ("*",)
    disable: tuple[str, ...] = ()
    read_only: bool = False
    timeout: Seconds = 30.0

    def refusal(self, names: Iterable[str], *, read_only: bool) -> str:
        """Return why a tool with these names is not served, or an empty string."""
        names = tuple(names)
        if self.read_only and not read_only:
            return "it is not read-only, and [tools] read_only = true"
        if pattern := _first_match(names, self.disable):
            return f"[tools] disable has {pattern!r}"
        if not _first_match(names, self.enable):
            return "[tools] enable has no pattern for it"
        return ""

    def unmatched(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return the patterns that match none of *names*, each after the name of its key."""
        names = tuple(names)
        keys = {"enable": self.enable, "disable": self.disable}
        return [
            (key, pattern)
            for key, patterns in keys.items()
            for pattern in patterns
            if pattern != "*" and not _first_match(names, [pattern])
        ]


def _first_match(names: Iterable[str], patterns: Iterable[str]) -> str:
    return next(
        (pattern for pattern in patterns if any(fnmatchcase(name, pattern) for name in names)), ""
    )
