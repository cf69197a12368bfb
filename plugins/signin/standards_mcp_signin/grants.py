"""Access tokens, and the requests for them at a token endpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pydantic import BaseModel, Field

from standards_mcp import ApiError
from standards_mcp_oauth.clients import Client, post_form
from standards_mcp_oauth.issuers import readable

_MARGIN_SECONDS: Final = 30.0


class Token(BaseModel):
    """An access token, with all that is needed to refresh it at its own issuer.

    Attributes:
        refresh: The refresh token, or an empty string.
        expires: Seconds since 1970; None if the issuer does not say.
        scopes: The granted scopes, separated by spaces.
        client: The client that got it.
    """

    access: str = Field(repr=False)
    refresh: str = Field(default="", repr=False)
    expires: float | None = None
    scopes: str = ""
    client: Client

    def is_valid(self, margin: float = _MARGIN_SECONDS) -> bool:
        """Return True if the token is valid for *margin* more seconds."""
        return self.expires is None or self.expires - margin > time.time()


async def request_token(client: Client, fields: Mapping[str, str], scopes: str = "") -> Token:
    """Request a token from the client's issuer.

    Args:
        fields: The fields of the grant.
        scopes: The scopes of the token if the answer does not name them.

    Raises:
        ApiError: The issuer cannot be reached, refuses, or sends no token. See `fetch_object`.
    """
    began = time.time()
    answer = await post_form(client, client.endpoints.token_endpoint, fields)
    access, kind = answer.get("access_token"), readable(answer.get("token_type"))
    if not isinstance(access, str) or not access.isascii() or not access.isprintable():
        raise ApiError("the authorization server sends no access token")
    if kind.casefold() != "bearer":
        raise ApiError(f"the authorization server sends a token of the type {kind!r}")
    seconds, refresh = answer.get("expires_in"), answer.get("refresh_token")
    return Token(
        access=access,
        # Without rotation, the old refresh token stays in use.
        refresh=refresh if isinstance(refresh, str) else fields.get("refresh_token", ""),
        expires=began + seconds if isinstance(seconds, int | float) else None,
        scopes=readable(answer.get("scope")) or fields.get("scope", scopes),
        client=client,
    )


async def revoke(token: Token) -> None:
    """Revoke a token at its issuer (RFC 7009), if that is possible."""
    if url := token.client.endpoints.revocation_endpoint:
        with suppress(ApiError):  # the answer is empty
            await post_form(token.client, url, {"token": token.refresh or token.access})
