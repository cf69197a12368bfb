"""Convert tools, prompts, answers and errors of other MCP servers to the host's classes.

Schemas and contents stay as the server wrote them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, cast

from pydantic import ValidationError

from standards_mcp._utils.text import readable
from standards_mcp.calls.context import CALL, HostContext
from standards_mcp.contributions.arguments import SchemaArguments, UncheckedArguments, admits_null
from standards_mcp.contributions.base import MAX_NAME, Completion, common_fields
from standards_mcp.contributions.prompts import PromptAnswer, RegisteredPrompt
from standards_mcp.contributions.results import Result
from standards_mcp.contributions.schemas import (
    Schema,
    SchemaError,
    check_json_schema,
    portable_input_schema,
    portable_output_schema,
)
from standards_mcp.contributions.tools import UNTRUSTED_TEXT_META, RegisteredTool
from standards_mcp.errors import ApiError, ToolError
from standards_mcp.plugin import Completer, Message, Prompt, Tool, ToolResult


class Ask(Protocol):
    """Sends an MCP request to a server and returns the raw result."""

    async def __call__(
        self, method: str, params: Mapping[str, Any], caller: HostContext | None = None, /
    ) -> Mapping[str, Any]:
        """Return the result; the caller gets progress and questions."""
        ...


ERROR_TYPE: Final = "error_type"
"""The key in the data of an error whose value is the type of the `ToolError`."""
_TEXT_KEYS: Final = ("title", "description")
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_.-]|\.(?=\.|$)")
# These `_meta` entries are about one connection, so they are not passed on.
_PROTOCOL_PREFIX: Final = "io.modelcontextprotocol/"
NO_ARGUMENTS: Final[Schema] = {"type": "object", "properties": {}}


class RefusedError(ApiError):
    """A server answered a request with an error of the protocol.

    Attributes:
        reason: The message of that error.
        code: The number of that error.
        error_data: The data of that error.
        refused_type: The type of the `ToolError` that an isolated plugin raised.
    """

    def __init__(self, title: str, reason: str, code: int, data: object = None) -> None:
        reason = readable(reason)
        super().__init__(f"{title} refused it: {reason}")
        self.reason = reason
        self.code = code
        self.error_data: Any = data
        self.refused_type = str(object_of(data).get(ERROR_TYPE, ""))


class NotApprovedError(ToolError):
    """The definition of the called item changed and is not approved."""

    error_type = "disabled"  # as for other calls of items that are not served


def why_not_valid(error: ValidationError) -> str:
    """Return the first mistake in an answer, without any of its content."""
    first = error.errors(include_url=False, include_input=False)[0]
    return readable(f"{'.'.join(map(str, first['loc'])) or 'answer'}: {first['msg']}")


class Origin(NamedTuple):
    """The server of a definition.

    Attributes:
        name: The name of the server's table in the configuration.
        prefix: The beginning of the declared names of its items.
        ask: Sends a request to the server.
        completes: True if the server completes arguments.
        timeout: Seconds for one answer; None for ``tools.timeout``.
        skills: The beginnings of URIs in the folders of skills. Only listed files of skills are
            served, so other resources and templates of the server do not reach there.
    """

    name: str
    prefix: str
    ask: Ask
    completes: bool
    timeout: float | None
    skills: tuple[str, ...] = ()

    def declared(self, own_name: str) -> str:
        """Return the declared name of an item, with forbidden characters replaced."""
        name = _FORBIDDEN.sub("_", self.prefix + own_name)
        return name if name[:1].isalpha() else f"{self.name}.{name}"


def object_of(value: object) -> Mapping[str, Any]:
    """Return *value* if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list; an empty list if *value* has another type."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def optional_text(value: object) -> str | None:
    """Return *value* if it is a string, else None."""
    return value if isinstance(value, str) else None


def _text_of(value: object) -> str:
    return (optional_text(value) or "").strip()


def readable_text(value: object) -> str | None:
    """Return *value* without terminal control characters if it is a string, else None.

    Use it for texts in definitions that people read; contents are passed on unchanged.
    """
    return readable(value) if isinstance(value, str) else None


def meta_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``_meta`` of a definition or an answer without the protocol's own entries."""
    return {
        key: value
        for key, value in object_of(raw.get("_meta")).items()
        if not key.startswith(_PROTOCOL_PREFIX)
    }


