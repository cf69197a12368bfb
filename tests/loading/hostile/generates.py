"""Registers prompts without an end."""

import itertools

from standards_mcp import Plugin, Prompt, hookimpl


class GeneratesPlugin(Plugin):
    @hookimpl
    def register_prompts(self):
        for number in itertools.count():
            yield Prompt(name=f"prompt_{number}", description="One.", function=lambda: "done")
