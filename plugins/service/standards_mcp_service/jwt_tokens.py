"""Verify JSON Web Tokens (RFC 7519): their signature, issuer, audience and times."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any, Final, cast

import jwt
from mcp.server.auth.provider import AccessToken

from standards_mcp import is_unencrypted
from standards_mcp.transports import ALL
from standards_mcp_oauth.issuers import check_secure, request_object

log = logging.getLogger("standards_mcp.service")

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


class NoKeysError(jwt.InvalidTokenError):
    """The key of a token is not in the cache, and the server's keys cannot be read now."""


class JwtTokens:
    """Verify the JSON Web Tokens of an authorization server.

    The public keys of the server are cached, and stay in use during an outage.

    Args:
        url: The address of the keys; None: the OpenID configuration of the issuer has it.
    """

    def __init__(self, issuer: str, audience: str, url: str | None = None) -> None:
        self._issuer, self._audience, self._url = issuer, audience, url
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._must_wait = True
        self._has_failed = False

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the owner of a token, or None if it is not valid."""
        try:
            claims = await self.claims(token)
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

    async def claims(
        self, token: str, required: Sequence[str] = ("exp", "iss", "aud", "sub")
    ) -> dict[str, Any]:
        """Return the claims of a valid token.

        Args:
            required: The claims that it must have.

        Raises:
            NoKeysError: The keys of the server cannot be read now.
            jwt.InvalidTokenError: The token is not valid.
            ValueError: A claim has no valid form.
        """
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
            options={"require": [*required]},
        )
        return claims

    async def _key(self, kid: str) -> jwt.PyJWK:
        """Return the key with this id, without a wait if it is in the cache.

        Raises:
            NoKeysError: The last attempt to read the keys has failed.
            jwt.InvalidTokenError: The server has no such key.
        """
        self._refresh(kid)
        # Any client can name an unknown key and so cause a fetch, so tokens with known keys do not
        # wait.
        if self._fetching and (self._must_wait or kid not in self._keys):
            await asyncio.wait([self._fetching])
        if kid not in self._keys and self._has_failed:
            raise NoKeysError
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
            self._fetched_at, self._has_failed = time.monotonic(), False
        except Exception as exc:  # noqa: BLE001  - any failure of the network or of the server
            self._has_failed = True
            fields = {"issuer": self._issuer, "reason": f"{type(exc).__name__}: {exc}"}
            log.warning("the keys of the authorization server cannot be read", extra=fields)
        finally:
            self._fetching = None

    async def _fetch_keys(self) -> dict[str, jwt.PyJWK]:
        if self._url is None:
            issuer = self._issuer.rstrip("/")
            openid = await _fetch_object(f"{issuer}/.well-known/openid-configuration")
            url = str(openid["jwks_uri"])
            # Whoever changes the keys on their way can sign tokens.
            self._url = url if is_unencrypted(issuer) else check_secure(url, issuer)
        keys = (await _fetch_object(self._url))["keys"]
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


async def _fetch_object(url: str) -> dict[str, Any]:
    if answer := await request_object("GET", url, headers={"accept": "application/json"}):
        return answer
    raise LookupError(f"there is nothing at {url}")


def _scopes(claims: dict[str, Any]) -> list[str]:
    """Return the scopes of a token: a text with spaces, or a list as some servers write them."""
    claim: object = claims.get("scope", claims.get("scp", ""))
    parts = claim.split() if isinstance(claim, str) else claim
    scopes = cast("list[object]", parts) if isinstance(parts, list) else []
    # Only tokens of the configuration may have the scope for everything.
    return [scope for scope in scopes if isinstance(scope, str) and scope != ALL]
