"""The sign-in of a user with a browser: authorization code with PKCE (RFC 7636)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from standards_mcp import ApiError

from .grants import Client, request_token, revoke
from .issuers import fetch_object, readable
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
    challenge = hashlib.sha256(attempt.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect,
        "state": sign_in.store.seal(_BEGUN + owner, attempt.model_dump()),
        "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
        "code_challenge_method": "S256",
        **sign_in.fields,
    }
    page = client.endpoints.authorization_endpoint
    return f"{page}{'&' if '?' in page else '?'}{urlencode(query)}", query["state"]


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
    if error := answer.get("error"):
        why = f"{readable(error)}: {readable(answer.get('error_description'))}".rstrip(": ")
        raise ApiError(f"the authorization server refuses the sign-in ({why})")
    # Another authorization server could pass on the code of this one, or take its own here.
    is_named = client.endpoints.authorization_response_iss_parameter_supported
    named = answer.get("iss", "" if is_named else attempt.issuer)
    if attempt.issuer != client.endpoints.issuer or (attempt.issuer and named != attempt.issuer):
        raise ApiError(f"the answer is of another issuer, {readable(named)!r}; begin again")
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
