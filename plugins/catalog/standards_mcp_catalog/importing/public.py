"""An HTTP client that reaches public addresses only, for addresses that come over the network.

Whoever may import through the service must not reach the network behind it (server-side request
forgery). The address of a name is checked before a connection is opened, and that of the connection
before the request is sent, because a name may change its address in between.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import httpx2
from typing_extensions import override

from .report import SourceError
from .web import Web

_NAT64: Final = IPv6Network("64:ff9b::/96")


class PublicWeb(Web):
    """Refuses addresses of this machine and of private networks, also after a redirect.

    A proxy of the environment has its own rules: with one, only addresses in numbers are checked.
    """

    @cached_property
    @override
    def _client(self) -> httpx2.Client:
        client = super()._client
        client.event_hooks = {"request": [_check_request, _check_connection]}
        return client


def _check_request(request: httpx2.Request) -> None:
    host = request.url.host
    if _has_proxy(request.url):
        addresses = [host]
    else:
        try:
            answers = socket.getaddrinfo(host, request.url.port or 443, type=socket.SOCK_STREAM)
        except OSError:
            return  # the request fails, with a better message
        addresses = [str(item[4][0]) for item in answers]
    if not all(map(is_public, addresses)):
        raise _refusal(host)


def _check_connection(request: httpx2.Request) -> None:
    """Check the address of the connection, before the first byte is sent."""

    def check(event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            connection = info["return_value"]
            address = connection.get_extra_info("server_addr")
            if not is_public(str(address[0])):
                connection.close()  # the client does not know it yet
                raise _refusal(request.url.host)

    if not _has_proxy(request.url):
        request.extensions = {**request.extensions, "trace": check}


def _has_proxy(url: httpx2.URL) -> bool:
    proxies = getproxies()
    return bool(proxies.get(url.scheme) or proxies.get("all")) and not proxy_bypass(url.host)


def _refusal(host: str) -> SourceError:
    return SourceError(
        f"{host} is not a public address; import it with `standards-mcp data import` on the"
        " machine of the service"
    )


def is_public(address: str) -> bool:
    """True for a public IP address, and for a name other than that of this machine."""
    try:
        number: IPv4Address | IPv6Address | None = ip_address(address.partition("%")[0])
    except ValueError:
        name = address.casefold().rstrip(".")
        return name != "localhost" and not name.endswith((".localhost", ".local", ".internal"))
    if isinstance(number, IPv6Address):
        if number in _NAT64:
            number = IPv4Address(int(number) & 0xFFFFFFFF)
        elif number.teredo:
            number = None
        else:
            number = number.ipv4_mapped or number.sixtofour or number
    return number is not None and number.is_global and not number.is_multicast
