"""``standards-mcp auth``: the tokens of the service over HTTP."""

from __future__ import annotations

from functools import partial

import click

from standards_mcp._utils.text import did_you_mean
from standards_mcp._utils.tokens import new_token, token_hash
from standards_mcp.cli.invocation import Invocation
from standards_mcp.commands import examples, json_option, print_json, print_table, print_text
from standards_mcp.config.models.http import ALL, BUILT_IN, AuthSettings, TokenSection
from standards_mcp.config.toml.editing import with_token, without_token

from .config_edits import edit_config, settings_of

_OVERRIDDEN = "a variable or --set says otherwise, see `standards-mcp config show`"


@click.group()
def auth() -> None:
    """Say who may use the service over HTTP."""


@auth.group()
def token() -> None:
    """Make, list and revoke tokens.

    The configuration file keeps only their hashes. A server that runs takes changes over at SIGHUP,
    or by itself with --watch.
    """


@token.command(epilog=examples("auth token new library", "auth token new ann --scope teacher"))
@click.argument("name")
@click.option("--scope", "scopes", multiple=True, help="A scope of the token; may be repeated.")
@click.option("--replace", is_flag=True, help="Replace the token with this name.")
@click.pass_obj
def new(invocation: Invocation, name: str, scopes: tuple[str, ...], *, replace: bool) -> None:
    """Make a token for NAME, and print it: this once only.

    The scopes are those in [server.auth.scopes]; "*" is all that is served, "admin" the admin page
    and "metrics" the metrics.
    """
    settings = _settings(invocation)
    if name in settings.tokens and not replace:
        raise click.UsageError(f"there is a token {name!r}; --replace makes it void")
    made, chosen = new_token(), _checked(scopes, settings)

    def add(text: str) -> str:
        changed = with_token(text, name, token_hash(made), chosen)
        then = settings_of(invocation, changed).server.auth  # refuses a name that is none
        if not then.is_required:
            raise click.ClickException(f"the token would not be asked for: {_OVERRIDDEN}")
        if then.tokens[name] != TokenSection(sha256=token_hash(made), scopes=chosen):
            raise click.ClickException(f"another token {name!r} would count: {_OVERRIDDEN}")
        return changed

    edit_config(invocation, add, says=partial(print_text, err=True))
    print_text(made)


@token.command("list", epilog=examples("auth token list"))
@json_option
@click.pass_obj
def list_(invocation: Invocation, *, as_json: bool) -> None:
    """List the names and scopes of the tokens."""
    tokens = _settings(invocation).tokens
    if as_json:
        print_json([{"name": name, "scopes": each.scopes} for name, each in tokens.items()])
    elif tokens:
        print_table([(name, ", ".join(each.scopes)) for name, each in tokens.items()])
    else:
        print_text("There are no tokens; `standards-mcp auth token new NAME` makes one.")


@token.command(epilog=examples("auth token revoke ann"))
@click.argument("name")
@click.pass_obj
def revoke(invocation: Invocation, name: str) -> None:
    """Take the token NAME out of the configuration. Requests need one even after the last."""
    tokens = _settings(invocation).tokens
    if name not in tokens:
        hint = did_you_mean(name, tokens) or f"; there are: {', '.join(tokens) or 'none'}"
        raise click.UsageError(f"there is no token {name!r}{hint}")
    edit_config(invocation, partial(without_token, name=name))
    settings = invocation.load_settings().settings.server.auth
    if name in settings.tokens or not settings.is_required:
        raise click.ClickException(f"{name!r} is not revoked: {_OVERRIDDEN}")


def _settings(invocation: Invocation) -> AuthSettings:
    return invocation.host.settings.server.auth


def _checked(scopes: tuple[str, ...], settings: AuthSettings) -> tuple[str, ...]:
    """Return the scopes of a new token; where scopes are configured, none is chosen by itself."""
    known = tuple(dict.fromkeys((*settings.scopes, *BUILT_IN)))
    if unknown := next((each for each in scopes if each not in known), None):
        hint = did_you_mean(unknown, known) or f"; there are: {', '.join(known)}"
        raise click.UsageError(f"there is no scope {unknown!r} in [server.auth.scopes]{hint}")
    if settings.scopes and not scopes:
        raise click.UsageError(f"choose scopes by --scope; there are: {', '.join(known)}")
    return scopes or (ALL,)
