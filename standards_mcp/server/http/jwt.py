"""Tokens of an authorization server: JSON Web Tokens, and the keys that sign them.

The checks are those of RFC 7519 and RFC 9068: signature, issuer, audience and times.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx2
import jwt
from mcp.server.auth.provider import AccessToken

from standards_mcp.config.models.http import ALL

log = logging.getLogger(__name__)

_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The algorithms of each kind of key.

Never a symmetric one: the public key of the server would then be the secret.
"""
_FRESH_SECONDS: Final = 600.0
_IDLE_SECONDS: Final = 1200.0
_RETRY_SECONDS: Final = 10.0
_FETCH_SECONDS: Final = 5.0
_LEEWAY_SECONDS: Final = 30
_LONGEST: Final = 16_384


class JwtTokens:
    """Verifies the tokens of an authorization server.

    Args:
        issuer: Its address, as in the claim ``iss``.
        audience: The address of this service, as in the claim ``aud``.
        jwks_url: The address of its keys; by default its OpenID configuration has it.
    """

    def __init__(self, issuer: str, audience: str, jwks_url: str | None) -> None:
        self._issuer, self._audience = issuer, audience
        self._keys = _Keys(issuer, jwks_url)

    def close(self) -> None:
        """Stop asking the authorization server."""
        self._keys.close()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is, or None for one that is not valid."""
        try:
            claims = await self._claims(token)
        except (jwt.InvalidTokenError, ValueError) as exc:
            log.info("a token is refused", extra={"reason": type(exc).__name__})
            return None
        subject = str(claims["sub"])
        return AccessToken(
            token="",
            # No name of a token of the configuration has a colon.
            client_id=f"{self._issuer}:{subject}",
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]) + _LEEWAY_SECONDS,
            subject=subject,
            claims={"iss": claims["iss"]},
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        if len(token) > _LONGEST:
            raise jwt.InvalidTokenError
        header = jwt.get_unverified_header(token)
        key = await self._keys.find(str(header.get("kid", "")))
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            algorithms=key.algorithms,
            audience=self._audience,
            issuer=self._issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
        return claims


@dataclass(frozen=True, slots=True)
class _Key:
    """A public key, and the algorithms with which it may have signed."""

    key: Any
    algorithms: Sequence[str]


class _Keys:
    """The public keys of an authorization server; the last known ones while it is not reached."""

    def __init__(self, issuer: str, url: str | None) -> None:
        self._issuer, self._url = issuer, url
        self._keys: dict[str, _Key] = {}
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._is_awaited = True

    async def find(self, kid: str) -> _Key:
        """Return the key with this id; one that is known is not waited for.

        Raises:
            jwt.InvalidTokenError: There is none.
        """
        self._refresh(kid)
        if self._fetching and (self._is_awaited or kid not in self._keys):
            await asyncio.wait([self._fetching])
        if kid not in self._keys:
            raise jwt.InvalidTokenError("unknown key")
        return self._keys[kid]

    def close(self) -> None:
        """Give up asking."""
        if self._fetching:
            self._fetching.cancel()

    def _refresh(self, kid: str) -> None:
        now = time.monotonic()
        is_needed = kid not in self._keys or now - self._fetched > _FRESH_SECONDS
        # Tokens with ids of their own must not make this a client that never rests.
        if self._fetching or not is_needed or now - self._tried <= _RETRY_SECONDS:
            return
        # After a rest, a key that was withdrawn meanwhile must not open the service once more.
        self._is_awaited = now - self._tried > _IDLE_SECONDS
        self._tried = now
        self._fetching = asyncio.create_task(self._try_to_fetch())

    async def _try_to_fetch(self) -> None:
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                self._keys = await self._fetched_keys()
            self._fetched = time.monotonic()
        except Exception as exc:  # noqa: BLE001  - whatever the network and the server do
            fields = {"issuer": self._issuer, "reason": f"{type(exc).__name__}: {exc}"}
            log.warning("the keys of the authorization server cannot be read", extra=fields)
        finally:
            self._fetching = None

    async def _fetched_keys(self) -> dict[str, _Key]:
        async with httpx2.AsyncClient(timeout=_FETCH_SECONDS) as client:
            if self._url is None:
                issuer = self._issuer.rstrip("/")
                found = await _object(client, f"{issuer}/.well-known/openid-configuration")
                self._url = str(found["jwks_uri"])
            keys = (await _object(client, self._url))["keys"]
        usable = {
            str(each.get("kid") or ""): key
            for each in cast("list[dict[str, Any]]", keys)
            if (key := _usable(each))
        }
        if not usable:
            raise LookupError("it has no key that can be used")
        return usable


def _usable(jwk: dict[str, Any]) -> _Key | None:
    """Return a key for the algorithm that it names; of RSA, without a name, for any of its kind."""
    family, named = _FAMILIES.get(str(jwk.get("kty")), ()), jwk.get("alg")
    if named is not None and named not in family:
        return None
    try:
        found = jwt.PyJWK(jwk)
    except jwt.PyJWTError:
        return None
    is_any = named is None and jwk["kty"] == "RSA"
    # Each curve has one algorithm.
    algorithms = tuple(each for each in family if is_any or each == found.algorithm_name)
    return _Key(found.key, algorithms) if algorithms else None


async def _object(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    answer = await client.get(url, headers={"accept": "application/json"})
    answer.raise_for_status()
    found: object = answer.json()
    if not isinstance(found, dict):
        raise TypeError(f"{url} holds no object")
    return cast("dict[str, Any]", found)


def _scopes(claims: dict[str, Any]) -> list[str]:
    """Return the scopes of a token: a text with spaces, or a list as some servers write them."""
    found: object = claims.get("scope", claims.get("scp", ""))
    parts = found.split() if isinstance(found, str) else found
    scopes = cast("list[object]", parts) if isinstance(parts, list) else []
    # What stands for everything is for tokens of the configuration only.
    return [each for each in scopes if isinstance(each, str) and each != ALL]
