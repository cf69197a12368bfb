"""Tell clients of an authorization server which scope a call of a tool needs (RFC 6750).

Such a client can ask its user for more scopes, and call again. A token of the configuration cannot
get more, so its holder does not learn of tools beyond it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from standards_mcp.errors import RateLimitedError
from standards_mcp.transports import Host, HostContext, Principal

from .authorization import access_of


class StepUp:
    """Refuse calls of tools that only another scope allows.

    Args:
        principal_of: Returns the caller of a request.
        metadata: The address of the metadata that names the issuer of tokens, or None.
    """

    def __init__(
        self,
        host: Host,
        principal_of: Callable[[Request], Principal],
        metadata: AnyHttpUrl | None,
    ) -> None:
        self._host, self._principal_of, self._metadata = host, principal_of, metadata

    async def __call__(self, scope: Scope, body: bytes) -> Response | None:
        """Return the refusal of a request that needs another scope, or None."""
        user, settings = scope.get("user"), self._host.settings.server.auth
        if not isinstance(user, AuthenticatedUser) or user.access_token.claims is None:
            return None
        call = _tool_call(body)
        if call is None:
            return None
        await self._host.manager.wait_listed()
        held = {*user.access_token.scopes}
        if self._is_served(held, *call):
            return None
        allowing = (
            name for name in sorted(settings.scopes) if self._is_served({*held, name}, *call)
        )
        if not (needed := next(allowing, None)):
            return None
        context = HostContext(self._principal_of(Request(scope)))
        try:
            await self._host.count_refused(call[0], context)
        except RateLimitedError:
            return None  # the call itself is refused with the same error
        self._host.pipeline.recording.refused("tool", *call, context)
        return self._challenge(needed)

    def _is_served(self, scopes: set[str], name: str, arguments: Mapping[str, Any]) -> bool:
        selection = self._host.select(access_of(scopes, self._host.settings.server.auth))
        if selection.search and (inner := selection.search.inner_call(name, arguments)):
            name, _ = inner
        item = selection.find(name)
        return item is not None and not item.hidden_reason

    def _challenge(self, scope: str) -> Response:
        why = f"this call needs the scope {scope!r}"
        parts = [f'error="insufficient_scope", scope="{scope}", error_description="{why}"']
        if self._metadata:
            parts.append(f'resource_metadata="{self._metadata}"')
        body = {"error": "insufficient_scope", "error_description": why, "scope": scope}
        return JSONResponse(body, 403, {"www-authenticate": f"Bearer {', '.join(parts)}"})


def _tool_call(body: bytes) -> tuple[str, Mapping[str, Any]] | None:
    """Return the name and the arguments of a tool call, or None for any other request."""
    # Most requests are read only once, by the SDK.
    if b"tools" not in body:
        return None
    try:
        message: Any = json.loads(body)
        name: object = message["params"]["name"]
        arguments: object = message["params"].get("arguments") or {}
        is_call = message["method"] == "tools/call"
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not is_call or not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return name, cast("dict[str, Any]", arguments)
