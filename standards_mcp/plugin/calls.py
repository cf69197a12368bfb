"""The context that plugins' functions get in a call, and the results that they return."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel
from typing_extensions import TypeVar, deprecated

AnswerT = TypeVar("AnswerT", bound=BaseModel)
LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""The levels of lines in a client's log, as in syslog."""


class CallContext(Protocol):
    """The current call, passed to an async tool or prompt that has a parameter of this type."""

    @property
    def caller(self) -> str:
        """The name of the caller."""
        ...

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress to the client, if it asked for progress.

        Args:
            done: The progress in any unit; it grows from report to report.
            total: The total in the same unit, if known.
        """
        ...

    def add_log_fields(self, **fields: object) -> None:
        """Add fields to the host's own log line about this call, such as the size of an index.

        Args:
            fields: JSON data by name. Names of the host's own fields are ignored.

        Raises:
            ValueError: A value contains itself.
        """
        ...

    @deprecated("MCP 2026-07-28 deprecates logging; use report_progress, or the plugin's logger")
    async def log(self, message: str, level: LogLevel = "info") -> None:
        """Send a line for the client's log, if the client wants lines of this level.

        Deprecated by MCP 2026-07-28; kept for clients that have it.
        """
        ...

    async def ask(self, question: str, answer: type[AnswerT], *, key: str = "") -> AnswerT | None:
        """Ask the user a question, and return the answer, or None if they decline.

        With clients of protocol 2026-07-28, the function runs again from its beginning for each
        answer. So ask before you change anything, and ask the same questions in the same order.
        Questions that are asked together, with `asyncio.gather`, take one round. The deadline of
        the call is paused while the user answers.

        Args:
            answer: A model with fields of text, numbers, booleans and choices: a ``Literal`` of
                texts, or a list of one.
            key: A unique name of the question in this call, if its words or its place in the order
                differ from run to run.

        Raises:
            CannotAskError: The client cannot ask users. If not caught, the model gets the remedy.
            InvalidInputError: The user's answer does not fit *answer*.
            TypeError: *answer* has a field of a type that a form cannot have.
        """
        ...

    @deprecated("MCP 2026-07-28 deprecates sampling; return the prompt, or call a model's API")
    async def sample(
        self, prompt: str, *, max_tokens: int = 1000, system: str = "", key: str = ""
    ) -> str:
        """Return the answer of the client's model to a prompt. Reruns happen as for `ask`.

        Deprecated by MCP 2026-07-28; kept for clients that have it.

        Args:
            max_tokens: Maximum number of tokens in the answer.
            system: The system prompt; the client may leave it out.
            key: As in `ask`.

        Raises:
            ApiError: The model did not answer with text.
            CannotAskError: The client does not let servers use its model.
        """
        ...

    @deprecated("MCP 2026-07-28 deprecates roots; use an argument, a setting or a resource")
    async def roots(self) -> list[str]:
        """Return the URIs of the user's working folders and files. Reruns happen as for `ask`.

        Deprecated by MCP 2026-07-28; kept for clients that have it.

        Raises:
            CannotAskError: The client does not share its roots.
        """
        ...


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation that a prompt begins.

    Attributes:
        content: A content block in MCP's JSON form, for an image or a resource. Clients get it
            instead of the text.
    """

    text: str = ""
    role: Literal["user", "assistant"] = "user"
    content: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of a plugin or of a service, by its own check; the message has the remedy.

    Attributes:
        facts: Facts about a service for operators, such as its size: JSON data by name. Numbers
            become metrics.
    """

    status: Literal["ok", "degraded", "failed"]
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call.

    Attributes:
        text: The text for the model.
        structured: The same as a JSON object, or None for a tool that returns plain text.
        is_error: True if the call failed; *structured* then holds ``error_type`` and ``message``.
        notes: More texts for the model, such as a note about a cut.
        content: Content blocks in MCP's JSON form, for images and the like, which clients get
            instead of the text.
        meta: Published as the result's ``_meta``.
    """

    text: str
    structured: dict[str, Any] | None = None
    is_error: bool = False
    notes: tuple[str, ...] = ()
    content: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


ToolCaller: TypeAlias = Callable[[str, Mapping[str, Any]], ToolResult]
"""Calls a tool by name as a client would. A plugin's command gets one from ``click.pass_obj``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool, as a wrapper sees it.

    A wrapper may change *arguments*, with `dataclasses.replace`, and nothing else.

    Attributes:
        tool: The declared name of the tool.
        plugin: The name of the plugin that has the tool.
        arguments: The client's arguments, not yet validated.
        read_only: True if the tool changes nothing.
        caller: The name of the caller.
    """

    tool: str
    plugin: str
    arguments: Mapping[str, Any]
    read_only: bool
    caller: str


ToolHandler: TypeAlias = Callable[[ToolCall], Awaitable[ToolResult]]
"""Answers a call of a tool; see ``wrap_tool_call``."""
