"""``standards-mcp serve``."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from functools import partial
from typing import Final

import anyio
import click

from standards_mcp._utils.streams import claim_standard_streams
from standards_mcp.config.loading import config_paths

from . import BEGAN
from .invocation import Invocation
from .output import examples

log = logging.getLogger("standards_mcp")


_END_SECONDS: Final = 2.0
"""How long the end of the server may take once all plugins have had their time to stop."""


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
    invocation = ctx.ensure_object(Invocation)
    invocation.configure_logging(serving=True)
    reader, writer = claim_standard_streams()
    host = invocation.loaded_host

    from standards_mcp.server.run import Reloading, run
    from standards_mcp.server.stdio import serve_stdio

    transport = partial(serve_stdio, reader=reader, writer=writer)
    reloading = Reloading(
        load=invocation.load_settings, locations=config_paths(invocation.config), watch=watch
    )
    gc.freeze()
    gc.enable()

    async def run_until_the_end() -> None:
        try:
            await run(host, transport, reloading=reloading, began=BEGAN)
        finally:
            _end_within(_END_SECONDS)

    anyio.run(run_until_the_end)


def _end_within(seconds: float) -> None:
    """End the process after this time if it has not ended by then.

    An event loop waits at its end for all tasks, and a plugin's may be deaf to being cancelled.
    """

    def end() -> None:
        log.error("the process is ended while a plugin still runs")
        logging.shutdown()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
