"""Says half characters in all that it answers, asks, tells and raises."""

from standards_mcp import (
    CallContext,
    Health,
    Message,
    Plugin,
    ToolError,
    ToolResult,
    hookimpl,
    prompt,
    resource,
    tool,
)

HALF = "half \ud83d"


def completed(_typed, _others):
    return [HALF]


class SaysPlugin(Plugin):
    @tool
    def say(self) -> str:
        """Say."""
        return HALF

    @tool
    def say_parts(self) -> ToolResult:
        """Say."""
        return ToolResult(text="a", notes=(HALF,), structured={HALF: HALF}, meta={HALF: 1})

    @tool
    async def say_progress(self, context: CallContext) -> str:
        """Say."""
        await context.report_progress(object(), HALF, HALF)
        context.log.error(HALF, extra={HALF: HALF})
        raise ToolError(HALF, details={HALF: HALF})

    @tool
    def say_error(self) -> str:
        """Say."""
        raise ValueError(HALF)

    @prompt(complete={"word": completed})
    def say_prompt(self, word: str = "") -> Message:
        """Say."""
        return Message(HALF)

    @resource("says://{word}", complete={"word": completed})
    def say_resource(self, word: str) -> str:
        """Say."""
        raise ToolError(HALF)

    @hookimpl
    async def check_health(self) -> Health:
        return Health(status="failed", message=HALF)
