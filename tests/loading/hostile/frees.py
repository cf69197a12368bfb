"""Has objects whose end raises, and a collector that calls back."""

import gc
import weakref

from standards_mcp import Plugin, tool


class Heavy:
    def __del__(self):
        raise KeyboardInterrupt("at its end")


def fail(*_):
    raise KeyboardInterrupt("while collecting")


class FreesPlugin(Plugin):
    @tool
    async def free(self) -> str:
        """Free."""
        gc.callbacks.append(fail)
        heavy = Heavy()
        self.end = weakref.finalize(heavy, fail)
        heavy.itself = heavy
        del heavy
        gc.collect()
        return "done"
