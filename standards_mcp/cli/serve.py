"""``standards-mcp serve``."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from typing import Any, Final

import anyio
import click
import importlib_metadata

from standards_mcp._utils.streams import claim_standard_streams
from standards_mcp.catalog import CatalogError
from standards_mcp.config.loading import config_paths
from standards_mcp.host import Host

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

    from standards_mcp.server.reload import reload_on_change
    from standards_mcp.server.server import HostServer, build_server, serve_stdio

    version = importlib_metadata.version("standards-mcp")

    async def announce(server: HostServer) -> None:
        milliseconds = round((time.perf_counter() - BEGAN) * 1000)
        await server.first_listing()  # counting records must not hold up what a client waits for
        log.info("started", extra=await _summary(host, version) | {"milliseconds": milliseconds})

    async def reloads(server: HostServer) -> None:
        await reload_on_change(
            host,
            invocation.load_settings,
            config_paths(invocation.config),
            server.tell_changed,
            watch=watch,
        )

    server = build_server(host, version, announce, reloads)
    gc.freeze()
    gc.enable()

    async def run() -> None:
        try:
            await serve_stdio(server, reader, writer)
        finally:
            _end_within(_END_SECONDS)

    anyio.run(run)


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


async def _summary(host: Host, version: str) -> dict[str, Any]:
    records = host.manager.records.values()
    summary: dict[str, Any] = {
        "version": version,
        "plugins": {
            record.name: f"{record.status}: {record.reason}" if record.reason else record.status
            for record in records
        },
        "tools": [item.published for item in host.selection.visible_tools],
    }
    backend, reason = host.settings.catalog.choice
    summary["catalog"] = {"backend": backend, "reason": reason}
    if backend == "pinecone":  # its size would take a request and half a second for its SDK
        summary["catalog"] |= {"index": host.settings.catalog.pinecone.index_name}
        return summary
    try:
        stats = await host.catalog.stats()
        pending = stats.details.get("pending")
        holds = {"pending": pending} if pending else {"records": stats.records}
        summary["catalog"] |= {"backend": stats.backend, **holds}
    except CatalogError as exc:
        summary["catalog"] |= {"error": str(exc)}
    return summary
