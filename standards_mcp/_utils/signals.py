"""SIGHUP until the server can reload: ignored, since the start reads the configuration anyway."""

from __future__ import annotations

import signal
from types import FrameType


def ignore_hangup() -> None:
    """Ignore SIGHUP, in this process alone; Windows has none.

    Where it is ignored already, as ``nohup`` does, nothing changes.
    """
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _pass)


def restore_hangup() -> None:
    """Let SIGHUP end the process again, as when the terminal of a command is closed."""
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is _pass:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _pass(number: int, frame: FrameType | None) -> None:
    del number, frame
