"""Authorization: verify bearer tokens, and map their scopes to access rights.

A token is either made by ``auth token new`` and kept as a hash in the configuration, or a JSON Web
Token of an authorization server. People who have signed in with a browser have a cookie.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

from mcp.server.auth.middleware.bearer_auth import (
    AuthenticatedUser,
    AuthorizationContext,
    BearerAuthBackend,
    authorization_context,
)
from mcp.server.auth.provider import AccessToken
from pydantic import SecretStr
from starlette.authentication import AuthCredentials
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request

from standards_mcp.transports import (
    ADMIN,
    ALL,
    BUILT_IN,
    EVERYTHING,
    METRICS,
    Access,
    AuthSettings,
    Context,
    Principal,
    Scope,
    TokenSection,
)

from .jwt_tokens import JwtTokens
from .tokens import token_hash

if TYPE_CHECKING:
    from .people.pages import People

ANONYMOUS: Final = Principal("anonymous")
"""The caller if no authorization is configured."""
NOBODY: Final = Principal(ANONYMOUS.name, Access(names=()), frozenset())
"""The caller without a valid token, if authorization is configured."""
EXPIRED: Final = "expired"
"""A key in the state of a request; the value is the time at which its token expired."""

_OPERATOR_SCOPES: Final = frozenset({ADMIN, METRICS})


class TokenExpiredError(Exception):
    """A token was valid until the time in the message."""


class Person(AccessToken):
    """A person who has signed in with a browser.

    Attributes:
        display_name: Their name for pages.
        groups: Their groups of those that have scopes.
        session: The id of this sign-in.
        provider_session: What names the session at the provider, or "".
        signed_in: When the provider has signed them in, by its clock.
    """

    display_name: str
    groups: tuple[str, ...]
    session: str
    provider_session: str = ""
    signed_in: int = 0


class Credentials(BearerAuthBackend):
    """Read bearer tokens, tokens that a browser sends as the password of basic auth, and cookies.

    Args:
        people: Reads the cookies of people; None: they cannot sign in.
    """

    def __init__(self, tokens: Tokens, people: People | None) -> None:
        super().__init__(tokens)
        self._people = people

    async def authenticate(
        self, conn: HTTPConnection
    ) -> tuple[AuthCredentials, AuthenticatedUser] | None:
        """Return the caller of a request, or None without a valid token or cookie."""
        if "authorization" not in conn.headers:
            person = self._people.person_of(conn) if self._people else None
            return (AuthCredentials(), AuthenticatedUser(person)) if person else None
        scheme, _, value = conn.headers.get("authorization", "").partition(" ")
        if scheme.casefold() == "basic":
            headers = Headers({"authorization": f"Bearer {_password(value)}"})
            conn = HTTPConnection({**conn.scope, "headers": headers.raw})
        try:
            caller: tuple[AuthCredentials, AuthenticatedUser] | None
            caller = await super().authenticate(conn)
        except TokenExpiredError as exc:
            conn.scope["state"][EXPIRED] = str(exc)
            return None
        return caller


def person_of(request: Request) -> Person | None:
    """Return the person who has signed in with the browser that sends a request, or None."""
    user = request.scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    return token if isinstance(token, Person) else None


def token_name(request: Request) -> str:
    """Return the name of the token of the configuration that a request has, or ""."""
    user = request.scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    is_configured = token and token.claims is None and not isinstance(token, Person)
    return token.client_id if token and is_configured else ""


def _sent_token(request: Request) -> SecretStr:
    """Return the token of a request that has a valid one."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return SecretStr(_password(value) if scheme.casefold() == "basic" else value.strip())


def _password(value: str) -> str:
    """Return the password of basic authentication (RFC 7617), or "" if it cannot be read."""
    try:
        return base64.b64decode(value, validate=True).decode("ascii").partition(":")[2]
    except ValueError:
        return ""


