"""Resources of other MCP servers, in the host's terms: their URIs and contents stay as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from standards_mcp._utils.text import readable
from standards_mcp.contributions.base import MAX_NAME, common_fields, portable_name
from standards_mcp.contributions.resources import (
    Contents,
    RegisteredResource,
    Template,
    template_of,
)
from standards_mcp.plugin import Resource

from .definitions import (
    Origin,
    extra_of,
    meta_of,
    objects_of,
    optional_text,
    readable_text,
    unique_name,
)
from .prompts import AnyArguments, completers

_URI: Final = "uri"
_LINKED: Final = "linked"
_MOST_LINKS: Final = 1000


@dataclass(frozen=True, slots=True)
class WholeUri:
    """A template of which the server gets the whole URI: it reads the variables in its own way."""

    template: Template

    @property
    def variable_names(self) -> list[str]:
        """Its variables in their order."""
        return self.template.variable_names

    @property
    def query_variable_names(self) -> frozenset[str]:
        """The variables of its query. See `Template`."""
        return self.template.query_variable_names

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the URI, or None if it does not match."""
        return None if self.template.match(uri) is None else {_URI: uri}


class Links:
    """The URIs that a server's answers link to; only the newest are known."""

    def __init__(self) -> None:
        self._uris: dict[str, None] = {}

    def __contains__(self, uri: str) -> bool:
        """Tell whether an answer linked to a URI."""
        return uri in self._uris

    def note(self, blocks: Iterable[Mapping[str, Any]]) -> None:
        """Note the links among the content blocks of an answer."""
        for block in blocks:
            if block.get("type") == "resource_link" and isinstance(uri := block.get("uri"), str):
                self._uris.pop(uri, None)
                self._uris[uri] = None
        while len(self._uris) > _MOST_LINKS:
            del self._uris[next(iter(self._uris))]


@dataclass(frozen=True, slots=True)
class LinkedUri:
    """Matches what a server's answers link to and its lists do not have. See `Template`."""

    links: Links
    listed: tuple[RegisteredResource, ...]

    @property
    def variable_names(self) -> list[str]:
        """None: the server gets the whole URI."""
        return []

    @property
    def query_variable_names(self) -> frozenset[str]:
        """None, as above."""
        return frozenset()

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the URI, or None if it is listed, perhaps for rules to hide, or not linked to."""
        if uri not in self.links or any(item.match(uri) is not None for item in self.listed):
            return None
        return {_URI: uri}


def read_remote_resources(
    origin: Origin,
    resources: Iterable[Mapping[str, Any]],
    templates: Iterable[Mapping[str, Any]],
    links: Links,
) -> tuple[RegisteredResource, ...]:
    """Return the resources and the templates of another server, and what its answers link to.

    Their names are made unique, which those of a server need not be: it knows them by their URIs.
    """
    listed = [(str(raw.get("uri") or ""), raw) for raw in resources]
    listed += [(str(raw.get("uriTemplate") or ""), raw) for raw in templates]
    names = [origin.declared(str(raw.get("name") or uri)) for uri, raw in listed]
    count = Counter(map(portable_name, [*names, origin.declared(_LINKED)]))
    found: list[RegisteredResource] = []
    for name, (uri, raw) in zip(names, listed, strict=True):
        is_unique = count[portable_name(name)] == 1 and len(name) <= MAX_NAME
        found.append(_resource(origin, name if is_unique else unique_name(name, uri), uri, raw))
    return (*found, _linked(origin, LinkedUri(links, tuple(found))))


def _linked(origin: Origin, template: LinkedUri) -> RegisteredResource:
    """Return all that a server's answers link to as one resource, which rules know by its name."""
    resource = Resource(
        uri=f"links of {origin.name}",
        name=origin.declared(_LINKED),
        function=partial(_contents, origin),
    )
    return RegisteredResource(
        **common_fields(origin.name, resource, f"What answers of {origin.name} link to."),
        resource=resource,
        template=template,
        arguments=AnyArguments({"type": "object", "properties": {}}),
        timeout=origin.timeout,
        is_listed=False,
    )


async def _contents(origin: Origin, uri: str) -> Contents:
    return contents_of(await origin.ask("resources/read", {_URI: uri}))


def _resource(origin: Origin, name: str, uri: str, raw: Mapping[str, Any]) -> RegisteredResource:
    is_template = "uriTemplate" in raw
    template, error = _template(uri) if is_template else (None, "")
    variables = template.variable_names if template else []
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in variables}}
    resource = Resource(
        uri=uri,
        name=name,
        function=partial(_contents, origin, uri)
        if template is None
        else partial(_contents, origin),
        # Clients show the name of a resource without a title, and ours is not the server's.
        title=readable(str(raw.get("title") or raw.get("name") or "")) or None,
        mime_type=optional_text(raw.get("mimeType")),
        complete=completers(origin, {"type": "ref/resource", "uri": uri}, schema),
    )
    return RegisteredResource(
        **common_fields(origin.name, resource, readable_text(raw.get("description")) or ""),
        resource=resource,
        template=WholeUri(template) if template else None,
        arguments=AnyArguments(schema),
        timeout=origin.timeout,
        error=error if uri else "its server lists it without a URI",
        extra=extra_of(raw, "icons", "annotations", *(() if is_template else ("size",))),
        meta=meta_of(raw),
    )


def _template(uri: str) -> tuple[Template | None, str]:
    """Return a template, or why its URIs cannot be told from others."""
    try:
        template = template_of(uri)
    except ValueError as exc:
        return None, f"its uriTemplate cannot be matched: {exc}"
    return template, "" if template else "its uriTemplate has no variable"


def contents_of(raw: Mapping[str, Any]) -> Contents:
    """Return contents as the other server gave them, with their ``_meta``."""
    parts = tuple(objects_of(raw.get("contents")))
    first: Mapping[str, Any] = parts[0] if parts else {}
    mime_type = optional_text(first.get("mimeType"))
    return Contents(
        optional_text(first.get("text")) or "",
        "text/plain" if mime_type is None else mime_type,
        parts,
        meta_of(raw),
    )
