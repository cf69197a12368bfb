"""Limits how many calls of a tool, a prompt or a resource, and of a plugin, run at a time."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Any

from standards_mcp.calls.call import Call, CallNext


class Slots:
    """Runs a call once what is called and its plugin have a free slot each.

    Attributes:
        waiting: How many calls wait for one.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._semaphores: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Wait for the slots, then answer the call."""
        limits, item = call.limits, call.item
        of_item = self._slot(f"{item.kind} {item.declared}", limits.concurrency)
        of_plugin = self._slot(f"plugin {item.plugin}", limits.plugin_concurrency)
        # Its slot first: calls that wait for a busy tool must not hold slots of the plugin.
        async with AsyncExitStack() as held:
            self.waiting += 1
            try:
                await held.enter_async_context(of_item)
                await held.enter_async_context(of_plugin)
            finally:
                self.waiting -= 1
            return await call_next(call)

    def _slot(self, owner: str, size: int | None) -> AbstractAsyncContextManager[None]:
        if size is None:
            return nullcontext()
        # A new size makes a new semaphore; calls that run keep their slots in the old one.
        return self._semaphores.setdefault((owner, size), asyncio.Semaphore(size))
