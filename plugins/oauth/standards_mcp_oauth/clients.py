"""The host as a client of an authorization server: its credentials, and sign-ins with a browser.

A sign-in is an authorization code with PKCE (RFC 7636), with the check of the issuer (RFC 9207).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from pydantic import BaseModel, Field

from standards_mcp import ApiError

from .issuers import Endpoints, check_secure, fetch_object, readable

_HEADERS: Final = {"accept": "application/json"}


class Client(BaseModel):
    """The host as a client of an authorization server."""

    endpoints: Endpoints
    id: str
    secret: str = Field(default="", repr=False)


async def post_form(client: Client, url: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Post a form, with the credentials of the client. See `fetch_object` for the errors."""
    form, auth = dict(fields), None
    methods = client.endpoints.token_endpoint_auth_methods_supported
    if client.secret and "client_secret_basic" in methods:
        auth = quote(client.id, safe=""), quote(client.secret, safe="")
    else:
        form |= {"client_id": client.id} | (
            {"client_secret": client.secret} if client.secret else {}
        )
    return await fetch_object("POST", url, data=form, auth=auth, headers=_HEADERS)


def with_query(url: str, fields: Mapping[str, str]) -> str:
    """Return an address with more fields in its query."""
    return f"{url}{'&' if '?' in url else '?'}{urlencode(fields)}"


def authorization_url(
    client: Client, redirect: str, state: str, verifier: str, fields: Mapping[str, str]
) -> str:
    """Return the address at which the browser of a person begins to sign in.

    Args:
        redirect: The address to which the browser comes back.
        verifier: The secret of this sign-in; the address has its hash.
        fields: More fields, such as the scopes.

    Raises:
        ApiError: The authorization server has no secure page for it.
    """
    challenge = hashlib.sha256(verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
        "code_challenge_method": "S256",
        **fields,
    }
    endpoints = client.endpoints
    return with_query(check_secure(endpoints.authorization_endpoint, endpoints.issuer), query)


def check_answer(answer: Mapping[str, str], issuer: str, endpoints: Endpoints) -> None:
    """Refuse an answer with an error, or of another issuer than the one that got the browser.

    Args:
        answer: The query of the address to which the browser came back.
        issuer: The issuer at the beginning of the sign-in; empty if it was not known.

    Raises:
        ApiError: The person may not sign in, or another issuer sent the browser.
    """
    if error := answer.get("error"):
        why = f"{readable(error)}: {readable(answer.get('error_description'))}".rstrip(": ")
        raise ApiError(f"the authorization server refuses the sign-in ({why})")
    # Another authorization server could pass on the code of this one, or take its own here.
    is_named = endpoints.authorization_response_iss_parameter_supported
    named = answer.get("iss", "" if is_named else issuer)
    if issuer != endpoints.issuer or (issuer and named != issuer):
        raise ApiError(f"the answer is of another issuer, {readable(named)!r}; begin again")
