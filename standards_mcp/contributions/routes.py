"""HTTP routes of plugins: read at registration, found by the path and the method of a request.

Paths have Starlette's form, ``/reports/{id:int}``, below ``/plugins/<plugin>``. Pages have one part
at the root, such as ``/explore``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from standards_mcp.config.models.http import NAME
from standards_mcp.errors import PluginError
from standards_mcp.plugin import Route

from .arguments import SchemaArguments
from .base import Contribution, limit_checks, naming_declaration, plain_function, raise_first_fault

PREFIX: Final = "/plugins"
# The service answers these paths itself, or may do so later.
_SERVICE_PATHS: Final = (
    "admin|connect|docs|health|mcp|metrics|plugins|sign-(in|out)|signed-(in|out)|tools"
)
_PAGE_PATH: Final = re.compile(rf"/(?!({_SERVICE_PATHS})$)[a-z][a-z0-9-]*")
_NO_ARGUMENTS: Final = SchemaArguments({"type": "object", "properties": {}})
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


class _Convertor(Protocol):
    def convert(self, value: str) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegisteredRoute(Contribution):
    """A route with its compiled path.

    Attributes:
        methods: The accepted HTTP methods; with ``GET`` also ``HEAD``.
        scope: The scope that a token needs; empty for a page that every caller may open.
        path: The whole path, in Starlette's form.
    """

    kind = "route"
    route: Route
    methods: frozenset[str]
    scope: str
    path: str
    pattern: re.Pattern[str]
    convertors: dict[str, _Convertor] = field(repr=False)

    def parameters(self, path: str) -> dict[str, Any] | None:
        """Return the path parameters, or None for no match."""
        match = self.pattern.match(path)
        if match is None:
            return None
        try:
            return {
                name: self.convertors[name].convert(text)
                for name, text in match.groupdict().items()
            }
        except ValueError:  # such as the date 2024-02-31
            return None


def read_route(plugin: str, route: object) -> RegisteredRoute:
    """Check the route that a plugin declared, and return it with its compiled path.

    Raises:
        PluginError: The declaration is wrong.
    """
    if not isinstance(route, Route):
        raise PluginError(plugin, f"register_routes returned a {type(route).__name__}")
    # Starlette is a tenth of a second to import, and few plugins have routes.
    from starlette.routing import compile_path  # noqa: PLC0415

    with naming_declaration(plugin, f"route {route.path!r}"):
        raise_first_fault(_checks(route))
        path = route.path if route.is_page else f"{PREFIX}/{plugin}{route.path}"
        try:
            pattern, _, convertors = compile_path(path)
        except Exception as exc:  # also AssertionError of Starlette, and `re.error`
            raise ValueError(f"its path cannot be read: {exc}") from exc
    methods = frozenset(("HEAD", *route.methods) if "GET" in route.methods else route.methods)
    name = f"{','.join(route.methods)} {path}"
    return RegisteredRoute(
        plugin=plugin,
        declared=name,
        published=name,
        title=None,
        description=inspect.getdoc(plain_function(route.function)) or "",
        arguments=_NO_ARGUMENTS,
        route=route,
        methods=methods,
        scope=route.scope or ("" if route.is_page else plugin),
        path=path,
        pattern=pattern,
        convertors=dict(convertors),
    )


def _checks(declaration: Any) -> dict[str, bool]:
    """Check the fields of a route, because a wrong one would break the routes of all plugins."""
    methods, scope = declaration.methods, declaration.scope
    path, tools = declaration.path, declaration.tools
    names = cast("tuple[object, ...]", methods if isinstance(methods, tuple) else ())
    are_methods = bool(names) and METHODS.issuperset(names)
    return {
        "its path must begin with '/'; it is put below /plugins/<plugin>": not (
            isinstance(path, str) and path.startswith("/")
        ),
        f"its methods must be a tuple of some of {', '.join(sorted(METHODS))}": not are_methods,
        "its function must be async, and take a request": (
            not inspect.iscoroutinefunction(declaration.function)
        ),
        "its scope must be a name": scope is not None
        and not (isinstance(scope, str) and re.fullmatch(NAME, scope)),
        "a page needs a path of one part such as '/explore', which the service does not have, and"
        " the method GET": declaration.is_page
        and not (isinstance(path, str) and _PAGE_PATH.fullmatch(path) and methods == ("GET",)),
        "its tools must be a tuple of names, and only a page may have tools": not (
            isinstance(tools, tuple)
            and all(isinstance(tool, str) for tool in cast("tuple[object, ...]", tools))
            and (declaration.is_page or not tools)
        ),
        **limit_checks(declaration),
    }


def find_route(
    routes: Iterable[RegisteredRoute], path: str, method: str
) -> tuple[RegisteredRoute | None, dict[str, Any], frozenset[str]]:
    """Find the first route for a path and a method.

    Returns:
        The route, its path parameters and its methods. If no route matches, None, no parameters,
        and the methods that routes with this path accept.
    """
    methods = frozenset[str]()
    for route in routes:
        parameters = route.parameters(path)
        if parameters is None:
            continue
        if method in route.methods:
            return route, parameters, route.methods
        methods |= route.methods
    return None, {}, methods
