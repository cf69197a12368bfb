"""Create the tokens of the service, hash them, and edit their tables in the configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Final, NamedTuple

from standards_mcp.errors import StandardsMcpError
from standards_mcp.transports import Settings, TokenSection

_AUTH: Final = ("server", "auth")
_OVERRIDDEN: Final = "a variable or --set overrides the file, see `standards-mcp config show`"


class TokenError(StandardsMcpError):
    """A token cannot be changed, or the change would have no effect; the file is as it was."""


class TokenEdit(NamedTuple):
    """An edit of one token in the configuration file: the arguments of `with_checked_values`.

    Both functions raise a `TokenError` if the edit is not possible, or would have no effect.
    """

    values: Callable[[Settings], Mapping[tuple[str, ...], object]]
    check: Callable[[Settings], None]


def new_token() -> str:
    """Return a new bearer token; with 256 random bits, its plain hash cannot be reversed."""
    return f"smcp_{token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token in hexadecimal digits, as in the configuration."""
    # A slow hash protects words that people choose; these tokens have 256 random bits.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def in_utc(moment: datetime) -> str:
    """Return a time as the configuration has it, such as ``2026-12-31T23:59:59Z``.

    Args:
        moment: A time with a time zone.
    """
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def creation(name: str, section: TokenSection, *, replace: bool = False) -> TokenEdit:
    """Return the edit that adds a token, and requires tokens from then on.

    Args:
        replace: Replace the token with this name.
    """

    def values(before: Settings) -> dict[tuple[str, ...], object]:
        if name in before.server.auth.tokens and not replace:
            raise TokenError(f"A token {name!r} exists. Choose another name, or revoke it first.")
        keys = {"sha256": section.sha256, "scopes": [*section.scopes], "expires": section.expires}
        table: dict[tuple[str, ...], object] = {
            (*_AUTH, "tokens", name, key): value for key, value in keys.items()
        }
        return {(*_AUTH, "required"): True, **table}

    def check(after: Settings) -> None:
        in_force = after.server.auth
        if not in_force.is_required or in_force.tokens.get(name) != section:
            raise TokenError(f"The token {name!r} would not be in force: {_OVERRIDDEN}.")

    return TokenEdit(values, check)


def change_of_expiry(name: str, expires: str | None) -> TokenEdit:
    """Return the edit that changes when a token expires; None: never."""

    def values(before: Settings) -> dict[tuple[str, ...], object]:
        _check_exists(name, before)
        return {(*_AUTH, "tokens", name, "expires"): expires}

    def check(after: Settings) -> None:
        if after.server.auth.tokens[name].expires != expires:
            raise TokenError(f"The token {name!r} would expire as before: {_OVERRIDDEN}.")

    return TokenEdit(values, check)


def revocation(name: str) -> TokenEdit:
    """Return the edit that removes a token. Requests need a token even if none is left."""

    def values(before: Settings) -> dict[tuple[str, ...], object]:
        _check_exists(name, before)
        return {(*_AUTH, "required"): True, (*_AUTH, "tokens", name): None}

    def check(after: Settings) -> None:
        if name in after.server.auth.tokens or not after.server.auth.is_required:
            raise TokenError(f"The token {name!r} would not be revoked: {_OVERRIDDEN}.")

    return TokenEdit(values, check)


def _check_exists(name: str, before: Settings) -> None:
    if name not in before.server.auth.tokens:
        raise TokenError(f"There is no token {name!r}, or no longer.")
