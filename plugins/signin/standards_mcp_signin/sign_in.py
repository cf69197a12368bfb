"""The sign-in at one server, by the grant in its configuration."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from standards_mcp import ApiError, Route
from standards_mcp.transports import Account, Principal, ServerAuth
from standards_mcp_oauth.clients import Client
from standards_mcp_oauth.issuers import Endpoints, check_secure

from .accounts import GrantAccount, PersonAccount, TokenAccount
from .discovery import find_endpoints
from .pages import Pages
from .store import Store, UnreadableError

OPERATOR: Final = "local"
"""The name of the user who runs the host."""
_ANONYMOUS: Final = "anonymous"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
MAX_USERS: Final = 100
_IDLE_SECONDS: Final = 600.0
_MAX_MASKED: Final = 64
_ENDPOINTS_SECONDS: Final = 3600.0


@dataclass(slots=True)
class _User:
    """A caller with an account.

    Attributes:
        connection: Their connection, once they have called: a session belongs to one user.
        calls: Number of running calls.
        used_at: The end of the last call.
    """

    account: TokenAccount
    connection: Any = None
    calls: int = 0
    used_at: float = 0.0

    async def aclose(self) -> None:
        if self.connection is not None:
            await self.connection.aclose()


class OAuth:
    """The sign-in at one server. See `standards_mcp.transports.SignIn`.

    Args:
        url: The address of the server.
        folder: The state folder of the server.
        key: Encrypts stored tokens; None for a key in *folder*.
        on_tokens: Called with the access tokens in use, to mask them.

    Attributes:
        server: The name of the server's table.
        auth: The settings, with the secret in place of its variable.
        fields: The fields of all requests for tokens: the resource and the scopes.
        store: The tokens of users.
        operator: See `SignIn`.

    Raises:
        ApiError: The address of the server is not secure.
    """

    def __init__(
        self,
        server: str,
        url: str,
        auth: ServerAuth,
        folder: Path,
        key: SecretStr | None,
        on_tokens: Callable[[frozenset[str]], None],
    ) -> None:
        self.server, self.auth = server, auth
        self._url, self._on_tokens = check_secure(url), on_tokens
        self.fields = {"resource": auth.resource or url.partition("#")[0]}
        if auth.scopes:
            self.fields["scope"] = " ".join(auth.scopes)
        # With another configuration, a refresh token might go to another issuer.
        identity = auth.model_dump(exclude={"client_secret", "scopes", "public_url"})
        self.store = Store(folder / "sign-in", key, [url, identity])
        self._endpoints: tuple[float, Endpoints] | None = None
        self._users = OrderedDict[str, _User]()
        self._tokens = deque[str](maxlen=_MAX_MASKED)
        self.operator: Account = (
            self._person(OPERATOR)
            if auth.grant == "authorization_code"
            else GrantAccount(self, {"grant_type": "client_credentials"})
        )

    def is_for_operator(self, caller: Principal | None) -> bool:
        """Return True if the caller uses the account of the operator. See `SignIn`."""
        is_local = caller is not None and caller.name == OPERATOR
        grant = self.auth.grant
        return grant == "client_credentials" or (grant == "authorization_code" and is_local)

    @asynccontextmanager
    async def connection(
        self, caller: Principal | None, connect: Callable[[Account], Any]
    ) -> AsyncGenerator[Any]:
        """Keep the connection of a caller open during the body. See `SignIn`."""
        user = self._user(caller)
        user.calls += 1
        try:
            await self._close_idle()
            await user.account.prepare()
            if user.connection is None:
                user.connection = connect(user.account)
            yield user.connection
        finally:
            user.calls, user.used_at = user.calls - 1, time.monotonic()

    async def aclose(self) -> None:
        """Close the callers' connections. See `SignIn`."""
        while self._users:
            await self._users.popitem()[1].aclose()

    async def _close_idle(self) -> None:
        """Forget users who have not called for a while, and the oldest of too many."""
        excess, overdue = len(self._users) - MAX_USERS, time.monotonic() - _IDLE_SECONDS
        idle = [(key, user) for key, user in self._users.items() if not user.calls]
        if excess > len(idle):
            raise ApiError(f"Too many users call server {self.server!r} now. Try again later.")
        ended = [
            key for at, (key, user) in enumerate(idle) if at < excess or user.used_at < overdue
        ]
        for user in [self._users.pop(key) for key in ended]:
            await user.aclose()

    def _user(self, caller: Principal | None) -> _User:
        """Return the account of a caller, with its connection."""
        if caller is None or caller.name == _ANONYMOUS:
            raise ApiError(
                f"Server {self.server!r} needs an account of each user, and this caller has no "
                "name. The administrator of the service must require tokens."
            )
        if self.auth.grant == "authorization_code":
            key = caller.name
            account: TokenAccount = self._person(key)
        elif caller.token is None:
            raise ApiError(
                f"Server {self.server!r} exchanges the token of each user. Use the service over "
                "HTTP with a token of its authorization server (a JSON Web Token)."
            )
        else:
            subject = caller.token.get_secret_value()
            # By the token, because another token of this user may have other rights.
            key = hashlib.sha256(subject.encode()).hexdigest()
            account = GrantAccount(self, self._exchange(subject))
        user = self._users.setdefault(key, _User(account))
        self._users.move_to_end(key)
        return user

    def _exchange(self, subject_token: str) -> dict[str, str]:
        """Return the fields of a token exchange (RFC 8693)."""
        auth = self.auth
        fields = {
            "grant_type": _EXCHANGE,
            "subject_token": subject_token,
            "subject_token_type": auth.subject_token_type,
            "requested_token_type": _ACCESS_TOKEN,
        }
        return fields | ({"audience": auth.audience} if auth.audience else {})

    def _person(self, owner: str) -> PersonAccount:
        server, public = self.server, self.auth.public_url
        how = f"run `standards-mcp servers login {server}`"
        if owner != OPERATOR:
            how = f"ask its administrator to set public_url in [servers.{server}.auth]"
            if public:
                how = f"open {public.rstrip('/')}/plugins/{server}/sign-in in a browser"
        return PersonAccount(self, owner, how)

    def note_token(self, access: str) -> None:
        """Let the newest access tokens be masked in logs and errors."""
        self._tokens.append(access)
        self._on_tokens(frozenset(self._tokens))

    async def client(self) -> Client:
        """Return the configured client. See `find_endpoints` for errors."""
        if self._endpoints is None or self._endpoints[0] < time.monotonic():
            endpoints = await find_endpoints(self.auth, self._url)
            self._endpoints = time.monotonic() + _ENDPOINTS_SECONDS, endpoints
        name = self.auth.client_id or ""
        return self.with_secret(Client(endpoints=self._endpoints[1], id=name))

    def with_secret(self, client: Client) -> Client:
        """Return a client with the configured secret, if there is one."""
        secret = self.auth.client_secret
        return client.model_copy(update={"secret": secret}) if secret else client

    def status(self, owner: str = OPERATOR) -> str:
        """Return the state of a user's sign-in in words. See `SignIn`."""
        if self.auth.grant != "authorization_code":
            return f"signs in as {self.auth.client_id}"
        try:
            token = self.store.read(owner)
        except UnreadableError as exc:
            return str(exc)
        if token is None:
            return "not signed in"
        return "signed in" if token.refresh or token.is_valid() else "signed in, but expired"

    def routes(self) -> list[Route]:
        """Return the pages on which users sign in. See `SignIn`."""
        public = self.auth.public_url if self.auth.grant == "authorization_code" else None
        return Pages(self, public).routes() if public else []
