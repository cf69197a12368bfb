"""Types of settings for a service that a plugin asks: its address and its key."""

from __future__ import annotations

from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from standards_mcp._utils.addresses import is_loopback, is_unencrypted, may_use_proxy

__all__ = ["ApiKey", "ServiceUrl", "is_loopback", "is_unencrypted", "may_use_proxy"]


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
    if not all("!" <= each <= "~" for each in text):
        raise ValueError(
            "the key has a character that no key has, such as a space; copy it again from where "
            "you have it"
        )
    return SecretStr(text)


ServiceUrl: TypeAlias = Annotated[str, AfterValidator(_service_url)]
"""The address of a service, without a slash at its end.

It is http or https and has a host. A query, a user's name and a password are refused, so that no
secret stands in it.
"""
ApiKey: TypeAlias = Annotated[SecretStr, AfterValidator(_api_key)]
"""A key that a header can carry, without the white space around it."""
