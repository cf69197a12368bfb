"""``standards-mcp connect``: reach a service over HTTP from a client that starts programs."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import AsyncGenerator, Sequence
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
_CHECK_SECONDS: Final = 10
_CLIENT: Final = {"name": "standards-mcp connect", "version": "1"}
_META: Final = {_VERSION_KEY: "2026-07-28", _CLIENT_KEY: _CLIENT, _CAPABILITIES_KEY: {}}
_QUESTIONS: Final[tuple[dict[str, Any], ...]] = (
    {"id": 1, "method": "server/discover", "params": {"_meta": _META}},
    {"id": 2, "method": "tools/list", "params": {"_meta": _META}},
)
_HANDSHAKE: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}
_EARLIER_QUESTIONS: Final[tuple[dict[str, Any], ...]] = (
    {"id": 1, "method": "initialize", "params": _HANDSHAKE},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)
"""For services that are older than 2026-07-28."""


def service_address(_context: click.Context, _option: click.Parameter, text: str | None) -> str:
    """Return the address, with `/mcp` if it has no path, or "" if none was given.

    Raises:
        BadParameter: The text is no address, holds a password, or would send a token unencrypted.
    """
    from standards_mcp import is_unencrypted  # noqa: PLC0415  - imported when it is needed

    if not text:
        return ""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises if it is no number of a port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        shown = "this" if "@" in text else repr(text)  # before "@" there may be a password
        raise click.BadParameter(f"{shown} is not an address; write https://HOST")
    if "@" in parts.netloc:
        raise click.BadParameter("leave out the user name and the password; use --token-env")
    if is_unencrypted(text):
        raise click.BadParameter("a token would be sent unencrypted; write https://")
    has_path = parts.path not in {"", "/"}
    return text if has_path else parts._replace(path=_DEFAULT_PATH).geturl()


def token_of(variable: str | None) -> str:
    """Return the token in an environment variable, or "" if no variable is named.

    Raises:
        UsageError: The variable is not set, or its value cannot be a token.
    """
    if not variable:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise click.UsageError(f"--token-env {variable}: this variable is not set here; set it")
    if not (token.isascii() and token.isprintable()):
        reason = "its value has a line break or another character that no token has"
        raise click.UsageError(f"--token-env {variable}: {reason}; set it again")
    return token


token_option = click.option(
    "--token-env",
    metavar="NAME",
    help="The environment variable that holds the token, as `auth token new` printed it.",
)


@click.command(
    epilog=examples(
        "connect https://mcp.example.org --token-env MCP_TOKEN --check",
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

    async with _http_client(url, token) as http:
        await Bridge(http, url, _write_line).run(_read_lines())


async def _check(url: str, token: str) -> str:
    """Ask the service for its name and its tools, and return them in words.

    Raises:
        StandardsMcpError: The service cannot be reached, refuses the token, or does not answer.
    """
    async with _http_client(url, token) as http:
        answers = await _ask(http, url, _QUESTIONS)
        if any("error" in answer for answer in answers):
            answers = await _ask(http, url, _EARLIER_QUESTIONS)
    for answer in answers:
        if "error" in answer:
            raise StandardsMcpError(str(answer["error"]["message"]))
    if len(answers) < 2:  # noqa: PLR2004  - the two questions
        raise StandardsMcpError(f"{url} did not answer within {_CHECK_SECONDS} seconds")
    results: list[dict[str, Any]] = [answer.get("result") or {} for answer in answers]
    about, listing = results[:2]
    meta: dict[str, Any] = about.get("_meta") or {}
    server: dict[str, Any] = about.get("serverInfo") or meta.get(_SERVER_KEY) or {}
    name, version = server.get("name", "a server"), server.get("version", "")
    return f"{url} answers: {name} {version} with {len(listing.get('tools', []))} tools"


async def _ask(
    http: httpx2.AsyncClient, url: str, messages: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Send each message after the answer to the one before, and return the answers.

    No more is asked after an error, nor after `_CHECK_SECONDS`.
    """
    import anyio  # noqa: PLC0415  - imported when it is needed

    from .bridge import Bridge  # noqa: PLC0415  - as above

    answers: list[dict[str, Any]] = []
    write, arrivals = anyio.create_memory_object_stream[dict[str, Any]](math.inf)

    async def keep(line: str) -> None:
        message = json.loads(line)
        if "method" not in message:  # notifications and questions of the service are not for us
            write.send_nowait(message)

    async def lines() -> AsyncGenerator[bytes]:
        for message in messages:
            yield json.dumps({"jsonrpc": "2.0"} | message).encode()
            if "id" in message:
                answers.append(await arrivals.receive())
                if "error" in answers[-1]:
                    return

    with write, arrivals, anyio.move_on_after(_CHECK_SECONDS):
        await Bridge(http, url, keep).run(lines())
    return answers


def _http_client(url: str, token: str) -> httpx2.AsyncClient:
    import httpx2  # noqa: PLC0415  - imported when it is needed

    from standards_mcp import may_use_proxy  # noqa: PLC0415  - as above

    from .bridge import TIMEOUT  # noqa: PLC0415  - as above

    limits = httpx2.Limits(max_connections=None)  # each open request of the client has one
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx2.AsyncClient(
        headers=headers, timeout=TIMEOUT, limits=limits, trust_env=may_use_proxy(url)
    )


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
