"""Where requests to Pinecone go: hosts that may get the key, and the proxies on the way."""

from __future__ import annotations

import socket
import urllib.request
from urllib.parse import urlsplit

from standards_mcp import is_loopback, is_unencrypted


def checked_host(host: str) -> str:
    """Return *host* with its scheme: https unless it says http, which loopback alone may.

    Raises:
        ValueError: The key would be sent unencrypted, or *host* is not a host.
    """
    url = host.strip().removesuffix("/")
    url = url if "://" in url else f"https://{url}"
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("a host has no user name and no password in it; leave them out")
    is_host = "." in (parts.hostname or "") or is_loopback(parts.hostname or "")
    if parts.scheme not in ("http", "https") or not is_host or parts.path or parts.query:
        raise ValueError(
            f"{host!r} is not a host; give the one that Pinecone's console shows for the index, "
            "such as my-index-abc123.svc.aped-1234.pinecone.io"
        )
    if is_unencrypted(url):
        raise ValueError(f"{host!r}: the key would be sent unencrypted; use https")
    return url


def look_up(host: str) -> None:
    """Look up the name of *host* in the calling thread, which may be left behind when that hangs.

    A look-up that an event loop makes cannot: the program would not end before it does.

    Raises:
        OSError: No server is known by this name.
    """
    parts = urlsplit(host)
    socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)


def proxy_for(host: str) -> str | None:
    """Return the proxy that the environment names for *host*, or None.

    ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` are read, in either case, and
    the settings of the system on Windows and macOS. The SDK itself reads none of them.
    """
    parts = urlsplit(host)
    if urllib.request.proxy_bypass(parts.netloc) or urllib.request.proxy_bypass(
        parts.hostname or ""
    ):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def proxy_passwords() -> tuple[str, ...]:
    """Return the passwords in the proxies of the environment, for keeping them out of messages."""
    found = (urlsplit(proxy).password for proxy in urllib.request.getproxies().values())
    return tuple(password for password in found if password)
