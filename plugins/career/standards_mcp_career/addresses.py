"""Addresses of servers. Errors do not quote an address, because it may contain a password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import unquote, urlsplit

_PORTS: Final = range(1, 65536)
_REDIS_NETWORK: Final = re.compile(
    r"(rediss?)://([^\s:@/?#]*(:[^\s@/?#]*)?@)?(?P<host>[^\s:@/?#\[\]]+|\[[0-9A-Fa-f:.]+\])"
    r"(:(?P<port>[0-9]{1,5}))?(/[0-9]{1,9})?"
)
_REDIS_SOCKET: Final = re.compile(r"unix://(?P<path>/[^\s?#]+)(\?db=[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """The address of a Redis server.

    Attributes:
        url: The address for the Redis client. It may contain a password.
        display_name: The host and port, or the path of the socket, for logs.
    """

    url: str = field(repr=False)
    display_name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address.

        Raises:
            ValueError: The address is malformed. The message does not quote it, because it may
                contain a password.
        """
        if socket := _REDIS_SOCKET.fullmatch(text):
            return cls(text, unquote(socket["path"]))
        # The Redis client does not know tcp://. This form has neither a user nor a database.
        is_plain = text.startswith("tcp://") and not re.search("[@/]", text[len("tcp://") :])
        url = text.replace("tcp", "redis", 1) if is_plain else text
        network = _REDIS_NETWORK.fullmatch(url)
        port = int(network["port"] or 6379) if network else 0
        if network is None or port not in _PORTS:
            # No example may look like USER@HOST: the host masks credentials in its output.
            raise ValueError(
                "the address is malformed. Write redis://HOST, redis://HOST:PORT/DB, "
                "rediss://HOST, tcp://HOST:PORT, unix:///PATH or unix:///PATH?db=N, with a port "
                "from 1 to 65535; to log in, put USER:PASSWORD and an at sign before HOST. In "
                "names and passwords, encode @ as %40, / as %2F, ? as %3F, # as %23 and % as %25"
            )
        urlsplit(url)  # raises for an impossible IPv6 address
        return cls(url, f"{network['host']}:{port}")


_HOST: Final = r"(?:[^\s:@/?#\[\],]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_POSTGRES: Final = re.compile(
    r"(?:postgres|postgresql)(?:\+psycopg)?(?P<rest>://(?:[^\s:@/?#]*(?::[^\s@/?#]*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)?/(?P<database>[^\s@/?#]+)"
    r"(?:\?[a-z_]+=[^\s@?#&]*(?:&[a-z_]+=[^\s@?#&]*)*)?)"
)


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a PostgreSQL database.

    Attributes:
        url: The address for libpq. It may contain a password.
        display_name: The hosts and the database, for logs.
    """

    url: str = field(repr=False)
    display_name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address, in the form of libpq or of SQLAlchemy.

        Raises:
            ValueError: The address is malformed.
        """
        parts = _POSTGRES.fullmatch(text)
        ports = re.findall(r":([0-9]+)(?:,|$)", parts["hosts"] or "") if parts else []
        if parts is None or not all(int(port) in _PORTS for port in ports):
            raise ValueError(
                "the address is malformed. Write postgresql://HOST/DATABASE, "
                "postgresql://HOST:PORT/DATABASE?sslmode=verify-full or "
                "postgresql:///DATABASE?host=/FOLDER for a socket, with a port from 1 to 65535; "
                "to log in, put USER:PASSWORD and an at sign before HOST. In names and passwords, "
                "encode @ as %40, / as %2F, ? as %3F, # as %23 and % as %25"
            )
        name = f"{parts['hosts'] or 'local socket'}/{unquote(parts['database'])}"
        return cls(f"postgresql{parts['rest']}", name)
