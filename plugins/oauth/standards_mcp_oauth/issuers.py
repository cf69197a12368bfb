"""Requests to authorization servers, and their metadata (RFC 8414).

Each request has an HTTP client of its own, so that it carries no cookies. No redirect is followed,
because it could lead a secret to another server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import urlsplit

import anyio
import httpx2
from pydantic import BaseModel, ValidationError

from standards_mcp import ApiError, is_unencrypted, may_use_proxy
from standards_mcp.commands import printable

_TIMEOUT: Final = 10.0
_DEADLINE: Final = 20.0
_MAX_BYTES: Final = 1 << 18
WELL_KNOWN: Final = "/.well-known/"


class UnreachableError(ApiError):
    """The authorization server does not answer, or only with an error of its own."""


class RefusedError(ApiError):
    """The authorization server refuses the request.

    Attributes:
        code: The error code of OAuth, such as ``invalid_grant``.
    """

    def __init__(self, where: str, code: str, description: str) -> None:
        said = f"{code}: {description}" if description else code
        super().__init__(f"the authorization server {where} refuses it ({said})")
        self.code = code


def readable(value: object) -> str:
    """Return the beginning of a foreign text without control characters."""
    return printable(str(value or ""))[:200]


def check_secure(url: str, named_by: str = "http:") -> str:
    """Return an address to which secrets may be sent.

    Args:
        named_by: The address of the server that names *url*.

    Raises:
        ApiError: It is neither an https address, nor an address of this machine that is configured
            or named by a server of this machine.
    """
    try:
        parts = urlsplit(url)
        schemes = {"https"} if named_by.startswith("https:") else {"https", "http"}
        if parts.scheme in schemes and parts.hostname and not is_unencrypted(url):
            return url
    except ValueError:
        pass
    raise ApiError(f"{readable(url)!r} is not an https address, so no secret is sent there")


async def fetch_object(method: str, url: str, **content: Any) -> dict[str, Any]:
    """Return the JSON object at an address; an empty one if there is nothing (404).

    Args:
        content: The ``data``, ``json``, ``auth`` and ``headers`` of the request.

    Raises:
        UnreachableError: There is no answer in time, or an error of the server.
        RefusedError: The server refuses the request.
        ApiError: The address is not secure, or the answer is a redirect, too long or not an object.
    """
    return await request_object(method, check_secure(url), **content)


async def request_object(method: str, url: str, **content: Any) -> dict[str, Any]:
    """Do as `fetch_object`, also at an address that is not secure.

    For public content only, such as the keys of an issuer that is configured so.
    """
    where, body = urlsplit(url).netloc, b""
    # Neither asked for nor unpacked: a compressed answer may become a million times as long.
    plain, trusts_proxy = {"accept-encoding": "identity"}, may_use_proxy(url)
    try:
        with anyio.fail_after(_DEADLINE):
            async with (
                httpx2.AsyncClient(
                    headers=plain, timeout=_TIMEOUT, trust_env=trusts_proxy
                ) as client,
                client.stream(method, url, follow_redirects=False, **content) as response,
            ):
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > _MAX_BYTES:
                        raise ApiError(f"the answer of {where} is too long")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:  # includes TimeoutError
        reason = f"the authorization server {where} cannot be reached ({type(exc).__name__})"
        raise UnreachableError(reason) from None
    return _object_of(where, response.status_code, body)


def _object_of(where: str, status: int, body: bytes) -> dict[str, Any]:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise UnreachableError(f"the authorization server {where} answers with HTTP {status}")
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    answer = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if status == HTTPStatus.NOT_FOUND:
        return {}
    if status >= HTTPStatus.BAD_REQUEST:
        code = readable(answer.get("error")) or f"HTTP {status}"
        raise RefusedError(where, code, readable(answer.get("error_description")))
    if not answer:
        raise ApiError(f"{where} answers with HTTP {status} and no JSON object; check the address")
    return answer


class Endpoints(BaseModel):
    """The metadata of an authorization server; an empty address is missing.

    Attributes:
        issuer: Its identifier; empty if the configuration has only the endpoints.
    """

    issuer: str = ""
    token_endpoint: str
    authorization_endpoint: str = ""
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    userinfo_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    code_challenge_methods_supported: tuple[str, ...] = ()
    authorization_response_iss_parameter_supported: bool = False


async def read_metadata(issuer: str, places: Iterable[str], *, needs_pkce: bool) -> Endpoints:
    """Return the metadata of an issuer, from the first of several places that has it.

    Args:
        places: Paths at the origin of the issuer.
        needs_pkce: True if the issuer must say that it supports PKCE.

    Raises:
        ApiError: There is none, it is of another issuer, or it may not be used.
    """
    origin, _ = split_url(issuer)
    for place in places:
        if metadata := await fetch_object("GET", f"{origin}{place}"):
            return _checked(issuer, metadata, needs_pkce=needs_pkce)
    raise ApiError(f"{issuer} has no metadata of an authorization server; check issuer")


def _checked(issuer: str, metadata: Mapping[str, Any], *, needs_pkce: bool) -> Endpoints:
    try:
        endpoints = Endpoints.model_validate(metadata)
    except ValidationError:
        raise ApiError(f"the metadata of {issuer} is not valid") from None
    if endpoints.issuer != issuer:
        named = readable(endpoints.issuer)
        raise ApiError(f"the metadata of {issuer} is of another issuer, {named!r}; check issuer")
    if needs_pkce and "S256" not in endpoints.code_challenge_methods_supported:
        raise ApiError(f"{issuer} does not support PKCE, which protects the sign-in of users")
    check_secure(endpoints.token_endpoint, issuer)
    return endpoints


def split_url(url: str) -> tuple[str, str]:
    """Return the origin and the path of an address, without a slash at the end."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
