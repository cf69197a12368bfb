"""What an isolated plugin contributes, in the host's terms.

Its process checks all arguments but filters, so that they are refused in the same words as those of
a local plugin.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter

from standards_mcp.calls.context import CALL, HostContext
from standards_mcp.contributions.arguments import Arguments, filter_arguments, refuse_unknown
from standards_mcp.contributions.base import Completion, common_fields
from standards_mcp.contributions.prompts import TOOLS_ARGUMENT, RegisteredPrompt
from standards_mcp.contributions.resources import Contents, RegisteredResource, template_of
from standards_mcp.contributions.results import Result
from standards_mcp.contributions.schemas import Schema, SchemaError
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.plugin import Filter, Message, Prompt, Resource, Tool, ToolResult

from . import protocol as wire
from .calls import IsolatedCalls

_T = TypeVar("_T", Tool, Prompt, Resource)


@dataclass(frozen=True, slots=True)
class PassedArguments:
    """Arguments that the process checks; filters alone are the host's.

    Attributes:
        filters: The filters as arguments of their own; None where there are none.
    """

    schema: Schema
    filters: Arguments | None = None

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, with the filters combined. See `Arguments.validate`."""
        refuse_unknown(arguments, self.schema["properties"])
        if self.filters is None:
            return dict(arguments)
        names = self.filters.schema["properties"]
        given = {name: value for name, value in arguments.items() if name in names}
        rest = {name: value for name, value in arguments.items() if name not in names}
        expression = (await self.filters.validate(given))["filter"]
        return rest if expression is None else {**rest, wire.FILTER_ARGUMENT: expression}


def _declared(kind: type[_T], told: wire.Described, **functions: Any) -> _T:
    """Return what the author declared, with *functions* that ask the process."""
    given = told.model_dump(include={"name", "title", "description"})
    return TypeAdapter(kind).validate_python({**told.declared, **given, **functions})


def isolated_tool(plugin: str, told: wire.Described, calls: IsolatedCalls) -> RegisteredTool:
    """Return a tool that a process describes."""

    async def function(**arguments: Any) -> ToolResult:
        caller: HostContext = arguments.pop(CALL)
        return await calls.call_tool(told.name, arguments, caller)

    tool = _declared(Tool, told, function=function)
    return RegisteredTool(
        **common_fields(plugin, tool, told.description),
        tool=tool,
        arguments=PassedArguments(told.input_schema),
        result=Result(None, told.output_schema, wrapped=False),
        context=CALL,
        extend=partial(_extended, told.input_schema),
    )


def _extended(schema: Schema, filters: tuple[Filter, ...]) -> Arguments:
    """Return the arguments of a tool that accepts filters.

    Raises:
        SchemaError: A filter has the name of one of its arguments.
    """
    own = schema["properties"]
    if clash := {item.name for item in filters} & own.keys():
        raise SchemaError(f"filter {min(clash)!r} has the name of one of its arguments")
    extra = filter_arguments(filters)
    return PassedArguments({**schema, "properties": {**own, **extra.schema["properties"]}}, extra)


def isolated_prompt(plugin: str, told: wire.Described, calls: IsolatedCalls) -> RegisteredPrompt:
    """Return a prompt that a process describes."""

    async def function(**arguments: Any) -> list[Message]:
        caller: HostContext = arguments.pop(CALL)
        tools: dict[str, str] = {}
        if prompt.needs or prompt.uses:  # any other prompt may have an argument of this name
            tools = arguments.pop(TOOLS_ARGUMENT)
        request = wire.GetPrompt(name=told.name, arguments=arguments, tools=tools)
        messages: list[Message] = await calls.request(request, caller)
        return messages

    completers = _completers("prompt", told, calls)
    prompt = _declared(Prompt, told, function=function, complete=completers)
    return RegisteredPrompt(
        **common_fields(plugin, prompt, told.description),
        prompt=prompt,
        arguments=PassedArguments(told.input_schema),
        context=CALL,
    )


def isolated_resource(
    plugin: str, told: wire.Described, calls: IsolatedCalls
) -> RegisteredResource:
    """Return a resource that a process describes."""

    async def function(**variables: Any) -> Contents:
        request = wire.ReadResource(name=told.name, variables=variables)
        held: wire.Held = await calls.request(request)
        data = held.data if held.is_text else base64.b64decode(held.data)
        return Contents(data, held.mime_type)

    completers = _completers("resource", told, calls)
    resource = _declared(Resource, told, function=function, complete=completers)
    return RegisteredResource(
        **common_fields(plugin, resource, told.description),
        resource=resource,
        template=template_of(resource.uri),
        arguments=PassedArguments(told.input_schema),
    )


def _completers(
    kind: Literal["prompt", "resource"], told: wire.Described, calls: IsolatedCalls
) -> dict[str, Any]:
    """Return completers that also tell how many values there are."""

    async def complete(argument: str, typed: str, others: Mapping[str, str]) -> Completion:
        request = wire.Complete(
            kind=kind, name=told.name, argument=argument, typed=typed, others=dict(others)
        )
        found: Completion = await calls.request(request)
        return found

    return {argument: partial(complete, argument) for argument in told.completers}
