"""The OpenID provider at which people sign in: authorization code with PKCE, then an ID token."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from secrets import token_urlsafe
from typing import Any, Final, cast

import jwt

from standards_mcp import ApiError
from standards_mcp.transports import OidcSettings
from standards_mcp_oauth.clients import (
    Client,
    authorization_url,
    check_answer,
    post_form,
    with_query,
)
from standards_mcp_oauth.issuers import (
    WELL_KNOWN,
    Endpoints,
    UnreachableError,
    check_secure,
    fetch_object,
    read_metadata,
    readable,
    split_url,
)
from standards_mcp_service.authorization import Person
from standards_mcp_service.jwt_tokens import JwtTokens, NoKeysError

from .cookies import Attempt, ending_key

SIGNED_IN: Final = "/signed-in"
SIGNED_OUT: Final = "/signed-out"
_METADATA_SECONDS: Final = 3600.0
_RETRY_SECONDS: Final = 5.0
_MAX_SUBJECT_CHARS: Final = 255
_LOGOUT_CLAIMS: Final = ("iss", "aud", "iat", "exp", "jti", "events")
_LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"


class Provider:
    """Sign in people at the configured provider."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._public = settings.public_url.rstrip("/")
        self._tokens = JwtTokens(settings.issuer, settings.client_id)
        self._lock = asyncio.Lock()
        self._metadata: Endpoints | ApiError = ApiError("it was not asked yet")
        self._valid_until = 0.0

    async def begin(self, attempt: Attempt) -> str:
        """Return the address at which a browser begins to sign in.

        Raises:
            ApiError: The provider cannot be used now.
        """
        scopes = dict.fromkeys(("openid", *self._settings.scopes))
        fields = {"scope": " ".join(scopes), "nonce": attempt.nonce}
        client, redirect = await self._client(), self._public + SIGNED_IN
        return authorization_url(client, redirect, attempt.state, attempt.verifier, fields)

    async def finish(self, attempt: Attempt, answer: Mapping[str, str]) -> Person:
        """Return the person who has signed in.

        Args:
            attempt: The sign-in that this browser has begun.
            answer: The query with which it came back.

        Raises:
            ApiError: The provider refuses, cannot be reached, or its answer is not valid.
        """
        client = await self._client()
        check_answer(answer, attempt.issuer, client.endpoints)
        fields = {
            "grant_type": "authorization_code",
            "code": answer.get("code", ""),
            "redirect_uri": self._public + SIGNED_IN,
            "code_verifier": attempt.verifier,
        }
        tokens = await post_form(client, client.endpoints.token_endpoint, fields)
        claims = await self._claims(tokens.get("id_token"), attempt.nonce)
        if self._settings.groups_claim not in claims:
            claims |= await self._user_info(client.endpoints, tokens, str(claims["sub"]))
        return self._person(claims)

    async def read_logout(self, logout_token: str) -> tuple[str, int]:
        """Return whose sign-ins the provider has ended, and up to which time.

        That is one of its sessions, or all of a person (OpenID Connect Back-Channel Logout 1.0,
        section 2.6). The ids of tokens are not kept: a token that comes again ends nothing more,
        since later sign-ins stay.

        Returns:
            The key of the session or the person, see `ending_key`, and the time in seconds since
            1970, by the clock of the provider.

        Raises:
            UnreachableError: The provider's keys cannot be read.
            ApiError: The token is not a valid logout token.
        """
        claims = await self._verified(logout_token, "logout token", _LOGOUT_CLAIMS)
        events: object = claims["events"]
        # Other tokens of the provider, such as ID tokens, must not count.
        if "nonce" in claims or not isinstance(events, dict) or _LOGOUT_EVENT not in events:
            raise ApiError("this is not a logout token")
        for kind in ("sid", "sub"):
            if isinstance(name := claims.get(kind), str) and name:
                return ending_key(kind, name), int(claims["iat"])
        raise ApiError("its logout token names no session and no person")

    async def end_session_url(self) -> str:
        """Return the address at which a person signs out at the provider, or ""."""
        try:
            endpoint = (await self._client()).endpoints.end_session_endpoint
            check_secure(endpoint, self._settings.issuer)
        except ApiError:
            return ""
        after = {"client_id": self._settings.client_id}
        return with_query(endpoint, after | {"post_logout_redirect_uri": self._public + SIGNED_OUT})

    async def _client(self) -> Client:
        secret = self._settings.client_secret
        return Client(
            endpoints=await self._endpoints(),
            id=self._settings.client_id,
            secret=secret.get_secret_value() if secret else "",
        )

    async def _endpoints(self) -> Endpoints:
        """Return the metadata of the provider; a failure counts for a few seconds, too."""
        async with self._lock:
            if time.monotonic() > self._valid_until:
                issuer, seconds = self._settings.issuer, _METADATA_SECONDS
                place = f"{split_url(issuer)[1]}{WELL_KNOWN}openid-configuration"
                try:
                    self._metadata = await read_metadata(
                        issuer, (place,), needs_pkce=self._settings.client_secret is None
                    )
                except ApiError as exc:
                    self._metadata, seconds = exc, _RETRY_SECONDS
                self._valid_until = time.monotonic() + seconds
        if not isinstance(self._metadata, Endpoints):
            raise self._metadata.with_traceback(None)
        return self._metadata

    async def _claims(self, id_token: object, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token that was made for this sign-in.

        Raises:
            UnreachableError: The provider's keys cannot be read.
            ApiError: The token is not valid, or of another sign-in.
        """
        required = ("exp", "iss", "aud", "iat", "sub")
        claims = await self._verified(str(id_token or ""), "ID token", required)
        if claims.get("nonce") != nonce:
            raise ApiError("its ID token is of another sign-in")
        # An ID token for several clients names the one that asked for it.
        party = claims.get("azp", self._settings.client_id if _is_for_one(claims) else "")
        if party != self._settings.client_id:
            raise ApiError("its ID token is for another client")
        return claims

    async def _verified(self, token: str, kind: str, required: Sequence[str]) -> dict[str, Any]:
        """Return the claims of a token of the provider for this client.

        Args:
            kind: The name of such tokens, for errors.
        """
        try:
            return await self._tokens.claims(token, required)
        except NoKeysError:
            raise UnreachableError("its keys cannot be read now; try again later") from None
        except (jwt.InvalidTokenError, ValueError, OverflowError) as exc:
            raise ApiError(f"its {kind} is not valid ({type(exc).__name__})") from None

    async def _user_info(
        self, endpoints: Endpoints, tokens: Mapping[str, Any], subject: str
    ) -> dict[str, Any]:
        """Return what the provider says of a person apart from the ID token."""
        if not endpoints.userinfo_endpoint:
            return {}
        url = check_secure(endpoints.userinfo_endpoint, self._settings.issuer)
        headers = {"authorization": f"Bearer {tokens.get('access_token', '')}"}
        claims = await fetch_object("GET", url, headers=headers)
        if claims.get("sub") != subject:
            raise ApiError("its user info is of another person")
        of_token = ("iss", "aud", "sub", "iat", "sid")
        return {name: claims[name] for name in claims if name not in of_token}

    def _person(self, claims: Mapping[str, Any]) -> Person:
        subject = str(claims["sub"])
        if not (0 < len(subject) <= _MAX_SUBJECT_CHARS and subject.isprintable()):
            raise ApiError("its ID token has no valid subject")
        names = (claims.get(claim) for claim in ("name", "preferred_username", "email"))
        claimed: object = claims.get(self._settings.groups_claim, [])
        groups = cast("list[object]", claimed if isinstance(claimed, list) else [claimed])
        return Person(
            token="",
            # As the name of the caller with a JSON Web Token of this person.
            client_id=f"{self._settings.issuer}:{subject}",
            scopes=[],
            subject=subject,
            expires_at=int(time.time() + self._settings.lifetime),
            display_name=readable(next(filter(None, names), subject)),
            groups=tuple(name for name in self._settings.groups if name != "*" and name in groups),
            session=token_urlsafe(24),
            provider_session=ending_key("sid", str(claims["sid"])) if claims.get("sid") else "",
            signed_in=int(claims["iat"]),
        )


def _is_for_one(claims: Mapping[str, Any]) -> bool:
    audience: object = claims.get("aud")
    return not isinstance(audience, list) or len(cast("list[object]", audience)) == 1
