"""SIGHUP until the server can reload: it asks for what the start does anyway."""

from __future__ import annotations

import signal
from types import FrameType


def disregard_hangup() -> None:
    """Let SIGHUP pass without effect, in this process alone; Windows has none.

    Whoever had it ignored, as ``nohup`` does, is left with that.
    """
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _pass)


def regard_hangup() -> None:
    """Let SIGHUP end the process again: the terminal of a command was closed."""
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is _pass:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _pass(number: int, frame: FrameType | None) -> None:
    del number, frame
