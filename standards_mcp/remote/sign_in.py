"""The seam to the sign-in at other servers, which `plugins/signin` fills."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp.calls.context import Principal
from standards_mcp.plugin import Route

if TYPE_CHECKING:
    from .connection import Connection


class Account(httpx2.Auth):
    """Adds the access token of one user, or of the host, to requests.

    Attributes:
        remedy: The next step if the server refuses the token.
    """

    remedy: str

    @abstractmethod
    async def prepare(self) -> None:
        """Get an access token, unless a valid one is there.

        Raises:
            ApiError: There is none, with the next step.
        """


class SignIn(Protocol):
    """The sign-in at one server.

    Attributes:
        operator: The account that lists the server's items.
    """

    operator: Account

    def is_for_operator(self, caller: Principal | None) -> bool:
        """Return True if this caller uses the account and the connection of the operator."""
        ...

    def connection(
        self, caller: Principal | None, connect: Callable[[Account], Connection]
    ) -> AbstractAsyncContextManager[Connection]:
        """Keep the connection of another caller open during the body, and yield it.

        Args:
            connect: Returns a new connection.

        Raises:
            ApiError: The caller has no token, with the next step.
        """
        ...

    async def aclose(self) -> None:
        """Close the callers' connections."""
        ...

    def status(self) -> str:
        """Return the state of the operator's sign-in, such as "signed in"."""
        ...

    def routes(self) -> list[Route]:
        """Return the pages on which users of the service over HTTP sign in."""
        ...


def open_sign_in(*parameters: Any) -> SignIn:
    """Return the sign-in at a server; its package is in the host's wheel."""
    sign_in: SignIn = own_entry_points("standards_mcp.sign_in")["oauth"].load()(*parameters)
    return sign_in
