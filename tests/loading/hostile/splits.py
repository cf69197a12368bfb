"""Has half a character in the title of a prompt."""

from standards_mcp import Plugin, Prompt, hookimpl


class SplitsPlugin(Plugin):
    @hookimpl
    def register_prompts(self):
        yield Prompt(
            name="split", description="Split.", title="half \ud83d", function=lambda: "done"
        )
