"""What all contributions of plugins have in common: a name, an owner, and what a client reads."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypedDict

from standards_mcp._utils.text import did_you_mean
from standards_mcp.errors import PluginConflictError, PluginError
from standards_mcp.plugin import Prompt, Resource, Tool

from .arguments import Arguments

MAX_NAME: Final = 64
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A tool, a prompt or a resource of a plugin.

    Attributes:
        kind: ``tool``, ``prompt`` or ``resource``.
        declared: The name that its author gave it.
        published: The name that clients see.
        hidden_reason: Why the configuration keeps it from being served, or an empty string.
    """

    kind: ClassVar[str]
    plugin: str
    declared: str
    published: str
    title: str | None
    description: str
    arguments: Arguments
    hidden_reason: str = ""

    @property
    def portable(self) -> str:
        """The declared name as every client takes it; some write it so wherever dots are."""
        return portable_name(self.declared)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that are its alone: as declared, as portable and as published."""
        return tuple(dict.fromkeys((self.declared, self.portable, self.published)))


class CommonFields(TypedDict):
    """The fields of a `Contribution` that its author's declaration tells."""

    plugin: str
    declared: str
    published: str
    title: str | None
    description: str


def common_fields(plugin: str, item: Tool | Prompt | Resource, description: str) -> CommonFields:
    """Return what a declaration tells; it is published under a name that every client accepts."""
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
    """Return what to call a contribution in an error, such as ``tool 'add'``.

    Raises:
        PluginError: Not every client can be given its name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > MAX_NAME:  # pyright: ignore[reportUnnecessaryIsInstance]
        allowed = f"letters, digits, '_', '-' and '.', at most {MAX_NAME}"
        raise PluginError(plugin, f"{name!r} is not a valid {kind} name; use {allowed}")
    return f"{kind} {name!r}"


def check_texts(plugin: str, what: str, item: Tool | Prompt | Resource) -> str:
    """Return the description that an author gave, or the docstring of the function.

    Raises:
        PluginError: There is neither, or something is no text, which would break a list.
    """
    given: Any = item
    if not all(isinstance(text, str | None) for text in (given.title, given.description)):
        raise PluginError(plugin, f"{what}: its title and its description must be text")
    if not callable(given.function):
        raise PluginError(plugin, f"{what}: its function is not a function")
    function = given.function
    while isinstance(function, functools.partial):
        function = function.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if text := (item.description or inspect.getdoc(function) or "").strip():
        return text
    raise PluginError(plugin, f"{what} has no description")


def check_completers(
    plugin: str, what: str, completers: Mapping[str, object], arguments: Iterable[str]
) -> None:
    """See that what completes arguments is made for arguments that there are.

    Raises:
        PluginError: It is not.
    """
    known = tuple(arguments)
    for name, completer in completers.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise PluginError(plugin, f"{what}: it completes {name!r}, which it has not{hint}")
        if not callable(completer):
            raise PluginError(plugin, f"{what}: what completes {name!r} is not a function")


def conflict(plugin: str, owner: str, what: str) -> PluginConflictError:
    """Return the error of a plugin that declares what belongs to *owner* already."""
    if plugin == owner:
        return PluginConflictError(plugin, f"it declares {what} twice")
    return PluginConflictError(plugin, f"{what} already belongs to plugin {owner!r}")
