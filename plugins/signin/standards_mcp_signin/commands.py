"""``standards-mcp servers list``, ``login`` and ``logout``."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit

import anyio
import click

from standards_mcp import ApiError
from standards_mcp.commands import Report, did_you_mean, examples, offer, print_text, reports, table
from standards_mcp.transports import Host, Settings

from .login import SECONDS, begin, finish, sign_out
from .sign_in import OPERATOR, OAuth

_PATH: Final = "/signed-in"


class _Invocation(Protocol):
    @property
    def host(self) -> Host: ...

    @property
    def settings(self) -> Settings: ...


def _names(invocation: _Invocation) -> Iterator[tuple[str, str]]:
    for name, section in invocation.settings.servers.items():
        if section.auth:
            yield name, section.auth.grant


_name = click.argument("name", shell_complete=offer(_names))


@click.command("list", epilog=examples("servers list", "servers list --json"))
@click.pass_obj
@reports
def list_servers(invocation: _Invocation) -> Report:
    """List the other MCP servers, with the state of the sign-in."""
    host, servers = invocation.host, invocation.settings.servers
    host.load(only=[name for name, _ in _names(invocation)])
    data = [
        {"name": name, "sign_in": _state(_loaded(host, name)) if section.auth else "needs none"}
        for name, section in servers.items()
    ]
    rows = [(each["name"], each["sign_in"]) for each in data]
    return Report(data, lambda: table(rows) or "No other MCP server is configured.")


def _state(sign_in: OAuth | str) -> str:
    return sign_in.status() if isinstance(sign_in, OAuth) else sign_in


def _loaded(host: Host, name: str) -> OAuth | str:
    """Return the sign-in of a loaded server, or the reason why it has none."""
    record = host.manager.records[name]
    sign_in: object = getattr(record.plugin, "sign_in", None)
    return sign_in if isinstance(sign_in, OAuth) else record.reason


@click.command(epilog=examples("servers login wiki", "servers login wiki --no-browser"))
@_name
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Listen at this port.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.pass_obj
def login(invocation: _Invocation, name: str, port: int, *, no_browser: bool) -> None:
    """Sign in at the server NAME with a browser.

    The authorization server leads the browser back to a port of this machine. The tokens are kept
    in the state folder, encrypted. A host over stdio uses them, and each host for its lists.
    """
    sign_in = _sign_in(invocation, name)
    if sign_in.auth.grant != "authorization_code":
        raise click.ClickException(f"{name} needs no login: it {sign_in.status()}")
    with HTTPServer(("127.0.0.1", port), _Handler) as server:
        redirect = f"http://127.0.0.1:{server.server_port}{_PATH}"
        url, state = anyio.run(begin, sign_in, OPERATOR, redirect)
        print_text(f"Open this address in a browser, and sign in:\n{url}", err=True)
        if not no_browser:
            webbrowser.open(url)
        answer = _wait_for_answer(server, state)
    anyio.run(finish, sign_in, OPERATOR, redirect, answer)
    print_text(f"{name}: {sign_in.status()}.")


class _Handler(BaseHTTPRequestHandler):
    """Answers requests to the port of a sign-in."""

    timeout = 5.0  # for a browser that connects and sends nothing

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        is_answer = target.path == _PATH
        if is_answer:
            vars(self.server)["query"] = dict(parse_qsl(target.query))
        text = b"You can close this page.\n" if is_answer else b"Nothing is here.\n"
        self.send_response(200 if is_answer else 404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(text)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing, because the address has the code."""


def _wait_for_answer(server: HTTPServer, state: str) -> dict[str, str]:
    """Return the query of the request with this state; other programs may send requests, too."""
    server.timeout = 1.0
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        server.handle_request()
        query: dict[str, str] = vars(server).pop("query", {})
        if query.get("state") == state:
            return query
    raise ApiError(f"nobody signed in within {SECONDS} s; try again")


@click.command(epilog=examples("servers logout wiki"))
@_name
@click.pass_obj
def logout(invocation: _Invocation, name: str) -> None:
    """Delete the tokens of `servers login NAME`, and revoke them if the server offers that."""
    sign_in = _sign_in(invocation, name)
    anyio.run(sign_out, sign_in, OPERATOR)
    print_text(f"{name}: {sign_in.status()}.")


def _sign_in(invocation: _Invocation, name: str) -> OAuth:
    """Return the sign-in of a configured server.

    Raises:
        click.ClickException: The server is unknown, disabled, has failed or has no ``auth``.
    """
    names = [name for name, _ in _names(invocation)]
    if name not in names:
        hint = did_you_mean(name, names) or f"; servers with auth: {', '.join(names) or 'none'}"
        raise click.UsageError(f"no server {name!r} with auth is configured{hint}")
    invocation.host.load(only=(name,))
    sign_in = _loaded(invocation.host, name)
    if not isinstance(sign_in, OAuth):
        raise click.ClickException(f"server {name!r} cannot be used: {sign_in}")
    return sign_in
