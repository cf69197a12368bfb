"""Which addresses are those of this machine, and which may be sent a key."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(name: str) -> bool:
    """Return whether the host *name* is this machine, as seen from itself."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name.casefold() == "localhost"


def is_unencrypted(address: str) -> bool:
    """Return whether others could read what is sent to *address*: plain http but to loopback.

    Raises:
        ValueError: It is no address.
    """
    parts = urlsplit(address)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def may_use_proxy(address: str) -> bool:
    """Return whether a proxy of the environment may pass on what is sent to *address*.

    Plain http to loopback may not: a key is sent there, and the proxy would read it.
    """
    return is_unencrypted(address) or not address.casefold().startswith("http:")
