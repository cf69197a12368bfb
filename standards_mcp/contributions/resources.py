"""The resources of plugins: read when they are declared, found by URI, and rendered when read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import pydantic_core

from standards_mcp.errors import PluginError
from standards_mcp.plugin import Completer, Resource

from .arguments import read_function
from .base import Contribution, check_completers, check_texts, common_fields, describe
from .schemas import SchemaError

_MAX_URI: Final = 4096


class Template(Protocol):
    """A parsed URI template."""

    @property
    def variable_names(self) -> list[str]:
        """Its variables, in the order in which they stand."""
        ...

    @property
    def query_variable_names(self) -> frozenset[str]:
        """Those of its variables that a URI may leave out."""
        ...

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the values of the variables in a URI, or None if it is no instance of this."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredResource(Contribution):
    """A resource with what the host read from its URI and its function.

    Attributes:
        template: None for a resource with a plain URI.
    """

    kind = "resource"
    resource: Resource
    template: Template | None = field(repr=False)

    @property
    def completers(self) -> Mapping[str, Completer]:
        """What completes the variables of its template, by their names."""
        return self.resource.complete

    @property
    def definition(self) -> dict[str, Any]:
        """What a client shows of it."""
        return {
            "uri": self.resource.uri,
            "name": self.published,
            "title": self.title,
            "description": self.description,
            "mimeType": self.resource.mime_type,
        }

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the values of the variables in *uri*, or None if it is another resource's."""
        if self.template is None:
            return {} if uri == self.resource.uri else None
        return self.template.match(uri)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a resource holds: text or bytes."""

    data: str | bytes
    mime_type: str


def read_resource(plugin: str, resource: object) -> RegisteredResource:
    """Return a resource that a plugin declared with all that the host needs of it.

    Raises:
        PluginError: It cannot be published to every client.
    """
    if not isinstance(resource, Resource):
        raise PluginError(plugin, f"register_resources returned a {type(resource).__name__}")
    what = describe(plugin, "resource", resource.name)
    description = check_texts(plugin, what, resource)
    try:
        template = template_of(resource.uri)
        arguments = read_function(resource.function)
        _check_variables(arguments.schema, template)
    except (SchemaError, ValueError) as exc:
        raise PluginError(plugin, f"{what}: {exc}") from exc
    check_completers(plugin, what, resource.complete, arguments.schema["properties"])
    return RegisteredResource(
        **common_fields(plugin, resource, description),
        resource=resource,
        template=template,
        arguments=arguments,
    )


def contents_of(value: object, mime_type: str | None) -> Contents:
    """Return what a resource's function returned as it is sent.

    Raises:
        ValueError: It cannot be put as JSON.
    """
    if isinstance(value, Contents):  # of an isolated plugin, and rendered there
        return value
    if isinstance(value, str):
        value.encode()  # what cannot be sent would end the connection
        return Contents(value, mime_type or "text/plain")
    if isinstance(value, bytes):
        return Contents(value, mime_type or "application/octet-stream")
    text = pydantic_core.to_json(value, inf_nan_mode="null", indent=2).decode()
    return Contents(text, mime_type or "application/json")


def find_resource(
    items: Iterable[RegisteredResource], uri: str
) -> tuple[RegisteredResource, dict[str, Any]] | None:
    """Return the resource that a URI names and the values of its variables.

    A plain URI comes before any template, and a template before a later one.
    """
    if len(uri) > _MAX_URI:
        return None
    for item in sorted(items, key=lambda each: each.template is not None):
        if (variables := item.match(uri)) is not None:
            return item, variables
    return None


def template_of(uri: str) -> Template | None:
    """Return the template in *uri*, or None if it is a plain URI.

    Raises:
        ValueError: It is neither.
    """
    if not isinstance(uri, str) or not urlsplit(uri).scheme:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"its uri {uri!r} has no scheme; write one such as 'standards://sets'")
    if "{" not in uri:
        return None
    from mcp.shared.uri_template import UriTemplate  # noqa: PLC0415  - imports the whole SDK

    return UriTemplate.parse(uri)


def _check_variables(schema: dict[str, Any], template: Template | None) -> None:
    """See that the function takes the variables of the template.

    Raises:
        ValueError: It does not.
    """
    variables = set(template.variable_names) if template else set[str]()
    arguments = schema["properties"].keys()
    if odd := arguments - variables:
        raise ValueError(f"its uri has no variable {min(odd)!r}")
    if odd := variables - arguments:
        raise ValueError(f"its function has no argument {min(odd)!r}")
    optional = template.query_variable_names if template else frozenset[str]()
    if odd := optional & set(schema.get("required", ())):
        raise ValueError(
            f"{min(odd)!r} stands in the query, which may be left out: give it a default"
        )
