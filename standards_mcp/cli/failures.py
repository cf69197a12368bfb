"""Format an exception of a command as a one-line error message."""

from __future__ import annotations

import traceback
from typing import IO, Any, Final

import click

from standards_mcp._utils import full_disk
from standards_mcp._utils.secrets import mask
from standards_mcp._utils.text import describe_exception, printable
from standards_mcp.errors import ConfigError, StandardsMcpError

from .invocation import Invocation

_FAILURES: Final = ("standards_mcp.loading.manager",)


class _Failure(click.ClickException):
    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(printable(self.message), file=file, err=True)


class _ConfigFailure(_Failure):
    exit_code = 2


def show_failures(invocation: Invocation) -> None:
    """Do not log plugins that fail, for a command that prints the reasons itself."""
    if not invocation.verbosity:
        invocation.configure_logging(without=_FAILURES)


def failure(cause: Exception, ctx: click.Context) -> click.ClickException:
    """Return the error that click prints: one line, and with ``-vv`` the traceback above it.

    The exit code is 2 for an invalid configuration, else 1.
    """
    invocation = ctx.ensure_object(Invocation)
    line = str(cause)
    if not isinstance(cause, StandardsMcpError):
        reason = f"{describe_exception(cause)}; for more, put -vv before the command"
        if full_disk.is_full(cause):
            reason = full_disk.MESSAGE
        line = f"{ctx.invoked_subcommand} failed: {reason}"
    above = traceback.format_exception(cause) if invocation.shows_tracebacks else ()
    message = mask("".join([*above, f"standards-mcp: {line}"]), invocation.secrets())
    return (_ConfigFailure if isinstance(cause, ConfigError) else _Failure)(message)
