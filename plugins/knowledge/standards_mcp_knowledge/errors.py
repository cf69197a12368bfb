"""Why a dataset is not served."""

from __future__ import annotations

from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["manifest", "duplicate", "path", "index", "metadata", "encoder", "worker"]
"""What is wrong with a dataset: the part that has to be put right."""


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
