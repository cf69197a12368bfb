"""Why a dataset is not served."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["manifest", "duplicate", "path", "index", "metadata", "encoder", "worker"]
"""What is wrong with a dataset: the part that has to be put right."""


_LONGEST: Final = 2000


def one_line(text: str) -> str:
    """Return a text that logs and clients take: printable, on one line, not too long."""
    text = text.encode("utf-8", "replace").decode()
    return "".join(each if each.isprintable() else " " for each in text)[:_LONGEST]


class DatasetError(Exception):
    """A dataset breaks a rule and is left out.

    Attributes:
        kind: The part that is wrong.
        reason: What is wrong with it, in one line.
        is_passing: It may be right later although no file changes, as with an encoder at an
            address.
    """

    def __init__(self, kind: Kind, reason: str, *, is_passing: bool = False) -> None:
        super().__init__(reason)
        self.kind: Kind = kind
        self.reason = reason
        self.is_passing = is_passing

    def __reduce__(self) -> tuple[object, ...]:
        """Keep all of it on the way from a worker."""
        state = {"is_passing": self.is_passing, "__notes__": getattr(self, "__notes__", [])}
        return type(self), (self.kind, self.reason), state
