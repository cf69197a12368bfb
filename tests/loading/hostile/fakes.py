"""Answers with objects that pretend to be dataclasses, models and numbers."""

from standards_mcp import Plugin, prompt, resource, tool


class Fake:
    __dataclass_fields__ = {"a": None}  # noqa: RUF012
    __pydantic_serializer__ = __pydantic_validator__ = None

    def __getattr__(self, name):
        raise KeyboardInterrupt(name)

    def __str__(self):
        raise SystemExit


class Endless(dict):
    def items(self):
        raise GeneratorExit


class FakesPlugin(Plugin):
    @tool
    def fake(self):
        """Fake."""
        return Fake()

    @tool
    async def fake_mapping(self) -> dict:
        """Fake."""
        return Endless(a=Fake())

    @prompt(complete={"word": lambda *_: [Fake()]})
    def fake_prompt(self, word: str = "") -> str:
        """Fake."""
        return [Fake()]

    @resource("fakes://thing")
    def fake_resource(self):
        """Fake."""
        return Fake()
