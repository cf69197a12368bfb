"""Serve skills by the extension of SEP-2640; their files are ordinary resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from standards_mcp._utils.text import did_you_mean
from standards_mcp.calls.context import Principal
from standards_mcp.contributions.schemas import short
from standards_mcp.contributions.selection import visible
from standards_mcp.contributions.skills import EXTENSION
from standards_mcp.host import Host

from .context import Context
from .handlers import Answering, cache_hints, page_of, wire_resource

if TYPE_CHECKING:
    from .server import HostServer

_FOLDER_TYPE: Final = "inode/directory"


class _UriParams(types.RequestParams):
    uri: str


def serve_skills(
    server: HostServer, host: Host, principal_of: Callable[[Context], Principal]
) -> None:
    """Add the extension and its requests to *server*."""
    skills = _Skills(host, principal_of)
    server.extensions[EXTENSION] = {"directoryRead": True}
    server.add_request_handler("skills/list", types.PaginatedRequestParams, skills.list_skills)
    server.add_request_handler("skills/get", _UriParams, skills.get_skill)
    server.add_request_handler("resources/directory/read", _UriParams, skills.read_directory)


class _Skills(Answering):
    async def list_skills(
        self, ctx: Context, params: types.PaginatedRequestParams
    ) -> dict[str, Any]:
        items = visible((await self._visible(ctx)).skills)
        page, cursor = page_of([item.definition for item in items], params)
        skills = {"skills": page, **self._cache_hints(ctx)}
        return skills | ({"nextCursor": cursor} if cursor else {})

    async def get_skill(self, ctx: Context, params: _UriParams) -> dict[str, Any]:
        entries = {
            item.published: item.entry for item in visible((await self._visible(ctx)).skills)
        }
        if params.uri not in entries:
            hint = did_you_mean(params.uri, entries)
            raise MCPError(types.INVALID_PARAMS, f"no skill is served at {short(params.uri)}{hint}")
        return {"skill": entries[params.uri], **self._cache_hints(ctx)}

    async def read_directory(self, ctx: Context, params: _UriParams) -> dict[str, Any]:
        folder, children = f"{params.uri}/", dict[str, Any]()
        selection = await self._visible(ctx)
        is_in_skill = folder.startswith(tuple(item.folder for item in visible(selection.skills)))
        for item in visible(selection.resources):
            uri = item.resource.uri
            if not (is_in_skill and item.skill and uri.startswith(folder)):
                continue
            name, slash, _ = uri.removeprefix(folder).partition("/")
            child: dict[str, Any] = {"uri": folder + name, "name": name, "mimeType": _FOLDER_TYPE}
            if not slash:
                child = wire_resource(item).model_dump(by_alias=True, exclude_none=True)
            children[folder + name] = child
        if not children:
            message = f"{short(params.uri)} is not a directory resource"
            raise MCPError(types.INVALID_PARAMS, message, {"uri": params.uri})
        return {"resources": [children[uri] for uri in sorted(children)]}

    def _cache_hints(self, ctx: Context) -> dict[str, Any]:
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return cache_hints(self._host) if is_modern else {}
