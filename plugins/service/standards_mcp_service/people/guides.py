"""How people connect their MCP clients to the service, as another package knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.metadata import distribution
from typing import Final, Protocol, cast

TOKEN_VARIABLE: Final = "STANDARDS_MCP_TOKEN"  # noqa: S105
"""The environment variable from which clients read the token; its name is in the entries."""
_GROUP: Final = "standards_mcp_service.clients"
"""The entry points of the wheel that yield guides for a service."""


class Guide(Protocol):
    """How one client is connected to a service.

    Attributes:
        command: The command that does it.
        entry: The entry to paste, or "" if only the command can make it.
        files: The client's files of servers, each by the names of its systems; empty if the users
            of the client import the entry.
        step: The next step for the user.
    """

    key: str
    title: str
    command: str
    entry: str
    files: Mapping[str, str]
    step: str


@lru_cache(8)
def client_guides(url: str, *, offers_login: bool) -> Sequence[Guide]:
    """Return a guide for each client.

    Args:
        url: The public address of the service.
        offers_login: True if clients can sign in at an authorization server; else the guides name
            the variable with the token.
    """
    points = distribution("standards-mcp").entry_points.select(group=_GROUP)
    make = [cast("Callable[[str, str], Sequence[Guide]]", point.load()) for point in points]
    variable = "" if offers_login else TOKEN_VARIABLE
    return [guide for guides_of in make for guide in guides_of(url, variable)]
