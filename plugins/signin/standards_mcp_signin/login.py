"""The sign-in of a user with a browser: authorization code with PKCE (RFC 7636)."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from standards_mcp import ApiError
from standards_mcp_oauth.clients import Client, authorization_url, check_answer
from standards_mcp_oauth.issuers import fetch_object

from .grants import request_token, revoke
from .store import UnreadableError

if TYPE_CHECKING:
    from .sign_in import OAuth

SECONDS: Final = 600
"""A user may take this long to sign in."""
_BEGUN: Final = "begun "


class _Attempt(BaseModel):
    """A begun sign-in; sealed, it is the ``state`` that the browser brings back.

    Attributes:
        verifier: The secret whose hash the authorization server knows.
        issuer: The authorization server that got the user.
        client: The id and the secret of a client that was registered for this sign-in.
    """

    verifier: str = Field(default_factory=lambda: token_urlsafe(32), repr=False)
    issuer: str
    client: tuple[str, str] | None = Field(default=None, repr=False)


async def begin(sign_in: OAuth, owner: str, redirect: str) -> tuple[str, str]:
    """Begin a sign-in; return the address for the user's browser, and the state in it.

    Args:
        redirect: The address to which the browser comes back.

    Raises:
        ApiError: The authorization server cannot be used.
        OSError: The state folder cannot be used.
    """
    client = await sign_in.client()
    attempt = _Attempt(issuer=client.endpoints.issuer)
    if not client.id:
        client = await _register(client, redirect, sign_in.fields.get("scope", ""))
        attempt.client = client.id, client.secret
    state = sign_in.store.seal(_BEGUN + owner, attempt.model_dump())
    return authorization_url(client, redirect, state, attempt.verifier, sign_in.fields), state


async def _register(client: Client, redirect: str, scope: str) -> Client:
    """Register a client for one sign-in (RFC 7591)."""
    if not client.endpoints.registration_endpoint:
        raise ApiError("the authorization server registers no clients; set client_id")
    body = {
        "client_name": "standards-mcp",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        **({"scope": scope} if scope else {}),
    }
    answer = await fetch_object("POST", client.endpoints.registration_endpoint, json=body)
    name, secret = answer.get("client_id"), answer.get("client_secret")
    if not isinstance(name, str):
        raise ApiError("the authorization server registered no client; set client_id")
    # Some servers send a secret even to a client that is registered without one.
    is_public = answer.get("token_endpoint_auth_method") == "none"
    secret = secret if isinstance(secret, str) and not is_public else ""
    return client.model_copy(update={"id": name, "secret": secret})


async def finish(sign_in: OAuth, owner: str, redirect: str, answer: Mapping[str, str]) -> None:
    """Exchange the code in the browser's answer for tokens, and store them.

    Args:
        answer: The query of the address to which the browser came back.

    Raises:
        ApiError: The answer is not of a sign-in of this user, or the issuer refused.
        OSError: The tokens cannot be stored.
    """
    try:
        sealed = sign_in.store.unseal(_BEGUN + owner, answer.get("state", ""), SECONDS)
    except UnreadableError:
        raise ApiError("this sign-in is not known, or took too long; begin again") from None
    attempt, client = _Attempt.model_validate(sealed), await sign_in.client()
    check_answer(answer, attempt.issuer, client.endpoints)
    if attempt.client:
        name, secret = attempt.client
        client = client.model_copy(update={"id": name, "secret": secret})
    fields = {
        "grant_type": "authorization_code",
        "code": answer.get("code", ""),
        "redirect_uri": redirect,
        "code_verifier": attempt.verifier,
        "resource": sign_in.fields["resource"],
    }
    token = await request_token(client, fields, sign_in.fields.get("scope", ""))
    async with sign_in.store.locked(owner):
        sign_in.store.write(owner, token)


async def sign_out(sign_in: OAuth, owner: str) -> None:
    """Delete the tokens of a user, and revoke them if possible.

    Raises:
        OSError: They cannot be deleted.
    """
    async with sign_in.store.locked(owner):
        try:
            token = sign_in.store.read(owner)
        except UnreadableError:
            token = None
        sign_in.store.delete(owner)
    if token:
        client = sign_in.with_secret(token.client)
        await revoke(token.model_copy(update={"client": client}))
