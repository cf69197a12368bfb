"""The common part of tools, prompts and resources: name, plugin, texts and limits."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, TypedDict

from standards_mcp._utils.text import did_you_mean
from standards_mcp.errors import PluginConflictError, PluginError
from standards_mcp.plugin import Prompt, Resource, Tool

from .arguments import Arguments

MAX_NAME: Final = 64
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of the calls of a tool, a prompt or a resource.

    Attributes:
        timeout: Seconds for one call.
        rate_limits: The rates for one caller, such as ``60/minute``; all of them count.
        cache_ttl: Seconds for which the answer of a tool is cached; 0: never.
        cache_scope: See `standards_mcp.Tool`.
        concurrency: The number of its calls that may run together; None: no limit of its own.
        plugin_concurrency: The number of calls of its plugin that may run together.
        max_output_tokens: The length of an answer, in about so many tokens; None: any length.
        max_argument_values: The number of values in the arguments, at all levels.
    """

    timeout: float = 30.0
    rate_limits: tuple[str, ...] = ()
    cache_ttl: float = 0
    cache_scope: Literal["private", "public"] = "private"
    concurrency: int | None = None
    plugin_concurrency: int = 16
    max_output_tokens: int | None = None
    max_argument_values: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A tool, a prompt or a resource of a plugin.

    Attributes:
        kind: ``tool``, ``prompt`` or ``resource``.
        declared: The name that its author gave it.
        published: The name that clients see.
        limits: The limits of its calls, from the configuration.
        hidden_reason: The reason why it is not served, or an empty string.
        error: The reason why it can never be served, or an empty string.
        conflict: The owner of its name and the remedy, if the name is taken, or an empty string.
        extra: More fields of its MCP definition, such as icons, from another server.
        meta: More fields of its ``_meta``, from another server.
    """

    kind: ClassVar[str]
    plugin: str
    declared: str
    published: str
    title: str | None
    description: str
    arguments: Arguments
    limits: Limits = field(default_factory=Limits)
    hidden_reason: str = ""
    error: str = ""
    conflict: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def definition(self) -> dict[str, Any]:
        """Its definition for clients, with MCP's field names."""
        raise NotImplementedError

    @property
    def portable(self) -> str:
        """The declared name in a form that every client accepts."""
        return portable_name(self.declared)

    @property
    def owns_names(self) -> bool:
        """False if another item may take its names, because it cannot be served or came second."""
        return not (self.error or self.conflict)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that belong to it alone: declared, portable and published."""
        # Independent of `tool_names`, so that a reload cannot make two names clash.
        return tuple(dict.fromkeys((self.declared, self.portable, self.published)))


@dataclass(frozen=True, slots=True)
class Completion:
    """Completions of an argument.

    Attributes:
        values: The best values, in order.
        total: The number of all values; None if unknown.
        has_more: True if some values are left out; None if unknown.
    """

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


def misdeclared(plugin: str, kind: str, item: object) -> PluginError:
    """Return the error for a hook that returned something else than declarations."""
    returned = f"register_{kind}s returned a {type(item).__name__}"
    if not callable(item):
        return PluginError(plugin, returned)
    name = getattr(item, "__name__", repr(item))
    return PluginError(plugin, f"{returned}, {name}, which is not decorated with @{kind}")


class CommonFields(TypedDict):
    """The fields of a `Contribution` that come from the author's declaration."""

    plugin: str
    declared: str
    published: str
    title: str | None
    description: str


def common_fields(plugin: str, item: Tool | Prompt | Resource, description: str) -> CommonFields:
    """Return the fields that come from a declaration, with the portable name as published."""
    return {
        "plugin": plugin,
        "declared": item.name,
        "published": portable_name(item.name),
        "title": item.title,
        "description": description,
    }


def portable_name(name: str) -> str:
    """Return a name without the dots that some clients refuse."""
    return name.replace(".", "_")


def describe(plugin: str, kind: str, name: str) -> str:
    """Return the name of a contribution for errors, such as ``tool 'add'``.

    Raises:
        PluginError: Some clients do not accept its name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MAX_NAME:  # pyright: ignore[reportUnnecessaryIsInstance]
        allowed = f"letters, digits, '_', '-' and '.', at most {MAX_NAME}"
        raise PluginError(plugin, f"{name!r} is not a valid {kind} name; use {allowed}")
    return f"{kind} {name!r}"


def check_texts(plugin: str, what: str, item: Tool | Prompt | Resource) -> str:
    """Return the author's description, or the docstring of the function.

    Raises:
        PluginError: Both are missing, or a field has the wrong type.
    """
    # Authors may use no type checker, and one wrong field would break the list of all plugins.
    given: Any = item
    if not all(isinstance(text, str | None) for text in (given.title, given.description)):
        raise PluginError(plugin, f"{what}: its title and its description must be text")
    if not callable(given.function):
        raise PluginError(plugin, f"{what}: its function is not a function")
    function = plain_function(given.function)
    if text := (item.description or inspect.getdoc(function) or "").strip():
        return text
    raise PluginError(plugin, f"{what} has no description")


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the author's function, without partials and decorators."""
    while isinstance(function, functools.partial):
        function = function.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    unwrapped: Callable[..., Any] = inspect.unwrap(function)
    return unwrapped


def check_completers(
    plugin: str, what: str, completers: Mapping[str, object], arguments: Iterable[str]
) -> None:
    """Check that each completer is a function for an existing argument.

    Raises:
        PluginError: A completer is not.
    """
    argument_names = tuple(arguments)
    for name, completer in completers.items():
        if name not in argument_names:
            hint = did_you_mean(name, argument_names)
            raise PluginError(plugin, f"{what}: it completes an unknown argument {name!r}{hint}")
        if not callable(completer):
            raise PluginError(plugin, f"{what}: the completer of {name!r} is not a function")


def conflict(plugin: str, owner: str, what: str) -> PluginConflictError:
    """Return the error for a plugin that declares *what*, which belongs to *owner*."""
    if plugin == owner:
        return PluginConflictError(plugin, f"it declares {what} twice")
    return PluginConflictError(plugin, f"{what} already belongs to plugin {owner!r}")
