"""Declarations of plugins: tools, prompts, resources, skills, filters and routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from standards_mcp.filters import FilterExpression

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from starlette.requests import Request
    from starlette.responses import Response

Completer: TypeAlias = Callable[[str, Mapping[str, str]], Iterable[str] | Awaitable[Iterable[str]]]
"""Takes the typed part of an argument and the other arguments; returns values, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a plugin contributes.

    Attributes:
        name: Unique in the process; letters, digits, ``_``, ``-`` and dots.
        function: Sync (it runs in a worker thread) or async. The host derives the input schema
            from its signature and the output schema from its return annotation. Describe an
            argument with ``Annotated[int, Field(description="...")]``.
        description: Tells the model when to call the tool. Defaults to the docstring.
        read_only: True if the tool changes nothing. With ``tools.read_only = true``, only such
            tools are served.
        destructive: True if the tool may delete or overwrite data; ignored for read-only tools.
        idempotent: True if a repeated call with the same arguments changes nothing more.
        open_world: True if the tool reaches systems beyond this server and its data.
        returns_untrusted_text: True if answers may contain text of third parties: pages, files,
            notes, records. The host then marks the tool in its ``_meta``, and adds a sentence to
            the description, so that the model treats the answers as data.
        accepts_filters: True to get every registered `Filter` as an optional argument. The function
            receives one combined expression, or None, as its argument ``filter``.
        timeout: Seconds for one call, instead of ``tools.timeout``.
        cache_ttl: Seconds for which an answer is cached for the same arguments; 0: never. For
            read-only tools only.
        cache_scope: ``private``: only the same caller gets a cached answer. ``public``: all callers
            get it, for an answer that does not depend on the caller.
        rate_limit: The rate for one caller, such as ``60/minute``; the configuration's limit for
            all tools applies, too.
        max_output_tokens: Maximum length of an answer in tokens, estimated; longer answers are
            cut. The configuration may set a lower limit.
        check_argument: An async function for ``config check``. It gets the name and the value of an
            argument that an admin's override sets, and raises `InvalidInputError` for a value that
            no call accepts, such as an unknown subject.
        input_schema: A hand-written JSON Schema instead of the derived one; the function gets
            the validated arguments by keyword.
        output_schema: A pydantic model, a ``TypedDict`` or a dataclass, or a JSON Schema of an
            object, which ``structured`` of each `ToolResult` must fit. By default, the schema is
            derived from the return annotation.
        views_only: True for a tool that only views call (see `Resource`): clients with views hide
            it from the model. This is no access control: a server cannot distinguish a view from
            the model.
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
    returns_untrusted_text: bool = False
    accepts_filters: bool = False
    timeout: float | None = None
    cache_ttl: float = 0
    # Only the author knows if an answer depends on the caller, so the configuration has no such
    # key.
    cache_scope: Literal["private", "public"] = "private"
    rate_limit: str | None = None
    max_output_tokens: int | None = None
    check_argument: Callable[[str, Any], Awaitable[None]] | None = field(default=None, repr=False)
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | type | None = None
    views_only: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """An optional argument that the host adds to every tool with ``accepts_filters``.

    Attributes:
        name: The argument's name; lower_snake_case.
        annotation: The type of its value, for example ``bool`` or ``list[str]``.
        description: Tells the model how to use the filter.
        to_expression: Returns the filter expression for a value. It is async, or sync without I/O,
            and may raise `InvalidInputError` or another `ToolError`.
    """

    name: str
    annotation: Any
    description: str
    to_expression: Callable[[Any], FilterExpression | Awaitable[FilterExpression | None] | None] = (
        field(repr=False)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt that a plugin contributes: a user picks it to begin a conversation.

    Attributes:
        name: Unique among the prompts in the process; the same characters as in a tool's name.
        function: Sync (it runs in a worker thread) or async. Its parameters are the arguments of
            the prompt, which clients send as text; an async function may also have a
            `CallContext`. It returns a text, a `Message`, or an iterable of them.
        description: Tells the user when to choose it. Defaults to the docstring.
        needs: The declared names of required tools. The prompt is served only while all of them
            are served.
        uses: The declared names of optional tools, which the prompt mentions if they are served.
        complete: The completers, by the names of their arguments.

    With *needs* or *uses* the function gets one more argument, ``tools``: a mapping from the
    declared names of served tools to the names that clients see.
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
    """A resource that a plugin contributes: contents under a URI.

    Attributes:
        uri: The URI, or a template of RFC 6570 such as ``standards://sets/{id}``.
        name: Unique among the resources in the process; the same characters as in a tool's name.
        function: Sync or async. Its parameters are the variables of the template; variables of a
            query, as in ``{?page}``, need defaults. It returns text, bytes, or a value for JSON.
        description: Tells the user when to choose it. Defaults to the docstring.
        mime_type: By default ``text/plain`` for text, ``application/octet-stream`` for bytes and
            ``application/json`` for anything else.
        complete: The completers, by the names of their variables.
        view_of: The declared names of the tools whose answers this page shows in a chat (MCP Apps).
            The URI then begins with ``ui://``, and the page is one HTML document of at most 1 MB.
        meta: Published as the ``_meta`` of the resource and of its contents. For a view, ``ui`` may
            have ``csp``, ``permissions`` and ``prefersBorder``.
        fixed: True if the contents come from files of the package: clients may then keep them for
            minutes, or until `PluginContext.resource_updated`.
    """

    uri: str
    name: str
    function: Callable[..., Any] = field(repr=False)
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    complete: Mapping[str, Completer] = field(default_factory=dict[str, Completer], repr=False)
    view_of: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill that a plugin contributes: instructions for a task, which an agent loads on demand.

    Its name and its description are in the front matter of its ``SKILL.md``, in the Agent Skills
    format. Clients read the files as resources ``skill://NAME/...``.

    Attributes:
        source: A folder with ``SKILL.md`` and other files, such as
            ``importlib.resources.files(__package__) / "skills" / "plan-a-unit"``; or the text of
            ``SKILL.md``; or a function that returns one of them. It is read at registration, and
            again after `PluginContext.contributions_changed`.
        needs: The declared names of the tools in its text. The skill is served only while all of
            them are served, under these names.
    """

    source: str | Traversable | Callable[[], str | Traversable] = field(repr=False)
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """An HTTP route that a plugin adds below ``/plugins/<plugin>``, or a page of the service.

    Attributes:
        path: A path of Starlette, such as ``/reports/{id:int}``.
        function: An async function that takes a request of Starlette and returns a response.
            ``request.path_params`` has the values of the path, and ``request.user.display_name``
            the caller's name. The token is removed, and the whole body is received before the call.
        methods: The accepted HTTP methods.
        scope: The scope that a token needs for the route, by default the plugin's name.
        timeout: Seconds until the response must be sent, instead of ``tools.timeout``.
        rate_limit: The rate for one caller, such as ``60/minute``; the configuration's limit for
            all tools applies, too.
        is_page: If true, this is a page for people at the root of the service, such as
            ``/explore``: a GET with a path of one part. Without *scope*, every caller may open it.
        tools: The declared names of the tools that the page may call, by ``POST`` to
            ``<path>/tools/<name>``. ``request.state.tools`` lists the ones that the caller may use.
    """

    path: str
    function: Callable[[Request], Awaitable[Response]] = field(repr=False)
    methods: tuple[str, ...] = ("GET",)
    scope: str | None = None
    timeout: float | None = None
    rate_limit: str | None = None
    is_page: bool = False
    tools: tuple[str, ...] = ()
