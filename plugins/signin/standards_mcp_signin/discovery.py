"""Find the authorization server of another MCP server (RFC 8414, RFC 9728)."""

from __future__ import annotations

from typing import cast

from standards_mcp import ApiError
from standards_mcp.transports import ServerAuth
from standards_mcp_oauth.issuers import (
    WELL_KNOWN,
    Endpoints,
    check_secure,
    fetch_object,
    read_metadata,
    split_url,
)


async def find_endpoints(auth: ServerAuth, server_url: str) -> Endpoints:
    """Return the endpoints of the configured issuer, else of the one that the MCP server names.

    Raises:
        ApiError: They cannot be found, or may not be used.
    """
    if auth.token_url:
        return Endpoints(
            issuer=auth.issuer or "",
            token_endpoint=auth.token_url,
            authorization_endpoint=auth.authorization_url or "",
        )
    issuer = auth.issuer or await _issuer_of(server_url)
    _, path = split_url(issuer)
    # In the order of the MCP specification.
    places = (
        f"{WELL_KNOWN}oauth-authorization-server{path}",
        f"{WELL_KNOWN}openid-configuration{path}",
        f"{path}{WELL_KNOWN}openid-configuration",
    )
    return await read_metadata(issuer, places, needs_pkce=auth.grant == "authorization_code")


async def _issuer_of(server_url: str) -> str:
    """Return the issuer that an MCP server names."""
    origin, path = split_url(server_url)
    for place in dict.fromkeys((path, "")):
        url = f"{origin}{WELL_KNOWN}oauth-protected-resource{place}"
        if metadata := await fetch_object("GET", url):
            resource, issuers = str(metadata.get("resource")), metadata.get("authorization_servers")
            is_ours = f"{origin}{path}/".startswith(f"{resource.rstrip('/')}/")
            if is_ours and isinstance(issuers, list) and issuers:
                return check_secure(str(cast("list[object]", issuers)[0]), server_url)
            raise ApiError(f"{url} is about another resource, or names no issuer; set issuer")
    raise ApiError(f"{origin} names no authorization server; set issuer")
