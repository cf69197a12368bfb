"""The prompts of plugins: read when they are declared, and rendered when a client asks for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from standards_mcp.errors import PluginError
from standards_mcp.plugin import Completer, Message, Prompt

from .arguments import read_function
from .base import Contribution, check_completers, check_texts, common_fields, describe
from .schemas import SchemaError

TOOLS_ARGUMENT: Final = "tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredPrompt(Contribution):
    """A prompt with what the host read from its function."""

    kind = "prompt"
    prompt: Prompt

    @property
    def completers(self) -> Mapping[str, Completer]:
        """What completes its arguments, by their names."""
        return self.prompt.complete

    @property
    def definition(self) -> dict[str, Any]:
        """What a client shows of it."""
        return {
            "name": self.published,
            "title": self.title,
            "description": self.description,
            "arguments": self.arguments.schema,
        }


def read_prompt(plugin: str, prompt: object) -> RegisteredPrompt:
    """Return a prompt that a plugin declared with all that the host needs of it.

    Raises:
        PluginError: It cannot be published to every client.
    """
    if not isinstance(prompt, Prompt):
        raise PluginError(plugin, f"register_prompts returned a {type(prompt).__name__}")
    what = describe(plugin, "prompt", prompt.name)
    description = check_texts(plugin, what, prompt)
    for name in (*prompt.needs, *prompt.uses):
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PluginError(plugin, f"{what}: its needs and uses must be names of tools")
    try:
        has_tools = bool(prompt.needs or prompt.uses)
        arguments = read_function(prompt.function, (TOOLS_ARGUMENT,) if has_tools else ())
    except SchemaError as exc:
        raise PluginError(plugin, f"{what}: {exc}") from exc
    check_completers(plugin, what, prompt.complete, arguments.schema["properties"])
    return RegisteredPrompt(
        **common_fields(plugin, prompt, description),
        prompt=prompt,
        arguments=arguments,
    )


def messages_of(value: object) -> list[Message]:
    """Return what a prompt's function returned as messages.

    Raises:
        TypeError: It is neither a text, nor a message, nor several of them.
    """
    if isinstance(value, str | Message):
        return [_message(value)]
    kind = type(value).__name__
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"a prompt returns text or messages, not a {kind}")
    return [_message(item) for item in cast("Iterable[object]", value)]


def _message(value: object) -> Message:
    message = Message(value) if isinstance(value, str) else value
    if not isinstance(message, Message):
        raise TypeError(f"a prompt returns text or messages, not a {type(value).__name__}")
    if not isinstance(message.text, str) or message.role not in ("user", "assistant"):  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryContains]
        raise TypeError("a Message has a text, and the role 'user' or 'assistant'")
    message.text.encode()  # what cannot be sent would end the connection
    return message
