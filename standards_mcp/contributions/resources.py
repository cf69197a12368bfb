"""Resources of plugins: read at registration, found by URI, rendered for clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol, cast
from urllib.parse import urlsplit

import pydantic_core

from standards_mcp._utils.text import json_copy
from standards_mcp.plugin import Resource

from .arguments import read_signature
from .base import Contribution, check_completers, naming_declaration, raise_first_fault, read_common
from .results import read_iterator
from .schemas import signature_of

VIEW_TYPE: Final = "text/html;profile=mcp-app"
"""The MIME type of a view in MCP Apps."""
_VIEW_SCHEME: Final = "ui"
_MAX_VIEW: Final = 1 << 20
_MAX_URI: Final = 4096


class Template(Protocol):
    """A parsed URI template."""

    @property
    def variable_names(self) -> list[str]:
        """The variables in their order."""
        ...

    @property
    def query_variable_names(self) -> frozenset[str]:
        """The variables of the query part, which a URI may leave out."""
        ...

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the values of the variables in a URI, or None if the URI does not match."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegisteredResource(Contribution):
    """A resource with the template of its URI and the arguments of its function.

    Attributes:
        template: None for a resource with a plain URI.
        is_listed: False to leave the resource out of lists: other answers contain its URIs.
        skill: The URI of the skill whose file it is, or an empty string.
    """

    kind = "resource"
    resource: Resource
    is_listed: bool = True
    skill: str = ""
    template: Template | None = field(repr=False)

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the values of the variables in *uri*, or None if the URI does not match."""
        if self.template is None:
            return {} if uri == self.resource.uri else None
        return self.template.match(uri)


class Contents(NamedTuple):
    """The contents of a resource: text or bytes.

    Attributes:
        parts: The answer of another server, in MCP's JSON form; clients get it instead of *data*.
        meta: Published as the ``_meta`` of the answer.
        item_meta: Published as the ``_meta`` of the contents in the answer.
        fixed: True if a client may keep the answer for minutes.
    """

    data: str | bytes
    mime_type: str
    parts: tuple[Mapping[str, Any], ...] | None = None
    meta: Mapping[str, Any] = {}
    item_meta: Mapping[str, Any] = {}
    fixed: bool = False


def read_resource(plugin: str, resource: object) -> RegisteredResource:
    """Check the resource that a plugin declared, and return it with its arguments.

    Raises:
        PluginError: The declaration is wrong, or some clients would not accept it.
    """
    declared, label, fields = read_common(plugin, resource, Resource)
    mime_type = cast("object", declared.mime_type)
    with naming_declaration(plugin, label):
        raise_first_fault({"its mime_type must be text": not isinstance(mime_type, str | None)})
        f"{declared.uri}{mime_type}".encode()  # fails for half a surrogate pair
        template = template_of(declared.uri)
        declared = _checked_view(declared)
        arguments = read_signature(signature_of(declared.function))
        _check_variables(arguments.schema, template)
        check_completers(declared.complete, arguments.schema["properties"])
    return RegisteredResource(**fields, resource=declared, template=template, arguments=arguments)


def _checked_view(declared: Resource) -> Resource:
    """Return the declaration with the MIME type of a view, if it is one.

    Raises:
        ValueError: No client would show it as a view, or its meta is not a JSON object.
    """
    is_view = urlsplit(declared.uri).scheme == _VIEW_SCHEME
    names = cast("Any", declared.view_of)
    raise_first_fault(
        {
            "its view_of must be a tuple of tool names": (
                type(names) is not tuple or any(type(name) is not str for name in names)
            ),
            "a view needs a uri that begins with ui://": bool(names) and not is_view,
            "a view needs a uri without variables": bool(names) and "{" in declared.uri,
            f"a view has the mime_type {VIEW_TYPE!r}, or none": (
                is_view and declared.mime_type not in (None, VIEW_TYPE)
            ),
        }
    )
    try:
        meta = json_copy(dict(declared.meta))  # its author may change it later
    except (TypeError, ValueError) as exc:
        raise ValueError(f"its meta is not a JSON object: {exc}") from exc
    return replace(declared, meta=meta, mime_type=VIEW_TYPE if is_view else declared.mime_type)


def contents_of(value: object, resource: Resource) -> Contents:
    """Return the contents for the return value of a resource's function.

    Raises:
        ValueError: The value cannot be written as JSON, is a text with a lone surrogate, is an
            iterator with too many items, or is a view that is too large.
    """
    mime_type = resource.mime_type
    if isinstance(value, Contents):  # rendered already in another process, or a file of a skill
        return value._replace(fixed=resource.fixed)
    if isinstance(value, str | bytes):
        # A lone surrogate cannot be sent, and would end the connection.
        size = len(value.encode()) if isinstance(value, str) else len(value)
        if mime_type == VIEW_TYPE and size > _MAX_VIEW:
            raise ValueError(f"the view has {size:,} bytes; clients take at most {_MAX_VIEW:,}")
        default = "text/plain" if isinstance(value, str) else "application/octet-stream"
    else:
        encoded = pydantic_core.to_json(read_iterator(value), inf_nan_mode="null", indent=2)
        value, default = encoded.decode(), "application/json"
    return Contents(value, mime_type or default, item_meta=resource.meta, fixed=resource.fixed)


def find_resource(
    items: Iterable[RegisteredResource], uri: str
) -> tuple[RegisteredResource, dict[str, Any]] | None:
    """Return the resource under a URI and the values of its variables, or None.

    Plain URIs are tried before templates, and unlisted resources last; the first match wins.
    """
    if len(uri) > _MAX_URI:
        return None
    for item in sorted(items, key=lambda each: (not each.is_listed, each.template is not None)):
        if (variables := item.match(uri)) is not None:
            return item, variables
    return None


def template_of(uri: str) -> Template | None:
    """Return the template in *uri*, or None if it is a plain URI.

    Raises:
        ValueError: *uri* has no scheme, or is not a valid template.
    """
    if not isinstance(uri, str) or not urlsplit(uri).scheme:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"its uri {uri!r} has no scheme; write one such as 'standards://sets'")
    if "{" not in uri:
        return None
    from mcp.shared.uri_template import UriTemplate  # noqa: PLC0415  - imports the whole SDK

    return UriTemplate.parse(uri)


def _check_variables(schema: dict[str, Any], template: Template | None) -> None:
    """Check that the arguments of the function are the variables of the template.

    Raises:
        ValueError: They differ, or an argument for a query variable has no default.
    """
    variables = set(template.variable_names) if template else set[str]()
    arguments = schema["properties"].keys()
    if unmatched := arguments - variables:
        raise ValueError(f"its uri has no variable {min(unmatched)!r}")
    if unmatched := variables - arguments:
        raise ValueError(f"its function has no argument {min(unmatched)!r}")
    optional = template.query_variable_names if template else frozenset[str]()
    if unmatched := optional & set(schema.get("required", ())):
        raise ValueError(
            f"{min(unmatched)!r} is in the query, which may be left out: give it a default"
        )
