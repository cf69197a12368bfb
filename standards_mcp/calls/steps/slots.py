"""Limits how many calls of a tool, a prompt or a resource, and of a plugin, run at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import ExitStack, suppress
from typing import Any

from standards_mcp.calls.call import Call, CallNext


class Slots:
    """Runs a call once what is called and its plugin have a free slot each.

    Attributes:
        waiting: How many calls wait for one.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._semaphores: dict[tuple[str, int], FairSemaphore] = {}

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Wait for the slots, then answer the call."""
        limits, item = call.limits, call.item
        # Its slot first: calls that wait for a busy tool must not hold slots of the plugin.
        sizes = {
            f"{item.kind} {item.declared}": limits.concurrency,
            f"plugin {item.plugin}": limits.plugin_concurrency,
        }
        with ExitStack() as held:
            self.waiting += 1
            try:
                for owner, size in sizes.items():
                    if size is not None:
                        # A new size makes a new one; calls that run keep their slots in the old.
                        slots = self._semaphores.setdefault((owner, size), FairSemaphore(size))
                        await slots.acquire(call.context.caller)
                        held.callback(slots.release)
            finally:
                self.waiting -= 1
            return await call_next(call)


class FairSemaphore:
    """A number of slots, for which callers that wait are served in turn.

    However many calls of one of them wait, another comes after one of these at most.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def acquire(self, caller: str) -> None:
        """Wait for a slot and take it."""
        if self._free:  # then nobody waits
            self._free -= 1
            return
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(given)
        try:
            await given
        except asyncio.CancelledError:
            if given.cancelled():
                self._forget(caller, given)
            else:  # it was given in the same moment
                self.release()
            raise

    def release(self) -> None:
        """Let the next caller have a slot."""
        while self._waiting:
            caller = next(iter(self._waiting))
            calls = self._waiting.pop(caller)
            given = calls.popleft()
            if calls:
                self._waiting[caller] = calls  # behind the others
            if not given.done():  # a call may just have been cancelled
                given.set_result(None)
                return
        self._free += 1

    def _forget(self, caller: str, given: asyncio.Future[None]) -> None:
        calls = self._waiting.get(caller, deque())
        with suppress(ValueError):
            calls.remove(given)
        if not calls:
            self._waiting.pop(caller, None)
