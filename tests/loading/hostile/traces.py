"""Installs a tracer and a profiler that take their time at every line."""

import sys
import threading
import time

from standards_mcp import Plugin, tool


def trace(*_):
    time.sleep(0.0002)
    return trace


class TracesPlugin(Plugin):
    @tool
    async def trace(self) -> str:
        """Trace."""
        threading.settrace(trace)
        sys.settrace(trace)
        sys.setprofile(trace)
        return "done"
