"""``standards-mcp serve``."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Final

import anyio
import click

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.text import describe_exception
from standards_mcp.commands import examples

from .invocation import Invocation

if TYPE_CHECKING:
    from standards_mcp.server.run import Ending
    from standards_mcp.server.server import HostServer

log = logging.getLogger("standards_mcp")

_SAME_SIGNAL_SECONDS: Final = 1.0
_PORT_VARIABLE: Final = "MCP_PORT"
_LAST_PORT: Final = 65_535


@click.command(
    epilog=examples(
        "serve", "--set tools.read_only=true serve", "serve --watch", "serve --transport http"
    )
)
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    show_default=True,
    help="How clients reach the server.",
)
@click.option("--host", help="Listen at this address, with --transport http.")
@click.option(
    "--port",
    type=click.IntRange(0, _LAST_PORT),
    help=f"Listen at this port, with --transport http; by default {_PORT_VARIABLE}.",
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
    if transport == "http":
        invocation.pairs += (*pairs,)
        invocation.pairs += _port_of_environment(invocation)
        _serve_http(invocation, watch=watch, insecure=insecure)
    elif pairs or insecure:
        raise click.UsageError("these options need --transport http")
    else:
        _serve_stdio(invocation, watch=watch)


def _port_of_environment(invocation: Invocation) -> tuple[str, ...]:
    """Return ``MCP_PORT`` as a setting, unless a setting has the port or the socket.

    Only this command reads the variable: it may be meant for another program.

    Raises:
        click.UsageError: The variable is not a port.
    """
    text = os.environ.get(_PORT_VARIABLE, "").strip()
    layers = invocation.load_settings().layers
    if not text or any(layers.source(("server", key)) for key in ("port", "uds")):
        return ()
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > _LAST_PORT:
        raise click.UsageError(
            f"{_PORT_VARIABLE} in the environment is not a port from 0 to {_LAST_PORT}. Correct "
            "it, or use --port, which overrides it."
        )
    return (f"server.port={int(text)}",)


def _serve_stdio(invocation: Invocation, *, watch: bool) -> None:
    if sys.stdin is None:
        raise click.ClickException(
            "stdin is closed; an MCP client starts the server with stdin and stdout open"
        )
    launch = invocation.launch
    invocation.configure_logging(serving=True)
    streams = launch.take_streams()
    host = invocation.loaded_host

    from standards_mcp.server.audit import audited
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
                    )

        reloading = ReloadOptions(sources=invocation.sources, watch=watch)
        await run(host, transport, reloading=reloading, launch=launch, on_signal=ending.begin)

    _run(invocation, serve_until_the_end)


def _serve_http(invocation: Invocation, *, watch: bool, insecure: bool) -> None:
    invocation.configure_logging(serving=True)
    settings = invocation.load_settings().settings.server

    from standards_mcp.server.http.authorization import Principals
    from standards_mcp.server.http.listening import (
        Workers,
        check_exposure,
        check_workers,
        listen,
        shared_settings,
    )
    from standards_mcp.server.http.serving import CLOSING_SECONDS, serve_http
    from standards_mcp.server.reload import ReloadOptions
    from standards_mcp.server.run import run

    if not insecure:
        check_exposure(settings)
    check_workers(settings)
    listening = listen(settings)
    on_listening, tell_others = None, None
    if settings.workers > 1:
        shared = shared_settings(settings)
        parent = Workers(settings.workers, listening).run()
        if isinstance(parent, int):
            click.get_current_context().exit(parent)
        invocation.pairs += tuple(f"{key}={value}" for key, value in shared.items())
        invocation.launch.began = perf_counter()
        on_listening = parent.tell_ready
        tell_others = parent.ask_for_reload
    drain_now = _drain_timer(settings.drain + CLOSING_SECONDS)
    host = invocation.loaded_host
    principals = Principals(lambda: host.settings.server.auth)
    reloading = ReloadOptions(
        sources=invocation.sources, watch=watch, tell_others=tell_others or (lambda: None)
    )
    transport = partial(
        serve_http,
        host=host,
        listening=listening,
        principals=principals,
        on_listening=on_listening,
        reloading=reloading,
    )

    async def serve_until_the_end(ending: Ending) -> None:
        await run(
            host,
            transport,
            principal_of=principals,
            reloading=reloading,
            launch=invocation.launch,
            on_signal=lambda: ending.begin(drain_now()),
        )

    _run(invocation, serve_until_the_end)


def _drain_timer(seconds: float) -> Callable[[], float]:
    """Return a function to call at each signal; it returns the time left for calls in flight.

    A second signal means that the user does not want to wait. But a terminal and a service manager
    send a signal to workers and to their parent, which passes it on: these count as one.
    """
    signals: list[float] = []

    def remaining() -> float:
        signals.append(monotonic())
        return seconds if signals[-1] - signals[0] < _SAME_SIGNAL_SECONDS else 0.0

    return remaining


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
