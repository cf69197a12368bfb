"""Worker processes for commands, which do not run in an event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from anyio.from_thread import BlockingPortal

from . import tasks
from .pool import Pool

if TYPE_CHECKING:
    from standards_mcp_encoders import Vectors

T = TypeVar("T")
_CALL_TIMEOUT: Final = 300.0
"""Deadline of a call, which reads one file or encodes a few texts at a slow address."""


class Workers:
    """Worker processes for a command.

    Attributes:
        pool: The workers.
        portal: The event loop of *pool*, in another thread.
    """

    def __init__(self, pool: Pool, portal: BlockingPortal) -> None:
        self.pool = pool
        self.portal = portal

    def start(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Start a function of `tasks`; the future has the result or error of `Pool.run`."""
        call_pool = partial(self.pool.run, function, *arguments, seconds=_CALL_TIMEOUT)
        return self.portal.start_task_soon(call_pool)

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Call a function that needs no dataset; return its result, or raise its error.

        Raises:
            OSError: The worker crashes or takes too long.
        """
        result: T = self.start(tasks.call, function, *arguments).result()
        return result

    def encode(self, texts: Sequence[str], model: str) -> Vectors:
        """Return a row of length 1 for each text; the texts are split among all workers."""
        batch_size = -(-len(texts) // self.pool.size)
        batches = [texts[start : start + batch_size] for start in range(0, len(texts), batch_size)]
        futures = [self.start(tasks.encode, batch, model) for batch in batches]
        return np.vstack([future.result() for future in futures])
