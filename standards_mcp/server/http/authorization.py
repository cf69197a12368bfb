"""Who makes a request: bearer tokens of the configuration, and what their scopes let them use."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, cast

from mcp.server.auth.middleware.bearer_auth import (
    AuthenticatedUser,
    AuthorizationContext,
    BearerAuthBackend,
    authorization_context,
)
from mcp.server.auth.provider import AccessToken
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request

from standards_mcp._utils.secrets import token_hash
from standards_mcp.calls.context import Principal
from standards_mcp.config.models.http import (
    ADMIN,
    ALL,
    BUILT_IN,
    METRICS,
    AuthSettings,
    Scope,
    TokenSection,
)
from standards_mcp.contributions.visible.selection import EVERYTHING, Access
from standards_mcp.server.context import Context

from .jwt import JwtTokens

_OPERATORS: Final = frozenset({ADMIN, METRICS})
ANONYMOUS: Final = Principal("anonymous")
"""Everybody, where no authorization is configured."""
NOBODY: Final = Principal(ANONYMOUS.name, Access(names=()), frozenset())
EXPIRED: Final = "expired"
"""The key in the state of a request whose token has expired; its value says when."""


class TokenExpiredError(Exception):
    """A token was valid until the time in the message."""


class Credentials(BearerAuthBackend):
    """Takes tokens as those of a bearer, and from browsers, which ask for them, as passwords."""

    async def authenticate(
        self, conn: HTTPConnection
    ) -> tuple[AuthCredentials, AuthenticatedUser] | None:
        """Return who makes a request; None where no valid token says it."""
        scheme, _, given = conn.headers.get("authorization", "").partition(" ")
        if scheme.casefold() == "basic":
            headers = Headers({"authorization": f"Bearer {_password(given)}"})
            conn = HTTPConnection({**conn.scope, "headers": headers.raw})
        try:
            found: tuple[AuthCredentials, AuthenticatedUser] | None
            found = await super().authenticate(conn)
        except TokenExpiredError as exc:
            conn.scope["state"][EXPIRED] = str(exc)
            return None
        return found


def _password(given: str) -> str:
    """Return the password of basic authentication (RFC 7617); empty where it is none."""
    try:
        return base64.b64decode(given, validate=True).decode("ascii").partition(":")[2]
    except ValueError:
        return ""


class Tokens:
    """Verifies tokens: those of the configuration as it is now, and those of an issuer.

    Args:
        settings: Returns the settings in force.
    """

    def __init__(self, settings: Callable[[], AuthSettings]) -> None:
        self._settings = settings
        jwt = settings().jwt
        self._of_issuer = None
        if jwt.issuer and jwt.audience:
            self._of_issuer = JwtTokens(jwt.issuer, jwt.audience, jwt.jwks_url)

    def close(self) -> None:
        """Stop asking the issuer for its keys."""
        if self._of_issuer:
            self._of_issuer.close()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is, or None for one that is not valid.

        Raises:
            TokenExpiredError: It is a token of the configuration that has expired.
        """
        if found := self._own(token):
            return found
        found = await self._of_issuer.verify_token(token) if self._of_issuer else None
        if found and not self._settings().scopes:
            return found.model_copy(update={"scopes": [ALL]})
        return found

    def _own(self, token: str) -> AccessToken | None:
        given, found = token_hash(token), None
        # All are compared, so that the time tells nothing.
        for name, section in self._settings().tokens.items():
            if hmac.compare_digest(section.sha256, given):
                found = name, section
        if found is None:
            return None
        name, section = found
        if section.is_expired:
            raise TokenExpiredError(section.expires)
        return _accepted(name, _identity(section), section.expires_at)


def _identity(section: TokenSection) -> str:
    """Return a text that changes with the token and with its expiry.

    A session belongs to its client and subject, and a stream ends at the expiry that it began with.
    """
    return f"{section.sha256} {section.expires or ''}"


@lru_cache(1_024)
def _accepted(name: str, subject: str, expires_at: int | None) -> AccessToken:
    return AccessToken(token="", client_id=name, scopes=[], subject=subject, expires_at=expires_at)


class Principals:
    """Tells who makes a request, and what they may use by the settings of the moment.

    Args:
        settings: Returns the settings in force.
    """

    def __init__(self, settings: Callable[[], AuthSettings]) -> None:
        self._settings = settings

    def __call__(self, context: Context) -> Principal:
        """Return the principal of a request of MCP that the transport has let through."""
        return self.of_request(cast("Request", context.request))

    def of_request(self, request: Request) -> Principal:
        """Return the principal of a request; streams ask again and again, after reloads too."""
        settings, user = self._settings(), request.scope.get("user")
        if not isinstance(user, AuthenticatedUser):
            return NOBODY if settings.is_required else ANONYMOUS
        token = user.access_token
        if token.claims is not None:  # it is its issuer that says what its scopes are
            # Whoever can sign in there may use what is served, and is no operator by that.
            return _principal(user.username, token.scopes, settings, _OPERATORS)
        if is_revoked(settings, authorization_context(user)):
            return _principal(user.username, (), settings)
        return _principal(user.username, settings.tokens[token.client_id].scopes, settings)


def is_revoked(settings: AuthSettings, owner: AuthorizationContext | None) -> bool:
    """Tell whether a token has been revoked or replaced, or has expired, since it was accepted.

    Args:
        owner: Who it was accepted as; None for nobody, which may be forbidden since.
    """
    if owner is None:
        return settings.is_required
    if owner["issuer"] is not None:  # it is its issuer that says how long it counts
        return False
    section = settings.tokens.get(owner["client_id"])
    return section is None or section.is_expired or _identity(section) != owner["subject"]


def _principal(
    name: str,
    scopes: Iterable[str],
    settings: AuthSettings,
    withheld: frozenset[str] = frozenset(),
) -> Principal:
    # Those of an issuer may have any name, also that of a plugin, whose routes they would open.
    held = frozenset(scopes) & {*settings.scopes, *(frozenset(BUILT_IN) - withheld)}
    access = access_of(held, settings)
    return Principal(name, access, None, withheld) if ALL in held else Principal(name, access, held)


def access_of(scopes: Iterable[str], settings: AuthSettings) -> Access:
    """Return what the holder of these scopes may use; scopes that are not known give nothing."""
    held = frozenset(scopes)
    if ALL in held:
        return EVERYTHING
    return _joined(tuple(settings.scopes[name] for name in sorted(held & settings.scopes.keys())))


@lru_cache(1_024)
def _joined(scopes: tuple[tuple[str, ...] | Scope, ...]) -> Access:
    """Return an access of equal value for equal scopes, since selections are kept by access."""
    tables = [each if isinstance(each, Scope) else Scope(names=each) for each in scopes]
    names = dict.fromkeys(name for each in tables for name in each.names)
    profiles = dict.fromkeys(each.profile for each in tables if each.profile)
    return Access(names=tuple(names), profiles=tuple(profiles))
