"""What the functions of plugins get in a call, and what they return."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import BaseModel
from typing_extensions import TypeVar

AnswerT = TypeVar("AnswerT", bound=BaseModel)
LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""The levels of lines in a client's log, as in syslog."""


class CallContext(Protocol):
    """The call that an async function of a tool or a prompt answers: a parameter of this type."""

    @property
    def caller(self) -> str:
        """The name of the caller."""
        ...

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if the client asked for progress.

        Args:
            done: The progress in any unit; it grows from report to report.
            total: The total in the same unit, if known.
        """
        ...

    def add_log_fields(self, **fields: object) -> None:
        """Add fields to the host's own log line about this call, such as the size of an index.

        Args:
            fields: By names that the line does not have: it keeps its own. Values are JSON data.

        Raises:
            ValueError: A value contains itself.
        """
        ...

    async def log(self, message: str, level: LogLevel = "info") -> None:
        """Send a line for the client's log, if the client wants lines of this level."""
        ...

    async def ask(self, question: str, answer: type[AnswerT], *, key: str = "") -> AnswerT | None:
        """Return what the user answers to a question, or None when they decline.

        With clients of protocol 2026-07-28, the function runs again from its beginning for each
        answer. So ask before you change anything, and ask the same questions in the same order.
        What is asked at the same time, with `asyncio.gather`, is asked in one round. The deadline
        of the call stops meanwhile.

        Args:
            answer: A model with fields of text, numbers, booleans and choices: a ``Literal`` of
                texts, or a list of one.
            key: A name of the question that no other one in this call has, for one whose words
                differ from run to run or whose place in the order does.

        Raises:
            CannotAskError: The client cannot ask. Uncaught, it tells the model what to do.
            InvalidInputError: The answer does not fit *answer*.
            TypeError: The model has a field that a form cannot have.
        """
        ...

    async def sample(
        self, prompt: str, *, max_tokens: int = 1000, system: str = "", key: str = ""
    ) -> str:
        """Return what the client's model answers to a prompt. What `ask` says of runs holds here.

        Args:
            max_tokens: How long the answer may be.
            system: What the model is told beforehand; the client may leave it out.
            key: As in `ask`.

        Raises:
            ApiError: The model did not answer with text.
            CannotAskError: The client does not let servers use its model.
        """
        ...

    async def roots(self) -> list[str]:
        """Return the URIs of the folders and files in which the user works, as `ask` does.

        Raises:
            CannotAskError: The client does not say.
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
    """The health of a plugin or of a service, by its own check; the message says what to do.

    Attributes:
        facts: What a service holds or uses, for operators: JSON data by names. Numbers become
            metrics.
    """

    status: Literal["ok", "degraded", "failed"]
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call.

    Attributes:
        text: What a model reads.
        structured: The same as a JSON object, or None for a tool that returns plain text.
        is_error: The call failed; *structured* then holds ``error_type`` and ``message``.
        notes: More texts for the model, such as a note that something was cut.
        content: Content blocks in MCP's JSON form, for images and the like. If there are any,
            clients get them instead of the text.
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
        arguments: As the client sent them, not yet validated.
        read_only: The tool changes nothing.
        caller: The name of the caller.
    """

    tool: str
    plugin: str
    arguments: Mapping[str, Any]
    read_only: bool
    caller: str


ToolHandler: TypeAlias = Callable[[ToolCall], Awaitable[ToolResult]]
"""Answers a call of a tool; see ``wrap_tool_call``."""
