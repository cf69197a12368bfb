"""Prompts of plugins: read at registration, rendered for clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import pydantic_core

from standards_mcp.plugin import Message, Prompt

from .arguments import context_argument, read_signature
from .base import Contribution, check_completers, naming_declaration, read_common
from .results import bounded_list
from .schemas import signature_of

TOOLS_ARGUMENT: Final = "tools"
_MAX_MESSAGES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegisteredPrompt(Contribution):
    """A prompt with the arguments of its function.

    Attributes:
        context: The name of the argument that takes the `CallContext`, or an empty string.
    """

    kind = "prompt"
    prompt: Prompt
    context: str = ""


class PromptAnswer(NamedTuple):
    """The answer of a prompt.

    Attributes:
        description: A description of this answer, from another server.
        meta: Published as the ``_meta`` of the answer.
    """

    messages: list[Message]
    description: str | None = None
    meta: Mapping[str, Any] = {}


def read_prompt(plugin: str, prompt: object) -> RegisteredPrompt:
    """Check the prompt that a plugin declared, and return it with its arguments.

    Raises:
        PluginError: The declaration is wrong, or some clients would not accept it.
    """
    declared, label, fields = read_common(plugin, prompt, Prompt)
    with naming_declaration(plugin, label):
        for names in (declared.needs, declared.uses):
            if isinstance(names, str) or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ValueError("its needs and uses must be lists of names of tools")
        signature = signature_of(declared.function)
        context = context_argument(declared.function, signature)
        # The function gets the names that clients see, because an admin may rename tools.
        tools = TOOLS_ARGUMENT if declared.needs or declared.uses else ""
        arguments = read_signature(signature, [name for name in (tools, context) if name])
        check_completers(declared.complete, arguments.schema["properties"])
    return RegisteredPrompt(**fields, prompt=declared, arguments=arguments, context=context)


def prompt_answer(value: object) -> PromptAnswer:
    """Return the answer for the return value of a prompt's function.

    Raises:
        TypeError: The value is not a text, a `Message`, or an iterable of them.
        ValueError: A message cannot be written as JSON, such as a text with a lone surrogate, or
            there are too many messages.
    """
    if isinstance(value, PromptAnswer):  # rendered already by another server
        return value
    if isinstance(value, str | Message):
        return PromptAnswer([_message(value)])
    kind = type(value).__name__
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"a prompt returns text or messages, not a {kind}")
    messages = bounded_list(cast("Iterable[object]", value), _MAX_MESSAGES)
    return PromptAnswer([_message(item) for item in messages])


def _message(value: object) -> Message:
    message = Message(value) if isinstance(value, str) else value
    if not isinstance(message, Message):
        raise TypeError(f"a prompt returns text or messages, not a {type(value).__name__}")
    if not isinstance(message.text, str) or message.role not in ("user", "assistant"):  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryContains]
        raise TypeError("a Message has a text, and the role 'user' or 'assistant'")
    if not isinstance(message.content, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("the content of a Message is a content block in MCP's JSON form")
    # A lone surrogate cannot be sent, and would end the connection.
    pydantic_core.to_json((message.text, message.content))
    return message