class Tokens:
    """Verify the tokens of the configuration and of an authorization server.

    Args:
        settings: Returns the settings in force.
    """

    def __init__(self, settings: Callable[[], AuthSettings]) -> None:
        self._settings = settings
        keys = settings().jwt
        self._jwt_tokens = JwtTokens(keys.issuer, keys.audience, keys.jwks_url) if keys else None

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the owner of a token, or None if it is not valid.

        Raises:
            TokenExpiredError: A token of the configuration has expired.
        """
        if owner := self._configured_owner(token):
            return owner
        owner = await self._jwt_tokens.verify_token(token) if self._jwt_tokens else None
        if owner and not self._settings().scopes:
            # Only here can these tokens get `ALL`: a person who can define scopes at the issuer
            # must not be able to define that one.
            return owner.model_copy(update={"scopes": [ALL]})
        return owner

    def _configured_owner(self, token: str) -> AccessToken | None:
        digest, match = token_hash(token), None
        # Compare with all tokens, so that the time reveals nothing.
        for name, section in self._settings().tokens.items():
            if hmac.compare_digest(section.sha256, digest):
                match = name, section
        if match is None:
            return None
        name, section = match
        if section.is_expired:
            raise TokenExpiredError(section.expires)
        return _access_token(name, _identity(section), section.expires_at)


def _identity(section: TokenSection) -> str:
    """Return a text that changes with the token and with its expiry.

    Sessions and streams keep it as their subject, so a changed token or expiry ends them.
    """
    return f"{section.sha256} {section.expires or ''}"


@lru_cache(1_024)
def _access_token(name: str, subject: str, expires_at: int | None) -> AccessToken:
    return AccessToken(token="", client_id=name, scopes=[], subject=subject, expires_at=expires_at)


class Principals:
    """Find the caller of a request and its current rights.

    Args:
        settings: Returns the settings in force.
    """

    def __init__(self, settings: Callable[[], AuthSettings]) -> None:
        self._settings = settings

    def __call__(self, context: Context) -> Principal:
        """Return the caller of an MCP request that has passed the transport."""
        return self.of_request(cast("Request", context.request))

    def of_request(self, request: Request) -> Principal:
        """Return the caller of a request, with the rights of the current configuration."""
        settings, user = self._settings(), request.scope.get("user")
        if not isinstance(user, AuthenticatedUser):
            return NOBODY if settings.is_required else ANONYMOUS
        token = user.access_token
        if isinstance(token, Person) and settings.oidc:
            groups = settings.oidc.groups
            scopes = {scope for name in (*token.groups, "*") for scope in groups.get(name, ())}
            return _principal(user.username, scopes, settings)
        if token.claims is not None:  # a JSON Web Token, whose issuer decides its scopes
            # Signing in at the issuer must not make anyone an operator.
            caller = _principal(user.username, token.scopes, settings, _OPERATOR_SCOPES)
            return replace(caller, token=_sent_token(request))  # for other servers, to exchange it
        if is_revoked(settings, authorization_context(user)):
            return _principal(user.username, (), settings)
        return _principal(user.username, settings.tokens[token.client_id].scopes, settings)


def is_revoked(settings: AuthSettings, owner: AuthorizationContext | None) -> bool:
    """True if a token was revoked or replaced, or has expired, since it was accepted.

    Args:
        owner: The owner of the token at that time. None is a caller without a token, who counts as
            revoked if tokens are required now.
    """
    if owner is None:
        return settings.is_required
    if owner["issuer"] is not None:  # its issuer decides how long it is valid
        return False
    section = settings.tokens.get(owner["client_id"])
    return section is None or section.is_expired or _identity(section) != owner["subject"]


def _principal(
    name: str,
    scopes: Iterable[str],
    settings: AuthSettings,
    withheld: frozenset[str] = frozenset(),
) -> Principal:
    # An issuer may use any scope name, and the name of a plugin must not open its routes.
    held = frozenset(scopes) & {*settings.scopes, *(frozenset(BUILT_IN) - withheld)}
    access = access_of(held, settings)
    return Principal(name, access, None, withheld) if ALL in held else Principal(name, access, held)


def access_of(scopes: Iterable[str], settings: AuthSettings) -> Access:
    """Return the access of these scopes; unknown scopes add nothing."""
    held = frozenset(scopes)
    if ALL in held:
        return EVERYTHING
    names = sorted(held & settings.scopes.keys())
    return _combined_access(tuple(settings.scopes[name] for name in names))


@lru_cache(1_024)
def _combined_access(scopes: tuple[tuple[str, ...] | Scope, ...]) -> Access:
    """Return the combined access of sorted scopes, so that equal scopes give an equal access."""
    tables = [scope if isinstance(scope, Scope) else Scope(names=scope) for scope in scopes]
    # Globs add up and profiles narrow: a combination never gives more than its scopes together.
    names = dict.fromkeys(name for table in tables for name in table.names)
    profiles = dict.fromkeys(table.profile for table in tables if table.profile)
    return Access(names=tuple(names), profiles=tuple(profiles))
