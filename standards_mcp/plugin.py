"""What plugin authors subclass and return.

A plugin declares what it adds and never receives the server: it returns tools, prompts, resources,
filters and commands as data, and the host consumes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from ._utils.documented import Documented
from .catalog.base import Catalog, FilterExpression


class PluginSettings(Documented):
    """Base class of a plugin's own keys in its table ``[plugins.<name>]``.

    The keys ``enabled``, ``required``, ``isolate``, ``python``, ``memory`` and ``processes`` are
    the host's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)


SettingsT = TypeVar("SettingsT", bound=PluginSettings, default=PluginSettings)
AnswerT = TypeVar("AnswerT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """What the host tells a plugin about its place in it.

    Attributes:
        name: The plugin's name: its entry point, its table and its part of the environment.
        state_dir: A folder of the plugin's own. It need not exist yet.
        catalog: The standards that the admin configured. Nothing is opened before its first use.
    """

    name: str
    state_dir: Path
    catalog: Catalog


class Plugin(Generic[SettingsT]):
    """Base class of every plugin. The host builds one instance in a process.

    Attributes:
        settings_type: The model of the plugin's own configuration keys.
        instructions: What a model should know of the plugin before it calls anything, one sentence
            or a few that belong together in a line. Write tools by their declared names in braces,
            such as ``Call {find_books} with a title.`` Clients get the line with the names that
            they see, and do not get it while a tool of it is not served.
    """

    settings_type: ClassVar[type[PluginSettings]] = PluginSettings
    instructions: str = ""

    def __init__(self, settings: SettingsT, context: PluginContext) -> None:
        self.settings = settings
        self.context = context


class CallContext(Protocol):
    """The call that a tool's function answers; a parameter with this annotation receives it."""

    @property
    def caller(self) -> str:
        """Who calls."""
        ...

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if it wants to know.

        Args:
            done: In any unit; it grows from report to report.
            total: In the same unit, if it is known.
        """
        ...

    async def ask(self, question: str, answer: type[AnswerT]) -> AnswerT | None:
        """Return what the user answers to a question, or None when they decline.

        With clients of the newest protocol the function runs once more from its beginning for each
        answer, so ask before you change anything, and ask the same questions in the same order.
        The deadline of the call does not run meanwhile.

        Args:
            answer: A model with fields of text, numbers, booleans and choices: a ``Literal`` of
                texts, or a list of one.

        Raises:
            CannotAskError: The client cannot ask; left alone, it tells the model what to do.
            InvalidInputError: The answer does not fit *answer*.
            TypeError: The model has a field that a form cannot have.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a plugin contributes.

    Attributes:
        name: Unique in the process; letters, digits, ``_``, ``-`` and dots.
        function: Sync (it runs in a worker thread) or async. Its signature makes the input
            schema and its return annotation the output schema; describe an argument with
            ``Annotated[int, Field(description="...")]``.
        description: What the model reads to choose the tool. Defaults to the docstring.
        read_only: The tool changes nothing. Only such tools are served under
            ``tools.read_only``.
        destructive: The tool may delete or overwrite. Meaningless when it is read-only.
        idempotent: Calling it again with the same arguments changes nothing more.
        open_world: It reaches things beyond this server and its data.
        accepts_filters: Every registered `Filter` becomes an optional argument, and the
            function gets one combined expression, or None, as its argument ``filter``.
        timeout: Seconds for one call, in place of ``tools.timeout``.
        cache_ttl: Seconds for which an answer may be given again to the same caller for the same
            arguments; 0: never. Read-only tools only.
        input_schema: A hand-written JSON Schema in place of the derived one; the function gets
            the validated arguments by keyword.
        meta: Published as the tool's ``_meta``.
    """

    name: str
    function: Callable[..., Any] = field(repr=False)
    title: str | None = None
    description: str | None = None
    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True
    accepts_filters: bool = False
    timeout: float | None = None
    cache_ttl: float = 0
    input_schema: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """An optional argument that every tool with ``accepts_filters`` gains.

    Attributes:
        name: The argument's name; lower_snake_case.
        annotation: The type of its value, for example ``bool`` or ``list[str]``.
        description: What the model reads to use it well.
        to_expression: Turns a value into a filter expression; sync, without I/O, or async. It may
            raise `InvalidInputError`, or another `ToolError`.
    """

    name: str
    annotation: Any
    description: str
    to_expression: Callable[[Any], FilterExpression | Awaitable[FilterExpression | None] | None] = (
        field(repr=False)
    )


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation that a prompt begins."""

    text: str
    role: Literal["user", "assistant"] = "user"


Completer: TypeAlias = Callable[[str, Mapping[str, str]], Iterable[str] | Awaitable[Iterable[str]]]
"""Values for an argument, best first: from what was typed of it and from the other arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt that a plugin contributes: what a user picks to begin a conversation with.

    Attributes:
        name: Unique among the prompts in the process; spelt as a tool's.
        function: Sync (it runs in a worker thread) or async. Its arguments are the prompt's, and
            clients send them as text. It returns a text, a `Message`, or several of them.
        description: What the user reads to choose it. Defaults to the docstring.
        needs: The declared names of the tools that it tells the model to call. It is served only
            while all of them are.
        uses: The declared names of tools that it can do without.
        complete: What completes an argument, by the argument's name.

    With *needs* or *uses* the function gets one argument more, ``tools``: a mapping from the
    declared names of those that are served to the names that clients see.
    """

    name: str
    function: Callable[..., Any] = field(repr=False)
    title: str | None = None
    description: str | None = None
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    complete: Mapping[str, Completer] = field(default_factory=dict[str, Completer], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something to read that a plugin contributes.

    Attributes:
        uri: Its URI, or a template of RFC 6570 such as ``standards://sets/{id}``.
        name: Unique among the resources in the process; spelt as a tool's.
        function: Sync or async. Its arguments are the variables of the template; those of a query,
            as in ``{?page}``, need defaults. It returns text, bytes, or what can be put as JSON.
        description: What the user reads to choose it. Defaults to the docstring.
        mime_type: By default ``text/plain`` for text, ``application/octet-stream`` for bytes and
            ``application/json`` for anything else.
        complete: What completes a variable, by the variable's name.
    """

    uri: str
    name: str
    function: Callable[..., Any] = field(repr=False)
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    complete: Mapping[str, Completer] = field(default_factory=dict[str, Completer], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a plugin says of its own condition; the message says what to do about it."""

    status: Literal["ok", "degraded", "failed"]
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool call came to.

    Attributes:
        text: What a model reads.
        structured: The same as a JSON object, or None for a tool that returns plain text.
        is_error: The call failed; *structured* then holds ``error_type`` and ``message``.
        notes: What a model reads beside the text, such as what was cut of it.
        content: Content blocks as MCP spells them on the wire, for images and the like; where
            there are any, clients get them in place of the text.
        meta: Published as the result's ``_meta``.
    """

    text: str
    structured: dict[str, Any] | None = None
    is_error: bool = False
    notes: tuple[str, ...] = ()
    content: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


ToolCaller: TypeAlias = Callable[[str, Mapping[str, Any]], ToolResult]
"""Calls a tool by name as a client would. A plugin's command gets one as its ``click.pass_obj``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool, as a wrapper sees it.

    A wrapper may hand on other *arguments*, by `dataclasses.replace`; the rest is to be read.

    Attributes:
        tool: The declared name.
        plugin: Whose tool it is.
        arguments: As the client sent them, not yet validated.
        caller: Who calls.
    """

    tool: str
    plugin: str
    arguments: Mapping[str, Any]
    read_only: bool
    caller: str


ToolHandler: TypeAlias = Callable[[ToolCall], Awaitable[ToolResult]]
"""Answers a call of a tool; see ``wrap_tool_call``."""
