"""``standards-mcp servers ...``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import anyio
import click

from standards_mcp._utils.streams import divert_stdout
from standards_mcp._utils.text import counted, did_you_mean
from standards_mcp.commands import examples, offer, print_text
from standards_mcp.errors import ToolError
from standards_mcp.host import Host
from standards_mcp.remote import approvals as remote_approvals
from standards_mcp.remote.external import ServerPlugin

from . import OpenGroup
from .config_edits import confirm_exposure, yes_option
from .invocation import Invocation


@click.group(cls=OpenGroup)
def servers() -> None:
    """Sign in at other MCP servers, and approve their definitions."""


def _names_and_programs(invocation: Invocation) -> Iterator[tuple[str, str]]:
    for name, section in invocation.host.settings.servers.items():
        yield name, section.command or ""


@servers.command(epilog=examples("servers approve github", "servers approve github --yes"))
@click.argument("name", shell_complete=offer(_names_and_programs))
@yes_option
@click.pass_obj
def approve(invocation: Invocation, /, name: str, *, yes: bool) -> None:
    """Show the definitions of the server NAME that are not approved, and approve them.

    These are the tools, prompts, resource templates and skills that were changed or added since the
    last approval, as the host last saw them. If there are none, NAME is started to look for some.
    Running hosts serve approved definitions within seconds, without a restart.
    """
    invocation.configure_logging(without=(remote_approvals.__name__,))
    server = _server(invocation, name)
    approvals = server.approvals
    if approvals is None:
        print_text(f'{name} has approve = "always": all of its definitions are served.')
        return
    approvals.takes_first = False
    with divert_stdout():
        anyio.run(_find_changes, invocation.host, server)
    if not approvals.changes:
        print_text(f"All definitions of {name} are approved.")
        return
    if approvals.problem:
        print_text(f"The approved definitions cannot be read: {approvals.problem}", err=True)
    print_text(invocation.host.mask(remote_approvals.difference(approvals.changes)))
    counts = Counter("new" if each.before is None else "changed" for each in approvals.changes)
    changes = " and ".join(counted(n, f"{how} definition") for how, n in counts.items())
    message = f"This would also expose, unless a rule hides it: {changes} of {name}"
    confirm_exposure(message, yes=yes)
    try:
        approvals.approve(approvals.changes)
    except OSError as exc:
        raise click.ClickException(
            f"the approval cannot be saved: {exc}. Make the state folder writable"
        ) from None
    print_text(f"Approved: {changes} of {name}.")


def _server(invocation: Invocation, name: str) -> ServerPlugin:
    """Return the plugin that connects a configured server.

    Raises:
        click.ClickException: The server is unknown, disabled or has failed.
    """
    configured = invocation.host.settings.servers
    if name not in configured:
        hint = (
            did_you_mean(name, configured) or f"; known servers: {', '.join(configured) or 'none'}"
        )
        raise click.UsageError(f"no server {name!r} is configured{hint}")
    record = invocation.loaded_host.manager.records[name]
    if not isinstance(record.plugin, ServerPlugin):
        raise click.ClickException(f"server {name!r} is {record.status}: {record.reason}")
    return record.plugin


async def _find_changes(host: Host, server: ServerPlugin) -> None:
    """Start the server to list its definitions, unless unapproved ones are already known."""
    async with host.running([server.context.name]):
        if server.approvals and not server.approvals.changes:
            try:
                await server.connection.open()
            except ToolError as exc:
                raise click.ClickException(str(exc)) from None
