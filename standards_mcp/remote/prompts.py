"""Prompts of other MCP servers, in the host's terms: what they say stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast

from standards_mcp.contributions.base import MAX_NAME, Completion, common_fields
from standards_mcp.contributions.prompts import PromptAnswer, RegisteredPrompt
from standards_mcp.contributions.schemas import Schema
from standards_mcp.plugin import Message, Prompt

from .definitions import (
    Origin,
    extra_of,
    meta_of,
    object_of,
    objects_of,
    readable_text,
    unique_name,
)


@dataclass(frozen=True, slots=True)
class AnyArguments:
    """Arguments that the server itself checks, so that it refuses them as it does alone."""

    schema: Schema

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments. See `Arguments.validate`."""
        return dict(arguments)


def read_remote_prompt(origin: Origin, raw: Mapping[str, Any]) -> RegisteredPrompt:
    """Return a prompt of another server.

    Args:
        raw: As the server lists it.
    """
    own = str(raw.get("name") or "")

    async def function(**arguments: Any) -> PromptAnswer:
        return prompt_answer(await origin.ask("prompts/get", {"name": own, "arguments": arguments}))

    schema = _schema(raw)
    name = origin.declared(own)
    prompt = Prompt(
        name=unique_name(name, own) if len(name) > MAX_NAME else name,
        function=function,
        title=readable_text(raw.get("title")),
        complete=completers(origin, {"type": "ref/prompt", "name": own}, schema),
    )
    return RegisteredPrompt(
        **common_fields(origin.name, prompt, readable_text(raw.get("description")) or ""),
        prompt=prompt,
        arguments=AnyArguments(schema),
        timeout=origin.timeout,
        error="" if own else "its server lists it without a name",
        extra=extra_of(raw, "icons"),
        meta=meta_of(raw),
    )


def prompt_answer(raw: Mapping[str, Any]) -> PromptAnswer:
    """Return an answer as the other server gave it: its messages, description and ``_meta``."""
    messages = [
        Message(role=_role(each.get("role")), content=object_of(each.get("content")))
        for each in objects_of(raw.get("messages"))
    ]
    return PromptAnswer(messages, readable_text(raw.get("description")), meta_of(raw))


def completers(origin: Origin, ref: Mapping[str, str], schema: Schema) -> dict[str, Any]:
    """Return a completer for each argument: only the server knows which it can complete.

    Args:
        ref: Names the prompt or the template to the server.
    """
    if not origin.completes:
        return {}

    async def complete(argument: str, typed: str, others: Mapping[str, str]) -> Completion:
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": typed}}
        if others:
            params["context"] = {"arguments": dict(others)}
        found = object_of((await origin.ask("completion/complete", params)).get("completion"))
        values = [str(each) for each in cast("list[object]", found.get("values") or [])]
        return Completion(values, found.get("total"), found.get("hasMore"))

    return {name: partial(complete, name) for name in schema["properties"]}


def _schema(raw: Mapping[str, Any]) -> Schema:
    listed = {str(each.get("name")): each for each in objects_of(raw.get("arguments"))}
    return {
        "type": "object",
        "properties": {
            name: {
                "type": "string",
                **{
                    key: text
                    for key in ("title", "description")
                    if (text := readable_text(each.get(key))) is not None
                },
            }
            for name, each in listed.items()
        },
        "required": [name for name, each in listed.items() if each.get("required") is True],
    }


def _role(value: object) -> Literal["user", "assistant"]:
    return "assistant" if value == "assistant" else "user"
