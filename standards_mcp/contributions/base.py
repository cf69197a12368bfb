"""The common part of tools, prompts, resources and skills: name, plugin, texts and limits."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypedDict, TypeVar

from standards_mcp._utils.text import did_you_mean
from standards_mcp.config.models.tools import RATE_LIMIT
from standards_mcp.errors import PluginConflictError, PluginError
from standards_mcp.plugin import Prompt, Resource, Tool

from .arguments import Arguments

_D = TypeVar("_D", Tool, Prompt, Resource)
MAX_NAME: Final = 64
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")


class Limits(NamedTuple):
    """The limits of the calls of a tool, a prompt or a resource.

    Attributes:
        timeout: Seconds for one call.
        rate_limits: The rates for one caller, such as ``60/minute``; all of them apply.
        cache_ttl: Seconds for which the answer of a tool is cached; 0: never.
        cache_scope: See `standards_mcp.Tool`.
        concurrency: Maximum number of concurrent calls; None: only *plugin_concurrency* limits it.
        plugin_concurrency: Maximum number of concurrent calls of the whole plugin.
        max_output_tokens: Maximum length of an answer in tokens, estimated; None: no limit.
        max_argument_values: Maximum number of values in the arguments, at all levels.
    """

    timeout: float = 30.0
    rate_limits: tuple[str, ...] = ()
    cache_ttl: float = 0
    cache_scope: Literal["private", "public"] = "private"
    concurrency: int | None = None
    plugin_concurrency: int = 16
    max_output_tokens: int | None = None
    max_argument_values: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contribution:
    """A tool, a prompt, a resource or a skill of a plugin.

    Attributes:
        kind: ``tool``, ``prompt``, ``resource`` or ``skill``.
        declared: The name in the author's declaration.
        published: The name that clients see.
        limits: The limits of calls, from the configuration.
        hidden_reason: The reason why the item is not served, or an empty string.
        error: The reason why the item can never be served, or an empty string.
        conflict: If the name is taken, its owner and the remedy, else an empty string.
        timeout: Seconds for one call, in place of ``tools.timeout``; a tool has its own.
        extra: More fields of the MCP definition, such as icons, from another server.
        meta: More fields of ``_meta``, from another server.
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
    timeout: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def definition(self) -> dict[str, Any]:
        """The definition for models, with the names of MCP's fields of a tool."""
        return {
            "name": self.published,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.arguments.schema,
        }

    @property
    def portable(self) -> str:
        """The declared name in a form that every client accepts."""
        return portable_name(self.declared)

    @property
    def owns_names(self) -> bool:
        """False if another item may take the names: this item has an error or a conflict."""
        return not (self.error or self.conflict)

    @property
    def names(self) -> tuple[str, ...]:
        """All names of the item: declared, portable and published."""
        # Independent of the setting `tool_names`, so that a reload cannot make two names clash.
        return tuple(dict.fromkeys((self.declared, self.portable, self.published)))


class Completion(NamedTuple):
    """Completions of an argument.

    Attributes:
        values: The best values, in order.
        total: The number of all values; None if unknown.
        has_more: True if some values are left out; None if unknown.
    """

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


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


# Authors may use no type checker, and one wrong field would break the list of all plugins. So each
# field is checked, also against its annotation.
def read_common(plugin: str, item: object, kind: type[_D]) -> tuple[_D, str, CommonFields]:
    """Check the fields that tools, prompts and resources have in common.

    Returns:
        The declaration, a label for errors such as ``tool 'add'``, and the common fields. The
        description is the author's, or the docstring of the function.

    Raises:
        PluginError: The item is not a declaration, or a field is missing or wrong.
    """
    noun = kind.__name__.lower()
    if not isinstance(item, kind):
        reason = f"register_{noun}s returned a {type(item).__name__}"
        if callable(item):
            name = getattr(item, "__name__", repr(item))
            reason += f", {name}, which is not decorated with @{noun}"
        raise PluginError(plugin, reason)
    unchecked: Any = item
    if (
        not isinstance(unchecked.name, str)
        or not _NAME.fullmatch(item.name)
        or len(item.name) > MAX_NAME
    ):
        allowed = f"letters, digits, '_', '-' and '.', at most {MAX_NAME}"
        raise PluginError(plugin, f"{unchecked.name!r} is not a valid {noun} name; use {allowed}")
    label = f"{noun} {item.name!r}"
    if not all(isinstance(text, str | None) for text in (unchecked.title, unchecked.description)):
        raise PluginError(plugin, f"{label}: its title and its description must be text")
    if not callable(unchecked.function):
        raise PluginError(plugin, f"{label}: its function is not a function")
    text = (item.description or inspect.getdoc(plain_function(item.function)) or "").strip()
    if not text:
        raise PluginError(plugin, f"{label} has no description")
    return item, label, common_fields(plugin, item, text)


@contextmanager
def naming_declaration(plugin: str, label: str) -> Generator[None]:
    """Raise each `ValueError` of the body as a `PluginError` that names the declaration."""
    try:
        yield
    except ValueError as exc:
        raise PluginError(plugin, f"{label}: {exc}") from exc


def raise_first_fault(faults: Mapping[str, bool]) -> None:
    """Raise a ValueError with the first message in *faults* whose value is True."""
    if message := next((message for message, is_wrong in faults.items() if is_wrong), ""):
        raise ValueError(message)


def limit_checks(declaration: Any) -> dict[str, bool]:
    """Check the limits of a tool or a route, and return the results for `raise_first_fault`."""
    rate, timeout = declaration.rate_limit, declaration.timeout
    return {
        "its timeout must be a positive number of seconds": (
            timeout is not None and not is_duration(timeout)
        ),
        "its rate_limit must be a text such as '60/minute'": rate is not None
        and not (isinstance(rate, str) and re.fullmatch(RATE_LIMIT, rate)),
    }


def is_duration(value: object) -> bool:
    """Return True if a value is a positive, finite number."""
    return type(value) in (int, float) and 0 < value < math.inf  # type: ignore[operator]


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the author's function, without partials and decorators."""
    while isinstance(function, functools.partial):
        function = function.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    unwrapped: Callable[..., Any] = inspect.unwrap(function)
    return unwrapped


def check_completers(completers: Mapping[str, object], arguments: Iterable[str]) -> None:
    """Check that each completer is a function for an existing argument.

    Raises:
        ValueError: A completer is not a function, or has no such argument.
    """
    argument_names = tuple(arguments)
    for name, completer in completers.items():
        hint = did_you_mean(name, argument_names)
        raise_first_fault(
            {
                f"it completes an unknown argument {name!r}{hint}": name not in argument_names,
                f"the completer of {name!r} is not a function": not callable(completer),
            }
        )


def conflict(plugin: str, owner: str, what: str) -> PluginConflictError:
    """Return the error for a plugin that declares *what*, which belongs to *owner*."""
    if plugin == owner:
        return PluginConflictError(plugin, f"it declares {what} twice")
    return PluginConflictError(plugin, f"{what} already belongs to plugin {owner!r}")
