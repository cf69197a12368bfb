"""Decorators that declare functions as tools, prompts, resources and skills.

A decorator returns the function itself. The host finds decorated methods of a plugin; any other
decorated function must be returned by a hook such as ``register_tools``.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast, overload

from typing_extensions import TypedDict, Unpack

from .plugin import Completer, Prompt, Resource, Skill, Tool

_F = TypeVar("_F", bound=Callable[..., Any])
_DECLARATIONS: Final = "__standards_mcp__"
_Declaration: TypeAlias = Tool | Prompt | Resource | Skill
_D = TypeVar("_D", bound=_Declaration)
_Method: TypeAlias = Callable[
    [Any, str, Mapping[str, str]], Iterable[str] | Awaitable[Iterable[str]]
]
"""A method as a `Completer`: within the body of a class, it still takes ``self``."""


class ToolOptions(TypedDict, total=False):
    """The fields of `Tool` except the function, whose name is the default name."""

    name: str
    title: str | None
    description: str | None
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    returns_untrusted_text: bool
    accepts_filters: bool
    timeout: float | None
    cache_ttl: float
    cache_scope: Literal["private", "public"]
    rate_limit: str | None
    max_output_tokens: int | None
    check_argument: Callable[[str, Any], Awaitable[None]] | None
    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | type | None
    views_only: bool
    meta: Mapping[str, Any]


class PromptOptions(TypedDict, total=False):
    """The fields of `Prompt` except the function, whose name is the default name."""

    name: str
    title: str | None
    description: str | None
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    complete: Mapping[str, Completer | _Method]


class ResourceOptions(TypedDict, total=False):
    """The fields of `Resource` except URI and function, whose name is the default name."""

    name: str
    title: str | None
    description: str | None
    mime_type: str | None
    complete: Mapping[str, Completer | _Method]
    view_of: tuple[str, ...]
    meta: Mapping[str, Any]
    fixed: bool


@overload
def tool(function: _F, /) -> _F: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[_F], _F]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Declare a function as a `Tool`.

    Args:
        options: The fields of `Tool`.

    Raises:
        TypeError: An option is not a field of `Tool`, or the object is not a function.
    """
    return _declare(Tool, options, function)


@overload
def prompt(function: _F, /) -> _F: ...
@overload
def prompt(**options: Unpack[PromptOptions]) -> Callable[[_F], _F]: ...
def prompt(function: Any = None, /, **options: Any) -> Any:
    """Declare a function as a `Prompt`.

    Args:
        options: The fields of `Prompt`; methods, too, may complete arguments.

    Raises:
        TypeError: An option is not a field of `Prompt`, or the object is not a function.
    """
    return _declare(Prompt, options, function)


def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[_F], _F]:
    """Declare a function as a `Resource`.

    Args:
        uri: The URI of the resource, or a template of RFC 6570.
        options: The other fields of `Resource`; methods, too, may complete variables.

    Raises:
        TypeError: An option is not a field of `Resource`, or the parentheses with the URI are
            missing.
    """
    if not isinstance(uri, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError('write @resource("acme://things/{id}"): a resource needs its URI')
    declared: Callable[[_F], _F] = _declare(Resource, {"uri": uri, **options})
    return declared


@overload
def skill(function: _F, /) -> _F: ...
@overload
def skill(*, needs: tuple[str, ...] = ()) -> Callable[[_F], _F]: ...
def skill(function: Any = None, /, **options: Any) -> Any:
    """Declare a function as a `Skill`: it returns the folder, or the text of ``SKILL.md``.

    Args:
        options: The other fields of `Skill`.

    Raises:
        TypeError: An option is not a field of `Skill`, or the object is not a function.
    """
    return _declare(Skill, options, function)


def declarations(plugin: object, kind: type[_D]) -> Iterator[_D]:
    """Yield the declarations of one kind on a plugin's methods, in order, base classes first.

    A method that overrides a declared one must be decorated itself to be served.
    """
    for name in _declared_names(plugin):
        # The mark is read from the class, and the bound method from the instance.
        for mark in _marks(inspect.getattr_static(type(plugin), name)):
            if isinstance(mark, kind):
                # Only marked names are read, so a property of the plugin does not run.
                item = _with_function(mark, getattr(plugin, name))
                if isinstance(item, Prompt | Resource):
                    item = replace(item, complete=_bound(plugin, item.complete))
                yield item


def undecorated(plugin: object) -> list[str]:
    """Return the methods without a decorator that override, and so remove, a declared one."""
    values = {name: inspect.getattr_static(type(plugin), name) for name in _declared_names(plugin)}
    return [name for name, value in values.items() if callable(value) and not _marks(value)]


def _declared_names(plugin: object) -> Iterable[str]:
    owners = reversed(type(plugin).__mro__)
    names = [name for owner in owners for name, value in vars(owner).items() if _marks(value)]
    return dict.fromkeys(names)


def declared(item: object, kind: type[_D]) -> Iterable[object]:
    """Return the declarations of an object that a hook returned, or the object without any."""
    marks = [mark for mark in _marks(item) if isinstance(mark, kind)]
    return [_with_function(mark, item) for mark in marks] or (item,)


def _with_function(mark: _D, function: Any) -> _D:
    return replace(mark, **{"source" if isinstance(mark, Skill) else "function": function})


def _bound(plugin: object, completers: Mapping[str, Completer]) -> Mapping[str, Completer]:
    """Return the completers, with methods of the class bound to the plugin.

    They are functions until then, since the body of a class has no instance.
    """
    methods = {id(value) for owner in type(plugin).__mro__ for value in vars(owner).values()}
    return {
        name: getattr(plugin, each.__name__) if id(each) in methods else each
        for name, each in completers.items()
    }


def _declare(kind: type[_Declaration], options: Mapping[str, Any], function: Any = None) -> Any:
    def mark(function: Any) -> Any:
        plain = _function(function)
        if not inspect.isfunction(plain):
            name = kind.__name__.lower()
            is_name = isinstance(plain, str)
            advice = f"write @{name}(name=...)" if is_name else "put it directly above the function"
            raise TypeError(f"@{name} decorates a function, not {function!r}; {advice}")
        fields: dict[str, Any] = {"name": plain.__name__, **options, "function": plain}
        if kind is Skill:  # its name is in its front matter
            fields = {**options, "source": plain}
        setattr(plain, _DECLARATIONS, (*_marks(plain), kind(**fields)))
        return function

    return mark if function is None else mark(function)


def _marks(value: object) -> tuple[_Declaration, ...]:
    """Return the declarations of a function, also if `functools.update_wrapper` wrapped it."""
    # Not by `getattr` of the mark, for which classes and proxies may return another object.
    attributes: Mapping[str, Any] = getattr(_function(value), "__dict__", {})
    return cast("tuple[_Declaration, ...]", attributes.get(_DECLARATIONS, ()))


def _function(value: object) -> object:
    """Return the function of a method, also of a static or a class method."""
    is_method = inspect.ismethod(value) or isinstance(value, staticmethod | classmethod)
    return cast("Any", value).__func__ if is_method else value  # pyright: ignore[reportUnknownVariableType]
