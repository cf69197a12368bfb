"""``standards-mcp auth``: the tokens of the service over HTTP."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import click

from standards_mcp.commands import (
    Report,
    ServerCommands,
    did_you_mean,
    examples,
    print_text,
    reports,
    table,
)
from standards_mcp.transports import (
    ADMIN,
    ALL,
    BUILT_IN,
    METRICS,
    AuthSettings,
    TokenSection,
)

from .tokens import creation, in_utc, new_token, revocation, token_hash

_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def _expiry(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    """Return the time at which a new token expires.

    Raises:
        BadParameter: The text is not a number of hours, days or weeks.
    """
    if text is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text)
    if not match:
        raise click.BadParameter(
            f"{text!r} is not a duration; give hours, days or weeks, such as 12h, 90d or 4w"
        )
    lifetime = timedelta(**{_UNITS[match[2]]: int(match[1])})
    return in_utc(datetime.now(UTC) + lifetime)


@click.group()
def auth() -> None:
    """Manage the users of the service over HTTP."""


@auth.group()
def token() -> None:
    """Make, list and revoke tokens.

    The configuration file keeps only their hashes. A running server applies changes at SIGHUP; with
    --watch, it does so by itself.
    """


@token.command(
    epilog=examples(
        "auth token new library",
        "auth token new ann --scope teacher",
        "auth token new guest --expires 90d",
    )
)
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, help="A scope of the token; may be repeated.")
@click.option(
    "--expires",
    metavar="TIME",
    callback=_expiry,
    help="The token expires after this time, such as 12h, 90d or 4w.",
)
@click.option("--replace", is_flag=True, help="Replace the token with this name.")
@click.pass_obj
def new(
    invocation: ServerCommands,
    name: str,
    scopes: tuple[str, ...],
    expires: str | None,
    *,
    replace: bool,
) -> None:
    """Make a token for NAME, and print it once.

    The scopes are the ones in [server.auth.scopes], "*" for everything, "admin" for the admin page
    and "metrics" for the metrics.
    """
    settings = invocation.settings.server.auth
    if name in settings.tokens and not replace:
        raise click.UsageError(f"a token {name!r} exists; --replace makes it invalid")
    secret, scopes = new_token(), _checked_scopes(name, scopes, settings)
    section = TokenSection(sha256=token_hash(secret), scopes=scopes, expires=expires)
    edit = creation(name, section, replace=replace)
    # The token alone goes to stdout.
    report = partial(print_text, err=True)
    invocation.change_settings(edit.values, check=edit.check, report=report)
    print_text(secret)


@token.command("list", epilog=examples("auth token list"))
@click.pass_obj
@reports
def list_(invocation: ServerCommands) -> Report:
    """List the names of the tokens, with their scopes and when they expire."""
    tokens = invocation.settings.server.auth.tokens.items()
    rows = [(name, ", ".join(each.scopes), _expiry_text(each)) for name, each in tokens]
    no_tokens = "No tokens exist; `standards-mcp auth token new NAME` makes one."
    data = [{"name": name, "scopes": each.scopes, "expires": each.expires} for name, each in tokens]
    return Report(data, lambda: table(rows) or no_tokens)


@token.command(epilog=examples("auth token revoke ann"))
@click.argument("name")
@click.pass_obj
def revoke(invocation: ServerCommands, name: str) -> None:
    """Remove the token NAME from the configuration. Requests need a token even if none is left."""
    tokens = invocation.settings.server.auth.tokens
    if name not in tokens:
        hint = did_you_mean(name, tokens) or f"; known tokens: {', '.join(tokens) or 'none'}"
        raise click.UsageError(f"no token {name!r} exists{hint}")
    edit = revocation(name)
    invocation.change_settings(edit.values, check=edit.check)


def _expiry_text(section: TokenSection) -> str:
    if not section.expires:
        return "does not expire"
    return f"{'expired' if section.is_expired else 'expires'} {section.expires}"


def _checked_scopes(name: str, scopes: tuple[str, ...], settings: AuthSettings) -> tuple[str, ...]:
    """Return the scopes of a new token, by default ``*`` if the configuration has no scopes.

    Raises:
        click.UsageError: A scope is unknown, or must be chosen.
    """
    known = tuple(dict.fromkeys((*settings.scopes, *BUILT_IN)))
    if unknown := next((scope for scope in scopes if scope not in known), None):
        hint = did_you_mean(unknown, known) or f"; known scopes: {', '.join(known)}"
        raise click.UsageError(f"no scope {unknown!r} in [server.auth.scopes]{hint}")
    if settings.scopes and not scopes:
        raise click.UsageError(
            "choose the scopes of the token, since [server.auth.scopes] has some:"
            f" {', '.join(settings.scopes)}; {ADMIN} and {METRICS} are for the pages of operators,"
            f" '{ALL}' is for everything that is served. For example:"
            f" standards-mcp auth token new {name} --scope {next(iter(settings.scopes))}"
        )
    return scopes or (ALL,)
