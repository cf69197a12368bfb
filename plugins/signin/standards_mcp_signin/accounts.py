"""The accounts of a server's callers: get access tokens, keep them while valid, renew them."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import httpx2

from standards_mcp import ApiError
from standards_mcp.transports import Account
from standards_mcp_oauth.issuers import RefusedError, UnreachableError

from .grants import Token, request_token
from .store import UnreadableError

if TYPE_CHECKING:
    from .sign_in import OAuth

log = logging.getLogger("standards_mcp.signin")

_MAX_BACKOFF: Final = 60.0
_UNAUTHORIZED: Final = 401


class NotSignedInError(ApiError):
    """There is no token, and only the user can get one."""


class TokenAccount(Account):
    """Sends a valid access token with each request, and a new one if the server refuses it.

    After a failure of the issuer, requests for tokens pause, at first for a second.

    Args:
        sign_in: The server.
        remedy: See `Account`.
    """

    def __init__(self, sign_in: OAuth, remedy: str) -> None:
        self.sign_in, self.remedy = sign_in, remedy
        self._token: Token | None = None
        self._lock = asyncio.Lock()
        self._failures, self._retry_at, self._problem = 0, 0.0, ""

    @abstractmethod
    async def obtain(self, rejected: str) -> Token:
        """Return a valid token.

        Args:
            rejected: The access token that the server has refused, or an empty string.

        Raises:
            ApiError: There is none.
        """

    def current(self) -> Token | None:
        """Return the newest known token, valid or not."""
        return self._token

    async def prepare(self) -> None:
        """Get a token, unless a valid one is there. See `Account`."""
        await self._valid()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Add the token to a request, and repeat the request once if the server refuses it."""
        access = ""
        for _ in range(2):
            # Without a token the server refuses: an error here would end the calls of others.
            with suppress(ApiError):
                access = await self._valid(access)
                request.headers["authorization"] = f"Bearer {access}"
            response = yield request
            if response.status_code != _UNAUTHORIZED:
                return

    async def _valid(self, rejected: str = "") -> str:
        async with self._lock:
            token = self.current()
            is_usable = bool(token and token.access != rejected and token.is_valid(0))
            seconds = self._retry_at - time.monotonic()
            # The margin before the end of a token is for an issuer that is down.
            if token and is_usable and (token.is_valid() or seconds > 0):
                return token.access
            if seconds > 0:
                raise ApiError(f"{self._problem} It is tried again in {max(1, round(seconds))} s.")
            try:
                # If the call is cancelled now, a new refresh token must still be stored.
                renewal = asyncio.create_task(self.obtain(rejected))
                renewal.add_done_callback(lambda done: done.cancelled() or done.exception())
                token = await asyncio.shield(renewal)
            except NotSignedInError:
                raise
            except (ApiError, OSError) as exc:
                self._note_failure(exc)
                if token and is_usable and isinstance(exc, UnreachableError):
                    return token.access
                raise ApiError(self._problem) from None
            self._failures, self._token = 0, token
            self.sign_in.note_token(token.access)
            return token.access

    def _note_failure(self, cause: Exception) -> None:
        self._failures += 1
        pause = min(_MAX_BACKOFF, 2.0 ** (self._failures - 1))
        self._retry_at = time.monotonic() + pause
        server = self.sign_in.server
        self._problem = f"Signing in at server {server!r} failed: {cause}."
        log.warning("sign-in failed", extra={"plugin": server, "reason": str(cause)})


class GrantAccount(TokenAccount):
    """An account that gets tokens by a grant, as often as necessary.

    Args:
        fields: The fields of the grant.
    """

    def __init__(self, sign_in: OAuth, fields: Mapping[str, str]) -> None:
        table = f"[servers.{sign_in.server}.auth]"
        super().__init__(sign_in, f"its administrator must correct {table} or the client's rights")
        self._fields = fields

    async def obtain(self, rejected: str) -> Token:
        """Request a token. See `TokenAccount`."""
        del rejected
        fields = {**self.sign_in.fields, **self._fields}
        return await request_token(await self.sign_in.client(), fields)


class PersonAccount(TokenAccount):
    """The account of a user who signs in with a browser; the store has their refresh token.

    Args:
        owner: The user's name.
        how: How this user signs in.
    """

    def __init__(self, sign_in: OAuth, owner: str, how: str) -> None:
        super().__init__(sign_in, f"to sign in again, {how}")
        self._owner, self._how = owner, how
        self._stamp: tuple[int, int] | None = None

    def current(self) -> Token | None:
        """Return the token; read it again after another process has changed it."""
        try:
            status = self.sign_in.store.path(self._owner).stat()
            stamp = status.st_mtime_ns, status.st_ino
        except OSError:
            stamp = None
        if stamp != self._stamp:
            self._token, self._stamp = None, stamp
        return self._token

    async def obtain(self, rejected: str) -> Token:
        """Return the stored token, refreshed unless another process did so. See `TokenAccount`."""
        store, server = self.sign_in.store, self.sign_in.server
        async with store.locked(self._owner):
            try:
                token = store.read(self._owner)
            except UnreadableError as exc:
                raise NotSignedInError(f"{server}: {exc}; to sign in again, {self._how}.") from None
            if token is None:
                raise NotSignedInError(f"Not signed in at server {server!r}: {self._how}.")
            if token.access == rejected or not token.is_valid():
                token = await self._refreshed(token)
            return token

    async def _refreshed(self, token: Token) -> Token:
        """Refresh a token at its own issuer, and store it."""
        store, reason = self.sign_in.store, "it has expired, or the server refuses it"
        if token.refresh:
            fields = {"grant_type": "refresh_token", "refresh_token": token.refresh}
            fields["resource"] = self.sign_in.fields["resource"]
            client = self.sign_in.with_secret(token.client)
            try:
                renewed = await request_token(client, fields, token.scopes)
            except RefusedError as exc:
                if exc.code != "invalid_grant":
                    raise
                reason = "the authorization server has ended it"
            else:
                store.write(self._owner, renewed)
                return renewed
        store.delete(self._owner)
        server = self.sign_in.server
        raise NotSignedInError(
            f"The sign-in at server {server!r} is over: {reason}. {self.remedy}."
        )
