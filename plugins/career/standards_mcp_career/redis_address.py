"""Parse Redis addresses and explain malformed ones."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

# No example may look like USER@HOST: the host masks credentials in its output.
FORMS: Final = (
    "redis://HOST, redis://HOST:PORT/DB, rediss://HOST, tcp://HOST:PORT, unix:///PATH or "
    "unix:///PATH?db=N; to log in, put USER:PASSWORD and an at sign before HOST"
)
_SCHEMES: Final = ("redis", "rediss", "tcp", "unix")
_LARGEST_PORT: Final = 65535
_DEFAULT_PORT: Final = 6379
_NETWORK: Final = re.compile(
    r"""
    (?P<scheme>rediss?|tcp)://
    (?: (?P<user>[^\s:@/?\#]*) (?: : (?P<password>[^\s@/?\#]*) )? @ )?
    (?P<host>[^\s:@/?\#\[\]]+ | \[[0-9A-Fa-f:.]+\])
    (?: : (?P<port>[0-9]{1,5}) )?
    (?: / (?P<db>[0-9]{1,9}) )?
    """,
    re.VERBOSE,
)
_SOCKET: Final = re.compile(r"unix://(?P<path>/[^\s?#]+)(?:\?db=(?P<db>[0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """A parsed Redis address.

    Attributes:
        path: The path of a Unix socket, None for a host and port.
    """

    host: str = ""
    port: int = _DEFAULT_PORT
    db: int = 0
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    is_encrypted: bool = False
    path: str | None = None

    def __str__(self) -> str:
        """Return the address without secrets, for logs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.path or f"{host}:{self.port}"


def parse_address(text: str) -> RedisAddress:
    """Parse an address.

    Raises:
        ValueError: The address is malformed. The message does not quote it, because it may
            contain a password.
    """
    if match := _SOCKET.fullmatch(text):
        return RedisAddress(path=unquote(match["path"]), db=int(match["db"] or 0))
    match = _NETWORK.fullmatch(text)
    port = int(match["port"] or _DEFAULT_PORT) if match else 0
    if not match or not 1 <= port <= _LARGEST_PORT or _is_too_much(match):
        raise ValueError(f"{_mistake(text)}. Write {FORMS}")
    return RedisAddress(
        host=match["host"].strip("[]"),
        port=port,
        db=int(match["db"] or 0),
        username=unquote(match["user"] or "") or None,
        password=unquote(match["password"] or "") or None,
        is_encrypted=match["scheme"] == "rediss",
    )


def _mistake(text: str) -> str:
    """Describe the error without quoting the address: any part may be a password."""
    scheme, colon, rest = text.partition("://")
    user, _, place = rest.rpartition("@")
    host, slash, database = place.partition("/")
    mistakes = (
        (not text.strip(), "the address is empty"),
        (not colon, "the address has no scheme, such as redis://"),
        (scheme not in _SCHEMES, f"the scheme is unknown; use {', '.join(_SCHEMES)}"),
        (
            scheme == "unix",
            "the path of the socket is not absolute, or something other than ?db=N follows it",
        ),
        (
            re.search(r"[\s?#]", rest) or re.search("[@/]", user),
            "a character must be encoded, such as @ as %40, / as %2F, ? as %3F and # as %23",
        ),
        (
            scheme == "tcp" and (user or slash),
            "tcp:// takes a host and a port only; use redis:// for a user or a database",
        ),
        (
            slash and not re.fullmatch(r"[0-9]{1,9}", database),
            "the database after the slash is not a number",
        ),
        (
            re.match(r"(?:\[.*\]|[^\[:]+):", host),
            f"the port is not a number from 1 to {_LARGEST_PORT}",
        ),
    )
    messages = (message for is_wrong, message in mistakes if is_wrong)
    return next(messages, "the host is missing or malformed")


def _is_too_much(match: re.Match[str]) -> bool:
    return match["scheme"] == "tcp" and (match["user"] is not None or match["db"] is not None)
