"""Reads from stdin and asks for a password, in every place."""

import contextlib
import os
import sys

from standards_mcp import Plugin, tool


def ask():
    with contextlib.suppress(EOFError, OSError, ValueError):
        input("your name? ")
    with contextlib.suppress(OSError):
        os.read(0, 1)
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdin.read()


ask()


class ReadsPlugin(Plugin):
    @tool
    def read(self) -> str:
        """Read."""
        ask()
        return "done"
