"""Declares what only looks like tools: fields that are properties, and types that lie."""

from standards_mcp import Plugin, Tool, hookimpl


class Text(str):  # noqa: SLOT000
    def __eq__(self, other):
        raise RuntimeError("not equal")

    def __hash__(self):
        raise RuntimeError("no hash")


class Dataclass:
    __dataclass_fields__ = {"name": None}  # noqa: RUF012
    __class__ = Tool
    name = description = title = "pretend"


class PretendsPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        yield Tool(name=Text("pretend"), description=Text("Pretend."), function=lambda: "done")
        yield Dataclass()
