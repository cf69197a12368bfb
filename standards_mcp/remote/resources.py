"""Convert resources of other MCP servers to the host's classes; keep URIs and contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from standards_mcp._utils.text import readable
from standards_mcp.contributions.arguments import UncheckedArguments
from standards_mcp.contributions.base import MAX_NAME, common_fields, portable_name
from standards_mcp.contributions.resources import (
    Contents,
    RegisteredResource,
    Template,
    template_of,
)
from standards_mcp.plugin import Resource

from .definitions import (
    NO_ARGUMENTS,
    Ask,
    Origin,
    completers,
    extra_of,
    meta_of,
    objects_of,
    optional_text,
    readable_text,
    unique_name,
)

_URI: Final = "uri"
# All links have one name: a server could choose a name for its link that a rule permits.
_LINKS_NAME: Final = "linked"
_MAX_LINKS: Final = 1000


@dataclass(frozen=True, slots=True)
class WholeUri:
    """A template whose URIs are sent to the server unparsed. See `Template`.

    Attributes:
        matcher: The server's template, or the links to unlisted URIs.
        earlier: The resources that take precedence. Their URIs do not match, because the caller may
            have no access to these resources.
        skills: See `Origin`.
    """

    matcher: Template | Links
    earlier: tuple[RegisteredResource, ...] = field(default=(), compare=False, repr=False)
    skills: tuple[str, ...] = ()

    @property
    def variable_names(self) -> list[str]:
        """An empty list, because the server gets the whole URI."""
        return []

    @property
    def query_variable_names(self) -> frozenset[str]:
        """An empty set."""
        return frozenset()

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the URI as the only variable, or None if it does not match."""
        if uri.startswith(self.skills) or self.matcher.match(uri) is None:
            return None
        is_taken = any(item.match(uri) is not None for item in self.earlier)
        return None if is_taken else {_URI: uri}


# Only URIs of links can be read. Reading any URI would bypass the rules, because these refer to
# resources by name.
class Links:
    """The newest resource links in a server's answers."""

    def __init__(self) -> None:
        self._uris: dict[str, None] = {}

    def match(self, uri: str) -> Mapping[str, Any] | None:
        """Return an empty object if an answer linked to a URI, else None."""
        return {} if uri in self._uris else None

    def note(self, blocks: Iterable[Mapping[str, Any]]) -> None:
        """Note the links among the content blocks of an answer."""
        for block in blocks:
            if block.get("type") == "resource_link" and isinstance(uri := block.get("uri"), str):
                self._uris.pop(uri, None)
                self._uris[uri] = None
        while len(self._uris) > _MAX_LINKS:
            del self._uris[next(iter(self._uris))]


def read_remote_resources(
    origin: Origin,
    resources: Iterable[Mapping[str, Any]],
    templates: Iterable[Mapping[str, Any]],
    links: Links,
) -> tuple[RegisteredResource, ...]:
    """Return the resources and templates of another server, and one item for its links.

    Servers identify resources by URI, so names may repeat; repeated names are made unique. URIs get
    no prefix, because answers of tools contain URIs. A URI belongs to the first server that lists
    it.
    """
    listed = [(str(raw.get("uri") or ""), raw) for raw in resources]
    listed += [(str(raw.get("uriTemplate") or ""), raw) for raw in templates]
    listed = [(uri, raw) for uri, raw in listed if not uri.startswith(origin.skills)]
    names = [origin.declared(str(raw.get("name") or uri)) for uri, raw in listed]
    count = Counter(map(portable_name, [*names, origin.declared(_LINKS_NAME)]))
    items: list[RegisteredResource] = []
    for name, (uri, raw) in zip(names, listed, strict=True):
        is_unique = count[portable_name(name)] == 1 and len(name) <= MAX_NAME
        items.append(_resource(origin, name if is_unique else unique_name(name, uri), uri, raw))
    # One unlisted resource for all links, so that rules can name it.
    linked = Resource(
        uri=f"links of {origin.name}",
        name=origin.declared(_LINKS_NAME),
        function=resource_reader(origin.ask),
    )
    unlisted = RegisteredResource(
        **common_fields(origin.name, linked, f"URIs that answers of {origin.name} link to."),
        resource=linked,
        template=WholeUri(links, tuple(items), origin.skills),
        arguments=UncheckedArguments(NO_ARGUMENTS),
        timeout=origin.timeout,
        is_listed=False,
    )
    return (*items, unlisted)


def resource_reader(ask: Ask, uri: str = "") -> Callable[..., Awaitable[Contents]]:
    """Return a function that reads the resource; without *uri*, the URI is its argument."""

    async def read(uri: str) -> Contents:
        return contents_of(await ask("resources/read", {_URI: uri}))

    return partial(read, uri) if uri else read


def _resource(origin: Origin, name: str, uri: str, raw: Mapping[str, Any]) -> RegisteredResource:
    is_template = "uriTemplate" in raw
    template, error = None, "" if uri else "its server lists it without a URI"
    if is_template and uri:
        try:
            template = template_of(uri)
            error = "" if template else "its uriTemplate has no variable"
        except ValueError as exc:
            error = f"its uriTemplate cannot be matched: {exc}"
    variables = template.variable_names if template else []
    ref = {"type": "ref/resource", "uri": uri}
    resource = Resource(
        uri=uri,
        name=name,
        function=resource_reader(origin.ask, "" if template else uri),
        # Without a title, clients would show the name of the resource, which has a prefix here.
        title=readable(str(raw.get("title") or raw.get("name") or "")) or None,
        mime_type=optional_text(raw.get("mimeType")),
        complete=completers(origin.ask, ref, variables if origin.completes else ()),
        meta=meta_of(raw),
    )
    return RegisteredResource(
        **common_fields(origin.name, resource, readable_text(raw.get("description")) or ""),
        resource=resource,
        template=WholeUri(template, skills=origin.skills) if template else None,
        arguments=UncheckedArguments(
            {"type": "object", "properties": {each: {"type": "string"} for each in variables}}
        ),
        timeout=origin.timeout,
        error=error,
        extra=extra_of(raw, "icons", "annotations", *(() if is_template else ("size",))),
    )


def contents_of(raw: Mapping[str, Any]) -> Contents:
    """Convert raw contents, with their ``_meta``."""
    parts = tuple(objects_of(raw.get("contents")))
    first: Mapping[str, Any] = parts[0] if parts else {}
    mime_type = optional_text(first.get("mimeType"))
    return Contents(
        optional_text(first.get("text")) or "",
        "text/plain" if mime_type is None else mime_type,
        parts,
        meta_of(raw),
    )
