"""A plugin as it was written for the first release, with everything that its API had.

Never change this file to make a test pass: whoever wrote such a plugin does not either.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import click
from pydantic import BaseModel, Field, SecretStr

from standards_mcp import (
    ApiError,
    Filter,
    FilterExpression,
    Health,
    InvalidInputError,
    Message,
    NotFoundError,
    Plugin,
    PluginContext,
    PluginSettings,
    Prompt,
    Resource,
    Tool,
    ToolCall,
    ToolCaller,
    ToolError,
    ToolHandler,
    ToolResult,
    hookimpl,
)
from standards_mcp_catalog import Catalog, CatalogError, StandardRecord


class FirstSettings(PluginSettings):
    """Settings.

    Attributes:
        greeting: What it says.
    """

    greeting: str = "Hello"
    token: SecretStr | None = None


class Found(BaseModel):
    code: str
    text: str


def shout(call: ToolCaller) -> None:
    click.echo(call("first.greet", {"name": "all"}).text)


class FirstPlugin(Plugin[FirstSettings]):
    settings_type = FirstSettings
    needs = (Catalog,)

    def __init__(self, settings: FirstSettings, context: PluginContext) -> None:
        super().__init__(settings, context)
        self.is_open = False
        self.calls = 0

    @hookimpl
    def register_tools(self) -> Iterable[Tool]:
        return [
            Tool(
                name="first.greet",
                title="Greet",
                description="Greet somebody by name.",
                function=self.greet,
                read_only=True,
                idempotent=True,
                open_world=False,
                timeout=5,
                cache_ttl=0,
                meta={"example/kind": "greeting"},
            ),
            Tool(name="first_find", function=self.find, read_only=True, accepts_filters=True),
            Tool(
                name="first_raw",
                description="Take what a schema of its own allows.",
                function=self.raw,
                input_schema={"type": "object", "properties": {"n": {"type": "integer"}}},
                destructive=False,
            ),
        ]

    @hookimpl
    def register_prompts(self) -> Iterable[Prompt]:
        return [
            Prompt(
                name="first_talk",
                title="Talk",
                function=self.talk,
                needs=("first.greet",),
                uses=("first_find",),
                complete={"tone": lambda typed, others: [f"{typed}ly", *others]},
            )
        ]

    @hookimpl
    def register_resources(self) -> Iterable[Resource]:
        return [
            Resource(
                uri="first://notes/{note}{?page}",
                name="first_note",
                description="A note.",
                mime_type="text/plain",
                function=self.note,
                complete={"note": self.notes},
            )
        ]

    @hookimpl
    def register_filters(self) -> Iterable[Filter]:
        def to_expression(value: str) -> FilterExpression:
            if not value.strip():
                raise InvalidInputError("give the name of a state")
            return {"jurisdiction_title": {"$eq": value}}

        return [
            Filter(
                name="first_state",
                annotation=str,
                description="A state.",
                to_expression=to_expression,
            )
        ]

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        return [click.Command("first", callback=click.pass_obj(shout))]

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        self.is_open = True
        yield
        self.is_open = False

    @hookimpl
    def wrap_tool_call(self, call_next: ToolHandler) -> ToolHandler:
        async def handle(call: ToolCall) -> ToolResult:
            self.calls += 1
            if call.arguments.get("name") == "nobody":
                raise ToolError(f"{call.tool} greets somebody only")
            return await call_next(call)

        return handle

    @hookimpl
    async def check_health(self) -> Health:
        return Health(status="ok" if self.is_open else "degraded", message=f"{self.calls} calls")

    def greet(
        self,
        name: Annotated[str, Field(description="Whom to greet.")],
        tone: Literal["warm", "cool"] = "warm",
    ) -> ToolResult:
        text = f"{self.settings.greeting}, {name} ({tone})"
        return ToolResult(text=text, structured={"text": text}, notes=("from the first release",))

    async def find(
        self,
        code: Annotated[str, Field(description="A code such as 3.NF.A.1.")],
        filter: FilterExpression | None = None,  # noqa: A002
    ) -> list[Found]:
        """Find standards by code."""
        catalog = self.context.service(Catalog)
        try:
            records: list[StandardRecord] = await catalog.find(code)
        except CatalogError as exc:
            raise ApiError(str(exc)) from exc
        if not records:
            raise NotFoundError(f"no standard {code!r}; filter {filter}")
        return [Found(code=code, text=record.description) for record in records]

    def raw(self, **arguments: Any) -> dict[str, Any]:
        return arguments

    def talk(self, tone: str, *, tools: Mapping[str, str]) -> list[str | Message]:
        """Talk about a greeting."""
        return [f"Call {tools['first.greet']}.", Message(tone, role="assistant")]

    async def note(self, note: str, page: int = 1) -> str:
        if note == "gone":
            raise NotFoundError("there is no such note")
        return f"{note} {page}"

    async def notes(self, typed: str, others: Mapping[str, str]) -> list[str]:
        del others
        return [f"{typed}1", f"{typed}2"]
