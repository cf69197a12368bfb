"""Changes what the interpreter and the system keep for the process."""

import gc
import locale
import os
import sys
import threading

from standards_mcp import Plugin, tool


def fail(*_):
    raise KeyboardInterrupt


def tune():
    locale.setlocale(locale.LC_ALL, "C")
    os.umask(0o077)
    gc.disable()
    sys.setswitchinterval(0.01)
    sys.excepthook = sys.unraisablehook = threading.excepthook = fail


tune()


class TunesPlugin(Plugin):
    @tool
    def tune(self) -> str:
        """Tune."""
        tune()
        return "done"
