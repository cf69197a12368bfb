"""Prompts and resources of an isolated plugin, in the host's terms."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from standards_mcp.contributions.base import common_fields
from standards_mcp.contributions.prompts import TOOLS_ARGUMENT, RegisteredPrompt
from standards_mcp.contributions.resources import Contents, RegisteredResource, template_of
from standards_mcp.contributions.schemas import Schema
from standards_mcp.errors import ApiError, InvalidInputError, NotFoundError, ToolError
from standards_mcp.plugin import Completer, Message, Prompt, Resource, ToolResult

PROMPT: Final = "standards_mcp.prompt"

READ: Final = "standards_mcp.read"

COMPLETE: Final = "standards_mcp.complete"


Ask: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]
"""Calls a tool of the child process."""

_ERRORS: Final = {each.error_type: each for each in (ApiError, InvalidInputError, NotFoundError)}


@dataclass(frozen=True, slots=True)
class PassedArguments:
    """Arguments that the child process checks."""

    schema: Schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as they are. See `Arguments.validate`."""
        return dict(arguments)


def isolated_prompt(plugin: str, data: Mapping[str, Any], ask: Ask) -> RegisteredPrompt:
    """Return a prompt that a child process describes."""
    name: str = data["name"]

    async def function(**arguments: Any) -> list[Message]:
        tools = arguments.pop(TOOLS_ARGUMENT) if data["needs"] or data["uses"] else None
        given = {"name": name, "arguments": arguments, "tools": tools}
        answer = await _answer(ask, PROMPT, given)
        return [Message(**each) for each in answer["messages"]]

    prompt = Prompt(
        name=name,
        function=function,
        needs=tuple(data["needs"]),
        title=data["title"],
        uses=tuple(data["uses"]),
        complete=_completers("prompt", name, data, ask),
    )
    return RegisteredPrompt(
        **common_fields(plugin, prompt, data["description"]),
        prompt=prompt,
        arguments=PassedArguments(data["schema"]),
    )


def isolated_resource(plugin: str, data: Mapping[str, Any], ask: Ask) -> RegisteredResource:
    """Return a resource that a child process describes."""
    uri: str = data["uri"]
    name: str = data["name"]

    async def function(**variables: Any) -> Contents:
        answer = await _answer(ask, READ, {"name": name, "variables": variables})
        held: str = answer["data"]
        is_text: bool = answer["is_text"]
        return Contents(held if is_text else base64.b64decode(held), answer["mime_type"])

    resource = Resource(
        uri=uri,
        name=name,
        function=function,
        title=data["title"],
        mime_type=data["mime_type"],
        complete=_completers("resource", name, data, ask),
    )
    return RegisteredResource(
        **common_fields(plugin, resource, data["description"]),
        resource=resource,
        template=template_of(uri),
        arguments=PassedArguments(data["schema"]),
    )


def _completers(kind: str, name: str, data: Mapping[str, Any], ask: Ask) -> dict[str, Completer]:
    async def complete(argument: str, typed: str, others: Mapping[str, str]) -> list[str]:
        given = {"argument": argument, "typed": typed, "others": dict(others)}
        answer = await _answer(ask, COMPLETE, {"kind": kind, "name": name, **given})
        values: list[str] = answer["values"]
        return values

    return {argument: partial(complete, argument) for argument in data["complete"]}


async def _answer(ask: Ask, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    result = await ask(tool, arguments)
    structured = result.structured or {}
    if result.is_error:
        raise _ERRORS.get(structured.get("error_type", ""), ToolError)(
            str(structured.get("message", result.text))
        )
    return structured
