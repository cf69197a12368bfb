"""Recognise loopback addresses and unencrypted ones, which must not receive a key."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


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
