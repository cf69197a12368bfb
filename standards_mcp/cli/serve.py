"""``standards-mcp serve``."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from functools import partial

import anyio
import click

from standards_mcp._utils.streams import claim_standard_streams
from standards_mcp.config.loading import config_paths

from . import BEGAN
from .invocation import Invocation
from .output import examples


@click.command(epilog=examples("serve", "--set tools.read_only=true serve", "serve --watch"))
@click.option("--watch", is_flag=True, help="Reload the configuration file when it changes.")
@click.pass_context
def serve(ctx: click.Context, *, watch: bool) -> None:
    """Serve MCP over stdin and stdout, for one client.

    This is what a client such as Claude Desktop starts. Logs go to stderr. SIGHUP reloads the
    configuration: which tools are served, their overrides and limits; the rest needs a restart.
    """
    if sys.stdin is None:
        raise click.ClickException(
            "stdin is closed; an MCP client starts this with both pipes open"
        )
    # Until the event loop handles it, Ctrl-C just ends the process: raised in the midst of an
    # import, it can come out as any other exception.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGHUP"):  # Windows has none; the start reads the configuration anyway
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    invocation = ctx.ensure_object(Invocation)
    invocation.configure_logging(serving=True)
    reader, writer = claim_standard_streams()
    host = invocation.loaded_host

    from standards_mcp.server.ending import Ending
    from standards_mcp.server.reload import Reloading
    from standards_mcp.server.run import run
    from standards_mcp.server.stdio import serve_stdio
    from standards_mcp.server.steady_loop import SteadyLoop

    reloading = Reloading(
        load=invocation.load_settings, paths=config_paths(invocation.config), watch=watch
    )
    gc.freeze()
    gc.enable()

    async def run_until_the_end() -> None:
        ending = Ending(invocation.timing.end, host.plugins_by_package)
        transport = partial(serve_stdio, reader=reader, writer=writer, on_leaving=ending.begin)
        try:
            await run(host, transport, reloading=reloading, began=BEGAN, on_signal=ending.begin)
        finally:
            ending.finish()

    try:
        anyio.run(run_until_the_end, backend_options={"loop_factory": SteadyLoop})
    except asyncio.CancelledError:
        why = "all tasks of the server were cancelled, which only a plugin can do"
        raise click.ClickException(why) from None
