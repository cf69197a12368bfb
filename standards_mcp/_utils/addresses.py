"""Addresses and keys of services: their types as settings, and where a key must not be sent."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr


def is_loopback(name: str) -> bool:
    """Return True if the host *name* is a loopback address."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name.casefold() == "localhost"


def is_unencrypted(address: str) -> bool:
    """Return True if others could read a request to *address*: plain HTTP, except to loopback.

    Raises:
        ValueError: It is not an address.
    """
    parts = urlsplit(address)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def may_use_proxy(address: str) -> bool:
    """Return True if requests to *address* may use a proxy from the environment.

    Plain HTTP to loopback may not: such a request may have a key, and the proxy would read it.
    """
    return is_unencrypted(address) or not address.casefold().startswith("http:")


def _service_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("this is no address: check its host and its port") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address begins with https:// or http:// and has a host")
    if " " in url or not url.isprintable():
        raise ValueError("an address has no white space and no control characters")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("the address of a service has no query, user name and password")
    return url.rstrip("/")


def _api_key(key: SecretStr) -> SecretStr:
    text = key.get_secret_value().strip()
    if not all("!" <= character <= "~" for character in text):
        raise ValueError(
            "the key has a character that no key has, such as a space; copy it again from where "
            "you have it"
        )
    return SecretStr(text)


ServiceUrl: TypeAlias = Annotated[str, AfterValidator(_service_url)]
"""An HTTP address with a host and without a slash at its end.

A query, a user name and a password are refused, so that it holds no secret.
"""
ApiKey: TypeAlias = Annotated[SecretStr, AfterValidator(_api_key)]
"""A key that a header can carry, without the white space around it."""
