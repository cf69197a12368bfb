"""Tell clients of an authorization server which scopes an operation needs (RFC 6750).

Such a client can ask its user for more scopes, and try again. A token of the configuration cannot
get more, so its holder does not learn of what is beyond it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from pydantic import AnyHttpUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from standards_mcp.errors import RateLimitedError
from standards_mcp.transports import EVERYTHING, Access, Host, HostContext, Principal, Selection

from .authorization import access_of

_KINDS: Final = {
    "tools/call": "tool",
    "prompts/get": "prompt",
    "resources/read": "resource",
    "resources/subscribe": "subscription",
    "skills/get": "skill",
    "completion/complete": "completion",
}
"""The kinds of operations in the log, by their methods."""
# Most requests are read only once, by the SDK.
_WORDS: Final = tuple(method.partition("/")[0].encode() for method in _KINDS)
_MAX_TRIALS: Final = 128


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on something that only some scopes may allow.

    Attributes:
        kind: The kind in the log.
        name: The name of a tool or a prompt, or "".
        uri: The URI of a resource, or the template that a completion is for, or "".
    """

    kind: str
    name: str
    uri: str
    arguments: Mapping[str, Any]


class StepUp:
    """Refuse operations that only more scopes allow.

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
        self._everything: Selection | None = None
        self._trials = dict[Access, Selection]()

    async def __call__(self, scope: Scope, body: bytes) -> Response | None:
        """Return the refusal of an MCP request that needs more scopes, or None."""
        if _scopes_of(scope) is None or not (operation := _operation(body)):
            return None
        return await self.refusal(scope, operation)

    async def refusal(self, scope: Scope, operation: Operation) -> Response | None:
        """Return the refusal of an operation that needs more scopes, or None."""
        token_scopes = _scopes_of(scope)
        if token_scopes is None:
            return None
        await self._host.manager.wait_listed()
        access = access_of(token_scopes, self._host.settings.server.auth)
        if _serves(self._host.select(access), operation):
            return None
        if not (needed := self._needed(token_scopes, operation)):
            return None
        context, name = HostContext(self._principal_of(Request(scope))), operation.name
        if operation.kind == "tool":
            try:
                await self._host.count_refused(name, context)
            except RateLimitedError:
                return None  # the call itself is refused with the same error
        recording, arguments = self._host.pipeline.recording, operation.arguments
        recording.refused(operation.kind, name or operation.uri, arguments, context)
        return self._challenge(needed)

    def _needed(self, token_scopes: set[str], operation: Operation) -> list[str]:
        """Return all scopes that the operation needs, or none if no scopes allow it.

        One scope more is enough for most; a prompt also needs those for its tools.
        """
        auth = self._host.settings.server.auth
        if not _serves(self._host.select(EVERYTHING), operation):
            return []
        held = token_scopes & auth.scopes.keys()
        # A profile narrows all that the other scopes allow.
        widening = {name for name in auth.scopes if not access_of({name}, auth).profiles}
        trials = (*({name} for name in sorted(auth.scopes)), widening)
        enough = (held | more for more in trials if self._is_served(held | more, operation))
        needed = next(enough, set[str]())
        # What the token has is left out last, so that the user is asked for as little as possible.
        for name in sorted(needed, key=lambda name: (name in held, name)):
            if self._is_served(needed - {name}, operation):
                needed = needed - {name}
        return sorted(needed)

    def _is_served(self, scopes: set[str], operation: Operation) -> bool:
        access = access_of(scopes, self._host.settings.server.auth)
        return _serves(self._trial(access), operation)

    def _trial(self, access: Access) -> Selection:
        """Return the selection for an access that perhaps no caller has.

        Tokens can have any set of scopes, so the host must not keep them all.
        """
        everything = self._host.select(EVERYTHING)  # another one after each change
        if everything is not self._everything or len(self._trials) >= _MAX_TRIALS:
            self._everything, self._trials = everything, {}
        if access not in self._trials:
            self._trials[access] = self._host.select(access, is_trial=True)
        return self._trials[access]

    def _challenge(self, needed: list[str]) -> Response:
        scope = " ".join(needed)
        why = f"this needs the scope{'s' * (len(needed) > 1)} '{scope}'"
        parts = [f'error="insufficient_scope", scope="{scope}", error_description="{why}"']
        if self._metadata:
            parts.append(f'resource_metadata="{self._metadata}"')
        body = {"error": "insufficient_scope", "error_description": why, "scope": scope}
        return JSONResponse(body, 403, {"www-authenticate": f"Bearer {', '.join(parts)}"})


def _serves(selection: Selection, operation: Operation) -> bool:
    name, uri = operation.name, operation.uri
    if operation.kind == "tool":
        search = selection.search
        if search and (inner := search.inner_call(name, operation.arguments)):
            name, _ = inner
        item = selection.find(name)
        return item is not None and not item.hidden_reason
    prompts = (item for item in selection.prompts if name in item.names)
    resources = (
        item
        for item in selection.resources
        if item.resource.uri == uri or item.match(uri) is not None
    )
    return any(not item.hidden_reason for item in (prompts if name else resources))


def _scopes_of(scope: Scope) -> set[str] | None:
    """Return the scopes of the token of an authorization server, or None for other callers."""
    user = scope.get("user")
    if not isinstance(user, AuthenticatedUser) or user.access_token.claims is None:
        return None
    return {*user.access_token.scopes}


def _operation(body: bytes) -> Operation | None:
    """Return the operation of an MCP request, or None for any other request."""
    if not any(word in body for word in _WORDS):
        return None
    try:
        message: Any = json.loads(body)
        kind, params = _KINDS[message["method"]], message["params"]
        target = params["ref"] if kind == "completion" else params
        name, uri = target.get("name") or "", target.get("uri") or ""
        arguments: object = params.get("arguments") or {}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not (isinstance(name, str) and isinstance(uri, str) and isinstance(arguments, dict)):
        return None
    return Operation(kind, name, uri, cast("dict[str, Any]", arguments))
