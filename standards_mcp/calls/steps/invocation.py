"""Calls the function of a plugin and renders its return value; the innermost step."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from standards_mcp.calls.call import Call

from .threads import PluginThreads


class Invocation:
    """Calls async functions in the event loop, and others in a thread of their plugin.

    A thread cannot be stopped: a function that runs when its call is given up goes on.
    """

    def __init__(self) -> None:
        self._threads: dict[str, PluginThreads] = {}

    async def __call__(self, call: Call) -> Any:
        """Return the rendered result of the function."""
        function = functools.partial(call.function, **{**call.keywords, **call.given})
        if inspect.iscoroutinefunction(call.function):
            return call.render(await function())
        value = await self._threads_of(call.item.plugin).run(function)
        return call.render(await value if inspect.isawaitable(value) else value)

    def stuck_seconds(self, plugin: str) -> float:
        """Return the seconds that a plugin's function has run on after its call was given up."""
        threads = self._threads.get(plugin)
        return threads.stuck_seconds if threads else 0.0

    def _threads_of(self, plugin: str) -> PluginThreads:
        return self._threads.setdefault(plugin, PluginThreads(plugin))
