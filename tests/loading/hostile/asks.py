"""Asks the user from a model that raises."""

from pydantic import BaseModel, field_validator

from standards_mcp import CallContext, Plugin, tool


class Odd(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def fail(cls, value):
        raise KeyboardInterrupt

    @classmethod
    def __get_pydantic_json_schema__(cls, *_):
        raise GeneratorExit


class AsksPlugin(Plugin):
    @tool
    async def ask(self, context: CallContext) -> str:
        """Ask."""
        await context.ask("Who?", Odd)
        return "done"
