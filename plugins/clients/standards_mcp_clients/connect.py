"""``standards-mcp connect``: reach a service over HTTP from a client that starts programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from standards_mcp.commands import examples, print_text
from standards_mcp.errors import StandardsMcpError

if TYPE_CHECKING:
    import httpx2

_DEFAULT_PATH: Final = "/mcp"
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
_CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
_SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"


def service_address(_context: click.Context, _option: click.Parameter, text: str | None) -> str:
    """Return the address of a service, with its usual path if it has none; "" without one.

    Raises:
        BadParameter: The text is no address, holds a password, or would send a token unencrypted.
    """
    from standards_mcp import is_unencrypted  # noqa: PLC0415  - imported when it is needed

    if not text:
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise click.BadParameter(f"{text!r} is not an address; write https://HOST")
    if "@" in parts.netloc:
        raise click.BadParameter("leave out the user name and the password; use --token-env")
    if is_unencrypted(text):
        raise click.BadParameter("a token would be sent unencrypted; write https://")
    has_path = parts.path not in {"", "/"}
    return text if has_path else parts._replace(path=_DEFAULT_PATH).geturl()


def token_of(variable: str | None) -> str:
    """Return the token in an environment variable, or "" if no variable is named.

    Raises:
        UsageError: The variable is not set.
    """
    if not variable:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise click.UsageError(f"--token-env {variable}: this variable is not set here; set it")
    return token


token_option = click.option(
    "--token-env",
    metavar="NAME",
    help="The environment variable that holds the token, as `auth token new` printed it.",
)


@click.command(
    epilog=examples(
        "connect https://standards.example.org --token-env STANDARDS_TOKEN --check",
        "connect http://127.0.0.1:8000",
    )
)
@click.argument("url", callback=service_address)
@token_option
@click.option("--check", is_flag=True, help="Say whether the service answers, and end.")
def connect(*, url: str, token_env: str | None, check: bool) -> None:
    """Connect a client on stdin and stdout to the service at URL.

    The client starts this command in place of a server. It needs no configuration and no standards
    on this machine. `install CLIENT --url URL` writes the entry.
    """
    import anyio  # noqa: PLC0415  - imported when it is needed

    token = token_of(token_env)
    if check:
        print_text(anyio.run(_check, url, token))
    else:
        anyio.run(_serve, url, token)


async def _serve(url: str, token: str) -> None:
    from .bridge import Bridge  # noqa: PLC0415  - imported when it is needed

    async with _http_client(token) as http:
        await Bridge(http, url, _write_line).run(_read_lines())


async def _check(url: str, token: str) -> str:
    """Ask the service for its name and its tools, and return them in words.

    Raises:
        StandardsMcpError: The service cannot be reached, or refuses the token.
    """
    from .bridge import Bridge  # noqa: PLC0415  - imported when it is needed

    answers: dict[str, dict[str, Any]] = {}

    async def keep(line: str) -> None:
        answer = json.loads(line)
        answers[answer["id"]] = answer

    async with _http_client(token) as http:
        await Bridge(http, url, keep).run(_questions())
    for answer in answers.values():
        if error := answer.get("error"):
            raise StandardsMcpError(str(error["message"]))
    server = answers["server/discover"]["result"]["_meta"][_SERVER_KEY]
    count = len(answers["tools/list"]["result"]["tools"])
    return f"{url} answers: {server['name']} {server['version']} with {count} tools"


async def _questions() -> AsyncGenerator[bytes]:
    client = {"name": "standards-mcp connect", "version": "1"}
    meta = {_VERSION_KEY: "2026-07-28", _CLIENT_KEY: client, _CAPABILITIES_KEY: {}}
    for method in ("server/discover", "tools/list"):
        request = {"jsonrpc": "2.0", "id": method, "method": method, "params": {"_meta": meta}}
        yield json.dumps(request).encode()


def _http_client(token: str) -> httpx2.AsyncClient:
    import httpx2  # noqa: PLC0415  - imported when it is needed

    from .bridge import TIMEOUT  # noqa: PLC0415  - as above

    limits = httpx2.Limits(max_connections=None)  # each open request of the client has one
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(headers=headers, timeout=TIMEOUT, limits=limits)


async def _read_lines() -> AsyncGenerator[bytes]:
    from anyio import to_thread  # noqa: PLC0415  - imported when it is needed

    # A thread, since pipes cannot be read asynchronously on Windows, nor files anywhere.
    while line := await to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True):
        yield line


async def _write_line(line: str) -> None:
    from anyio import to_thread  # noqa: PLC0415  - imported when it is needed

    def write() -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    await to_thread.run_sync(write)
