"""Says from a thread, without a pause, that everything has changed."""

import contextlib
import threading

from standards_mcp import Plugin, hookimpl, resource, tool


class StormsPlugin(Plugin):
    @tool
    def storm(self) -> str:
        """Storm."""
        return "done"

    @resource("storms://thing")
    def storm_resource(self) -> str:
        """Storm."""
        return "done"

    def rage(self):
        for number in range(20_000):
            self.context.contributions_changed()
            self.context.resource_updated("storms://thing")
            self.context.resource_updated(f"none://{number}")

    @hookimpl
    @contextlib.asynccontextmanager
    async def lifespan(self):
        threading.Thread(target=self.rage, daemon=True).start()
        yield
