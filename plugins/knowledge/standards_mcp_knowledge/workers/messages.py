"""What the host and its workers tell each other.

A request is a function with its arguments, and an answer what it returned or raised, both pickled,
with their length in 8 bytes before them. Before its answer, a worker sends `BEGUN`: the host can
tell a worker that a call has ended from one that was gone before.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from standards_mcp_knowledge.encoders import Encoders

LENGTH: Final = 8
BEGUN: Final = b"\x01"
OUT_OF_MEMORY: Final = 77
"""The exit status of a worker that may not have as much memory as it needs."""


@dataclass(frozen=True, slots=True)
class Begin:
    """The first request.

    Attributes:
        memory: How many bytes of address space the worker may have.
    """

    memory: int
    encoders: Encoders


Request: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a function returned or raised. An error has its traceback as a note."""

    value: Any = None
    error: Exception | None = None


def framed(message: object) -> bytes:
    """Return a message as both sides send it.

    An error that cannot be pickled goes as its text.
    """
    try:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        pickle.loads(data)  # noqa: S301  - errors with arguments of their own fail here
    except Exception:
        if not isinstance(message, Answer) or message.error is None:
            raise
        return framed(Answer(error=_plain(message.error)))
    return len(data).to_bytes(LENGTH) + data


def _plain(error: Exception) -> Exception:
    plain = RuntimeError(f"{type(error).__name__}: {error}")
    for note in error.__notes__:
        plain.add_note(note)
    return plain
