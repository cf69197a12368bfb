"""Raises what ends programs wherever a client calls it."""

from standards_mcp import Health, Plugin, hookimpl, prompt, resource, tool


def fail(*_):
    raise BaseExceptionGroup("all", [KeyboardInterrupt(), GeneratorExit(), SystemExit()])


class EndsPlugin(Plugin):
    @tool
    def end_plainly(self) -> str:
        """End."""
        raise SystemExit(0)

    @tool
    async def end_later(self) -> str:
        """End."""
        raise KeyboardInterrupt

    @tool
    async def end_coroutine(self) -> str:
        """End."""
        raise GeneratorExit

    @tool
    async def end_loop(self) -> str:
        """End."""
        raise StopAsyncIteration

    @prompt(complete={"word": fail})
    def end_prompt(self, word: str = "") -> str:
        """End."""
        raise KeyboardInterrupt

    @resource("ends://{word}", complete={"word": fail})
    async def end_resource(self, word: str) -> str:
        """End."""
        fail(word)

    @hookimpl
    async def check_health(self) -> Health:
        raise KeyboardInterrupt
