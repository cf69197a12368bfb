"""Authorization: verify bearer tokens, and map their scopes to access rights.

A token is either made by ``auth token new`` and kept as a hash in the configuration, or a JSON Web
Token of an authorization server (RFC 7519). Of the latter, the signature, issuer, audience and
times are checked.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, cast

import httpx2
import jwt
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
    JwtSettings,
    Principal,
    Scope,
    TokenSection,
)

from .tokens import token_hash

log = logging.getLogger("standards_mcp.service")

ANONYMOUS: Final = Principal("anonymous")
"""The caller if no authorization is configured."""
NOBODY: Final = Principal(ANONYMOUS.name, Access(names=()), frozenset())
"""The caller without a valid token, if authorization is configured."""
EXPIRED: Final = "expired"
"""A key in the state of a request; the value is the time at which its token expired."""

_OPERATOR_SCOPES: Final = frozenset({ADMIN, METRICS})
_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""The accepted signature algorithms.

A symmetric algorithm must not be added: the public key of the server would then be the secret.
"""
_FRESH_SECONDS: Final = 600.0
_IDLE_SECONDS: Final = 1200.0
_RETRY_SECONDS: Final = 10.0
_FETCH_SECONDS: Final = 5.0
_LEEWAY_SECONDS: Final = 30
_MAX_TOKEN_CHARS: Final = 16_384


class TokenExpiredError(Exception):
    """A token was valid until the time in the message."""


class Credentials(BearerAuthBackend):
    """Read bearer tokens, and tokens that a browser sends as the password of basic auth."""

    async def authenticate(
        self, conn: HTTPConnection
    ) -> tuple[AuthCredentials, AuthenticatedUser] | None:
        """Return the caller of a request, or None without a valid token."""
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
        jwt_settings = settings().jwt
        self._jwt_tokens = JwtTokens(jwt_settings) if jwt_settings.issuer else None

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


class JwtTokens:
    """Verify the JSON Web Tokens of an authorization server.

    The public keys of the server are cached, and stay in use during an outage.
    """

    def __init__(self, settings: JwtSettings) -> None:
        self._issuer, self._audience = str(settings.issuer), settings.audience
        self._url = settings.jwks_url
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._must_wait = True

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the owner of a token, or None if it is not valid."""
        try:
            claims = await self._claims(token)
        except (jwt.InvalidTokenError, ValueError) as exc:
            log.info("a token is refused", extra={"reason": type(exc).__name__})
            return None
        subject = str(claims["sub"])
        return AccessToken(
            token="",
            # Names of tokens in the configuration have no colon.
            client_id=f"{self._issuer}:{subject}",
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]) + _LEEWAY_SECONDS,
            subject=subject,
            claims={"iss": claims["iss"]},
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        if len(token) > _MAX_TOKEN_CHARS:
            raise jwt.InvalidTokenError
        key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=[key.algorithm_name],
            audience=self._audience,
            issuer=self._issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        return claims

    async def _key(self, kid: str) -> jwt.PyJWK:
        """Return the key with this id, without a wait if it is in the cache.

        Raises:
            jwt.InvalidTokenError: The server has no such key.
        """
        self._refresh(kid)
        # Any client can name an unknown key and so cause a fetch, so tokens with known keys do not
        # wait.
        if self._fetching and (self._must_wait or kid not in self._keys):
            await asyncio.wait([self._fetching])
        if kid not in self._keys:
            raise jwt.InvalidTokenError("unknown key")
        return self._keys[kid]

    def _refresh(self, kid: str) -> None:
        now = time.monotonic()
        is_needed = kid not in self._keys or now - self._fetched_at > _FRESH_SECONDS
        # Tokens with invented key ids must not cause a request to the issuer each time.
        if self._fetching or not is_needed or now - self._tried_at <= _RETRY_SECONDS:
            return
        # After an idle time, wait for the keys: one of them may have been withdrawn meanwhile.
        self._must_wait = now - self._tried_at > _IDLE_SECONDS
        self._tried_at = now
        self._fetching = asyncio.create_task(self._try_to_fetch())

    async def _try_to_fetch(self) -> None:
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                self._keys = await self._fetch_keys()
            self._fetched_at = time.monotonic()
        except Exception as exc:  # noqa: BLE001  - any failure of the network or of the server
            fields = {"issuer": self._issuer, "reason": f"{type(exc).__name__}: {exc}"}
            log.warning("the keys of the authorization server cannot be read", extra=fields)
        finally:
            self._fetching = None

    async def _fetch_keys(self) -> dict[str, jwt.PyJWK]:
        async with httpx2.AsyncClient(timeout=_FETCH_SECONDS) as client:
            if self._url is None:
                issuer = self._issuer.rstrip("/")
                openid = await _fetch_object(client, f"{issuer}/.well-known/openid-configuration")
                self._url = str(openid["jwks_uri"])
            keys = (await _fetch_object(client, self._url))["keys"]
        usable = {
            str(jwk.get("kid") or ""): key
            for jwk in cast("list[dict[str, Any]]", keys)
            if (key := _usable_key(jwk))
        }
        if not usable:
            raise LookupError("the server has no usable key")
        return usable


def _usable_key(jwk: dict[str, Any]) -> jwt.PyJWK | None:
    """Return a key, or None if it is not valid or its algorithm is not accepted."""
    if jwk.get("alg") not in (None, *_ALGORITHMS):
        return None
    try:
        key = jwt.PyJWK(jwk)
    except jwt.PyJWTError:
        return None
    return key if key.algorithm_name in _ALGORITHMS else None


async def _fetch_object(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    answer = await client.get(url, headers={"accept": "application/json"})
    answer.raise_for_status()
    body: object = answer.json()
    if not isinstance(body, dict):
        raise TypeError(f"{url} does not return a JSON object")
    return cast("dict[str, Any]", body)


def _scopes(claims: dict[str, Any]) -> list[str]:
    """Return the scopes of a token: a text with spaces, or a list as some servers write them."""
    claim: object = claims.get("scope", claims.get("scp", ""))
    parts = claim.split() if isinstance(claim, str) else claim
    scopes = cast("list[object]", parts) if isinstance(parts, list) else []
    # Only tokens of the configuration may have the scope for everything.
    return [scope for scope in scopes if isinstance(scope, str) and scope != ALL]
