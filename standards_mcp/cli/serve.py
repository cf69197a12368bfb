"""``standards-mcp serve``."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import anyio
import click

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.text import describe_exception
from standards_mcp.commands import examples, offer

from .invocation import Invocation

if TYPE_CHECKING:
    from standards_mcp.calls.context import Principal
    from standards_mcp.config.models.settings import Settings
    from standards_mcp.host import Host
    from standards_mcp.server.context import Context
    from standards_mcp.server.reload import ReloadOptions
    from standards_mcp.server.run import Ending
    from standards_mcp.server.server import HostServer

log = logging.getLogger("standards_mcp")


def _transport_names(_: object) -> Iterator[tuple[str, str]]:
    from .transports import transport_names

    yield from ((name, "") for name in transport_names())


@click.command(
    epilog=examples(
        "serve", "--set tools.read_only=true serve", "serve --watch", "serve --transport http"
    )
)
@click.option(
    "--transport",
    metavar="[stdio|http]",
    default="stdio",
    shell_complete=offer(_transport_names),
    show_default=True,
    help="How clients reach the server.",
)
@click.option("--host", help="Listen at this address, with --transport http.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help="Listen at this port, with --transport http; by default MCP_PORT.",
)
@click.option(
    "--uds",
    type=click.Path(dir_okay=False),
    help="Listen at this Unix socket in place of a port, with --transport http.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Number of processes that serve, with --transport http.",
)
@click.option("--stateless", flag_value="true", help="Keep no sessions, with --transport http.")
@click.option(
    "--json-response", flag_value="true", help="Answer without streams, with --transport http."
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Let other machines use the service over HTTP without tokens.",
)
@click.option("--watch", is_flag=True, help="Reload the configuration file when it changes.")
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    *,
    transport: str,
    insecure: bool,
    watch: bool,
    **options: str | int | None,
) -> None:
    """Serve MCP: over stdin and stdout for one client, or over HTTP for many.

    Clients such as Claude Desktop use stdin and stdout. Logs go to stderr. SIGHUP reloads the
    configuration: the served tools, their overrides and limits, tokens and scopes; the rest needs a
    restart.
    """
    # Until the event loop handles Ctrl-C, it ends the process: a KeyboardInterrupt during an import
    # may turn into any other exception.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # SIGHUP is ignored until the server handles it, since the start reads the configuration anyway.
    # In the tenth of a second before this line, SIGHUP still ends the process.
    if hasattr(signal, "SIGHUP"):  # not on Windows
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    invocation = ctx.ensure_object(Invocation)
    pairs = [f"server.{key}={value}" for key, value in options.items() if value is not None]
    if transport == "stdio":
        if pairs or insecure:
            raise click.UsageError("these options need --transport http")
        _serve_stdio(invocation, watch=watch)
        return
    from .transports import load_transport

    invocation.pairs += (*pairs,)
    start = _Start(invocation, watch=watch, is_insecure=insecure)
    loaded = load_transport(transport, start.read_settings())
    invocation.configure_logging(serving=True)
    if code := loaded.serve(start):
        ctx.exit(code)


def _serve_stdio(invocation: Invocation, *, watch: bool) -> None:
    if sys.stdin is None:
        raise click.ClickException(
            "stdin is closed; an MCP client starts the server with stdin and stdout open"
        )
    from standards_mcp.server.sdk import import_sdk

    launch = invocation.launch
    invocation.configure_logging(serving=True)
    streams = launch.take_streams()
    import_sdk()
    host = invocation.loaded_host

    from standards_mcp.server.auditing import audited
    from standards_mcp.server.reload import ReloadOptions
    from standards_mcp.server.run import run
    from standards_mcp.server.stdio import serve_stdio
    from standards_mcp.server.tracing import traced

    async def serve_until_the_end(ending: Ending) -> None:
        async def transport(server: HostServer) -> None:
            version = server.version or ""
            async with traced(host, "pipe", version):
                with audited(host, "stdio", version):
                    await serve_stdio(
                        server,
                        streams,
                        on_stale=server.report_stale,
                        on_leaving=ending.begin,
                        idle=server.idle,
                    )

        reloading = ReloadOptions(sources=invocation.sources, watch=watch)
        await run(host, transport, reloading=reloading, launch=launch, on_signal=ending.begin)

    _run(invocation, serve_until_the_end)


class _Start:
    """See `standards_mcp.transports.Start`."""

    def __init__(self, invocation: Invocation, *, watch: bool, is_insecure: bool) -> None:
        self._invocation, self._watch, self.is_insecure = invocation, watch, is_insecure

    def read_settings(self) -> Settings:
        return self._invocation.load_settings().settings

    def is_set(self, *path: str) -> bool:
        return bool(self._invocation.load_settings().layers.source(path))

    def override(self, values: Mapping[str, str]) -> None:
        self._invocation.pairs += tuple(f"{key}={value}" for key, value in values.items())

    def load_host(self) -> Host:
        return self._invocation.loaded_host

    def reload_options(self, tell_others: Callable[[], None] | None = None) -> ReloadOptions:
        from standards_mcp.server.reload import ReloadOptions

        return ReloadOptions(
            sources=self._invocation.sources,
            watch=self._watch,
            tell_others=tell_others or (lambda: None),
        )

    def run(
        self,
        serve: Callable[[HostServer], Awaitable[None]],
        *,
        principal_of: Callable[[Context], Principal],
        reloading: ReloadOptions,
        began: float | None = None,
        drain: Callable[[], float] = lambda: 0.0,
    ) -> None:
        from standards_mcp.server.run import run

        launch = self._invocation.launch
        launch.began = launch.began if began is None else began

        async def serve_until_the_end(ending: Ending) -> None:
            await run(
                self.load_host(),
                serve,
                principal_of=principal_of,
                reloading=reloading,
                launch=launch,
                on_signal=lambda: ending.begin(drain()),
            )

        _run(self._invocation, serve_until_the_end)


def _run(invocation: Invocation, serve_until_the_end: Callable[[Ending], Awaitable[None]]) -> None:
    from standards_mcp.server.run import Ending

    gc.freeze()
    gc.enable()

    async def begin() -> None:
        ending = Ending(invocation.timing.end)
        try:
            await serve_until_the_end(ending)
        finally:
            ending.finish()

    try:
        anyio.run(begin)
    except asyncio.CancelledError:
        reason = "all tasks of the server were cancelled, which only a plugin can do"
        raise click.ClickException(reason) from None
    except (SystemExit, KeyboardInterrupt) as exc:
        if is_from_outside(exc):
            raise
        # asyncio lets these end the loop from any task or callback. Calls and hooks contain their
        # exceptions, so this one comes from a task that a plugin started itself.
        extra = {"reason": describe_exception(exc)}
        log.error("a task of a plugin ended the server", exc_info=exc, extra=extra)  # noqa: TRY400
        reason = "a task of a plugin ended the server; the log has its traceback"
        raise click.ClickException(reason) from None
