"""Hosts that are served over HTTP at a free port, and clients of them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from standards_mcp.host import Host
from standards_mcp.server.reload import ReloadOptions
from standards_mcp.server.run import run
from standards_mcp_service.authorization import Principals
from standards_mcp_service.listening import listen, url_of
from standards_mcp_service.serving import serve_http
from standards_mcp_service.tokens import token_hash

from . import conversations
from .peer import COMMAND, Peer
from .waiting import WAIT, wait_until

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": conversations.INITIALIZE,
}
BOOKS = """
    import os, pathlib
    import anyio
    from pydantic import BaseModel
    from standards_mcp import CallContext, Plugin, tool

    class Reply(BaseModel):
        value: bool

    class BooksPlugin(Plugin):
        @tool
        def who(self) -> str:
            '''Tell.'''
            return str(os.getpid())

        @tool
        async def lend(self, context: CallContext) -> str:
            '''Ask.'''
            answer = await context.ask("Sure?", Reply)
            return f"{answer.value} {os.getpid()}"

        @tool
        async def wait(self, context: CallContext) -> str:
            '''Wait until there is a file.'''
            pathlib.Path("waiting").touch()
            await context.report_progress(1)
            while not pathlib.Path("go").exists():
                await anyio.sleep(0.01)
            return "waited"
"""
"""A plugin for processes: who answers, and that it asks and waits."""
ACCEPT = {"accept": "application/json, text/event-stream"}
patient_client = partial(httpx2.AsyncClient, timeout=WAIT)
"""Opens an HTTP client that waits for as long as a busy machine may take."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def told_url(peer: Peer) -> str:
    """Return the URL at which a process serves, once it does."""
    peer.wait_for_log('"listening"')
    url: str = next(each["url"] for each in peer.events() if each["event"] == "listening")
    return url.removesuffix("/mcp")


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def auth_of(scopes: Mapping[str, Any] | None = None, **holders: Any) -> dict[str, Any]:
    """Return settings with tokens: of each name a token, or a tuple of it and its scopes."""
    tokens: dict[str, Any] = {}
    for name, held in holders.items():
        token, *of_token = (held, "*") if isinstance(held, str) else held
        tokens[name] = {"sha256": token_hash(token), "scopes": of_token}
    return {"tokens": tokens, "scopes": scopes or {}}


def refused_clients(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the addresses from which requests were refused, as the log has them."""
    return [vars(each)["client"] for each in caplog.records if "is refused" in each.message]


@asynccontextmanager
async def served_over_http(
    host: Host, reloading: ReloadOptions | None = None
) -> AsyncGenerator[str]:
    """Serve a host, whose settings have port 0, while the context is open; yield its URL."""
    listening = listen(host.settings.server)
    principals = Principals(lambda: host.settings.server.auth)
    transport = partial(
        serve_http, host=host, listening=listening, principals=principals, reloading=reloading
    )
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        stack.callback(listening.close)  # also where the service ends before it takes it over
        tasks.start_soon(partial(run, host, transport, principal_of=principals))
        yield url_of(listening).removesuffix("/mcp")
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def http_client(
    url: str, token: str = "", *, mode: str = "auto", **arguments: Any
) -> AsyncGenerator[Client]:
    """Open an MCP client of the service at *url*."""
    headers = bearer(token) if token else {}
    async with patient_client(headers=headers) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode, **arguments) as client:
            yield client


@asynccontextmanager
async def client_of(
    host: Host, token: str = "", *, mode: str = "auto", **arguments: Any
) -> AsyncGenerator[Client]:
    """Serve a host, and open an MCP client of it."""
    async with (
        served_over_http(host) as url,
        http_client(url, token, mode=mode, **arguments) as client,
    ):
        yield client


@asynccontextmanager
async def requests_to(host: Host, **arguments: Any) -> AsyncGenerator[httpx2.AsyncClient]:
    """Serve a host, and open an HTTP client whose paths begin at its root."""
    async with (
        served_over_http(host) as url,
        patient_client(base_url=url, **arguments) as client,
    ):
        yield client


async def open_session(client: httpx2.AsyncClient, token: str = "") -> dict[str, str]:
    """Open a session of an earlier generation; return the headers of its requests."""
    headers = ACCEPT | (bearer(token) if token else {})
    opened = await client.post("/mcp", json=INITIALIZE, headers=headers)
    return headers | {"mcp-session-id": opened.headers["mcp-session-id"]}


def rpc(method: str, **params: Any) -> dict[str, Any]:
    """Return a JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 2, "method": method} | ({"params": params} if params else {})


MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


async def call_anew(
    url: str, tool: str, headers: Mapping[str, str] | None = None, **params: Any
) -> dict[str, Any]:
    """Call a tool of a service that answers with JSON over a connection of its own."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {}, "_meta": MODERN, **params},
    }
    sent = {
        **ACCEPT,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
        **(headers or {}),
    }
    async with patient_client(headers=sent) as client:
        answer: dict[str, Any] = (await client.post(f"{url}/mcp", json=message)).json()
        if error := answer.get("error"):
            raise MCPError(error["code"], error["message"])
        return answer["result"]


@contextmanager
def served_process(
    folder: Path, *, catalog: Path | None = None, path: Path | None = None
) -> Iterator[str]:
    """Serve over HTTP in a process, while the context is open; yield its URL.

    Args:
        folder: Where it has its home and its log.
        catalog: The folder of its catalog, if it is not to make one.
        path: A folder with plugins that are installed, in place of those of this environment.
    """
    log = folder / "log"
    settings = ("STANDARDS_MCP_", "PINECONE_", "XDG_")
    variables = {key: value for key, value in os.environ.items() if not key.startswith(settings)}
    variables["HOME"] = str(folder)
    if catalog:
        variables["STANDARDS_MCP_PLUGINS__CATALOG__PATH"] = str(catalog)
    if path:
        variables["PYTHONPATH"] = os.pathsep.join((str(path), variables["PYTHONPATH"]))
    command = [*COMMAND, "serve", "--transport", "http", "--port", "0"]
    with (
        log.open("wb") as stderr,
        subprocess.Popen(command, stderr=stderr, env=variables, cwd=folder) as process,
    ):
        try:
            wait_until(lambda: process.poll() is not None or _served_url(log), log.read_text)
            yield _served_url(log)
        finally:
            process.terminate()
            process.wait(WAIT)


@contextmanager
def served_behind(folder: Path, site: Path, *, catalog: Path | None = None) -> Iterator[str]:
    """Serve a host over HTTP, all of whose contributions come from another host; yield its URL.

    Args:
        site: A folder with the plugins of the other host.
        catalog: As for `served_process`.
    """
    home = folder / "inner"  # elsewhere, it would find the configuration with itself
    home.mkdir()
    environment = {
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join((str(site), os.environ["PYTHONPATH"])),
    }
    if catalog:
        environment["STANDARDS_MCP_PLUGINS__CATALOG__PATH"] = str(catalog)
    program, *options = COMMAND
    values = {"command": program, "args": [*options, "serve"], "cwd": str(home)}
    values |= {"prefix": "", "start_timeout": WAIT}
    values |= {f"env.{name}": value for name, value in environment.items()}
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    text = "\n".join(["autoload = false", "[servers.inner]", *lines])
    (folder / "standards-mcp.toml").write_text(text, encoding="utf-8")
    with served_process(folder) as url:
        yield url


def _served_url(log: Path) -> str:
    for line in log.read_text(encoding="utf-8").splitlines():
        if '"event": "listening"' in line:
            return str(json.loads(line)["url"]).removesuffix("/mcp")
    return ""
