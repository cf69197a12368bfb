"""Handles the signals of the process itself, and ignores those that end it."""

import asyncio
import contextlib
import signal

from standards_mcp import Plugin, tool

NUMBERS = [signal.SIGTERM, signal.SIGINT]


def ignore():
    with contextlib.suppress(ValueError):
        for number in NUMBERS:
            signal.signal(number, signal.SIG_IGN)


ignore()


class SignalsPlugin(Plugin):
    @tool
    async def signal(self) -> str:
        """Signal."""
        for number in NUMBERS:
            asyncio.get_running_loop().remove_signal_handler(number)
        ignore()
        return "done"