def extra_of(raw: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields of a definition with these *names*, except missing ones."""
    return {name: raw[name] for name in names if raw.get(name) is not None}


def unique_name(name: str, identity: str) -> str:
    """Return *name* with a hash of *identity* at its end, cut to the permitted length.

    A number instead of the hash would change with the other items of the server.
    """
    digest = hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:8]
    return f"{name[: MAX_NAME - len(digest) - 1].rstrip('.')}_{digest}"


class CheckedArguments(SchemaArguments):
    """Arguments that the host checks against the server's schema."""

    def without_nulls(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out each null for an optional argument that cannot be null."""
        properties, required = self.inlined.get("properties", {}), self.schema.get("required", ())
        return {
            name: value
            for name, value in arguments.items()
            if value is not None or name in required or admits_null(properties.get(name))
        }


def read_remote_tool(origin: Origin, raw: Mapping[str, Any]) -> RegisteredTool:
    """Return a tool of another server. If it cannot be served, its ``error`` is the reason.

    Args:
        raw: The tool in the server's list.
    """
    own_name = str(raw.get("name") or "")
    annotations = object_of(raw.get("annotations"))
    title = readable(_text_of(raw.get("title")) or _text_of(annotations.get("title")))
    description = readable(_text_of(raw.get("description")) or title or own_name)

    async def function(**arguments: Any) -> ToolResult:
        caller: HostContext = arguments.pop(CALL)
        params = {"name": own_name, "arguments": arguments}
        return tool_result(await origin.ask("tools/call", params, caller))

    tool = Tool(
        name=origin.declared(own_name),
        function=function,
        title=title or None,
        description=description,
        read_only=annotations.get("readOnlyHint") is True,
        destructive=annotations.get("destructiveHint") is not False,
        idempotent=annotations.get("idempotentHint") is True,
        open_world=annotations.get("openWorldHint") is not False,
        timeout=origin.timeout,
        # The text is only marked as untrusted, because an admin approved it as it is.
        meta={**object_of(raw.get("_meta")), UNTRUSTED_TEXT_META: True},
    )
    error = _tool_error(raw, own_name, tool.name)
    schema = NO_ARGUMENTS if error else dict(object_of(raw.get("inputSchema")))
    return RegisteredTool(
        **common_fields(origin.name, tool, description),
        tool=tool,
        arguments=CheckedArguments(schema),
        result=Result(None, _output_schema(raw.get("outputSchema")), wrapped=False),
        context=CALL,
        error=error,
        extra=extra_of(raw, "icons"),
    )


def tool_result(raw: Mapping[str, Any]) -> ToolResult:
    """Convert a raw result, with its content, structure, error flag and ``_meta``."""
    blocks = [object_of(block) for block in cast("list[Any]", raw.get("content") or [])]
    structured = raw.get("structuredContent")
    return ToolResult(
        text="\n".join(
            _text_of(block.get("text")) for block in blocks if block.get("type") == "text"
        ),
        structured=cast("dict[str, Any]", structured) if isinstance(structured, dict) else None,
        is_error=raw.get("isError") is True,
        content=tuple(blocks),
        meta=meta_of(raw),
    )


def _tool_error(raw: Mapping[str, Any], own_name: str, declared: str) -> str:
    """Return the reason why a tool cannot be served to every client, or an empty string."""
    if not own_name:
        return "its server lists it without a name"
    if len(declared) > MAX_NAME:
        return f"its name is longer than {MAX_NAME} characters; set a shorter prefix"
    schema = raw.get("inputSchema")
    try:
        portable_input_schema(object_of(schema))
        check_json_schema(object_of(schema))
    except (SchemaError, RecursionError) as exc:
        return str(exc)
    return ""


def _output_schema(schema: object) -> Schema | None:
    """Return an output schema unchanged, or None if some clients would refuse it."""
    try:
        portable_output_schema(object_of(schema))
    except (SchemaError, RecursionError):
        return None
    return dict(object_of(schema))


def read_remote_prompt(origin: Origin, raw: Mapping[str, Any]) -> RegisteredPrompt:
    """Return a prompt of another server.

    Args:
        raw: The prompt in the server's list.
    """
    own_name = str(raw.get("name") or "")

    async def function(**arguments: Any) -> PromptAnswer:
        params = {"name": own_name, "arguments": arguments}
        return prompt_answer(await origin.ask("prompts/get", params))

    schema = _prompt_schema(raw)
    name = origin.declared(own_name)
    completed = schema["properties"] if origin.completes else ()
    prompt = Prompt(
        name=unique_name(name, own_name) if len(name) > MAX_NAME else name,
        function=function,
        title=readable_text(raw.get("title")),
        complete=completers(origin.ask, {"type": "ref/prompt", "name": own_name}, completed),
    )
    return RegisteredPrompt(
        **common_fields(origin.name, prompt, readable_text(raw.get("description")) or ""),
        prompt=prompt,
        arguments=UncheckedArguments(schema),
        timeout=origin.timeout,
        error="" if own_name else "its server lists it without a name",
        extra=extra_of(raw, "icons"),
        meta=meta_of(raw),
    )


def prompt_answer(raw: Mapping[str, Any]) -> PromptAnswer:
    """Convert a raw answer, with its messages, description and ``_meta``."""
    messages = [
        Message(
            role="assistant" if message.get("role") == "assistant" else "user",
            content=object_of(message.get("content")),
        )
        for message in objects_of(raw.get("messages"))
    ]
    return PromptAnswer(messages, readable_text(raw.get("description")), meta_of(raw))


def completers(ask: Ask, ref: Mapping[str, str], arguments: Iterable[str]) -> dict[str, Completer]:
    """Return a completer for each argument.

    Args:
        ref: The server's reference to the prompt or the template.
    """

    async def complete(argument: str, typed: str, others: Mapping[str, str]) -> Completion:
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": typed}}
        if others:
            params["context"] = {"arguments": dict(others)}
        completion = object_of((await ask("completion/complete", params)).get("completion"))
        values = [str(value) for value in cast("list[object]", completion.get("values") or [])]
        return Completion(values, completion.get("total"), completion.get("hasMore"))

    return {name: cast("Completer", partial(complete, name)) for name in arguments}


def _prompt_schema(raw: Mapping[str, Any]) -> Schema:
    listed = {str(argument.get("name")): argument for argument in objects_of(raw.get("arguments"))}
    properties = {
        name: {"type": "string"}
        | {key: readable(argument[key]) for key in _TEXT_KEYS if isinstance(argument.get(key), str)}
        for name, argument in listed.items()
    }
    required = [name for name, argument in listed.items() if argument.get("required") is True]
    return {"type": "object", "properties": properties, "required": required}
