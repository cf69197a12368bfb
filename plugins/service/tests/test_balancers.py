"""Several services behind balancers, with the configuration of docs/serving.md."""
# ruff: noqa: ASYNC220, ASYNC240  files tell one process of another

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx2
import mcp_types as types
import pytest
from anyio import to_thread
from mcp import Client
from support.hosts import Install, MakeHost
from support.http import (
    BOOKS,
    free_port,
    http_client,
    patient_client,
    refused_clients,
    served_over_http,
    told_url,
)
from support.peer import Peer
from support.waiting import WAIT

from standards_mcp_service.tokens import new_token, token_hash

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="no such balancers"),
]
PAGE = (Path(__file__).parents[3] / "docs" / "serving.md").read_text("utf-8")
SYSTEM = f"{os.environ.get('PATH', '')}:/usr/sbin"


def config_of(balancer: str, port: int, services: list[str], first_line: str = "") -> str:
    """Return the configuration in the documentation, with addresses of this test."""
    services = [each.removeprefix("http://") for each in services]
    found = re.search(rf"<!-- {balancer} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found
    text = found[1].replace("8080", f"127.0.0.1:{port}" if balancer == "nginx" else str(port))
    if balancer == "nginx":
        lines = "".join(f"    server {each};\n" for each in services)
        return text.replace("    server 127.0.0.1:8000;\n", first_line + lines)
    for documented, each in zip(("127.0.0.1:8001", "127.0.0.1:8002"), services, strict=True):
        text = text.replace(documented, each)
    return text


NGINX = """
daemon off; pid {0}/pid; error_log stderr; {1}
events {{}}
http {{
access_log off;
client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0};
uwsgi_temp_path {0}; scgi_temp_path {0};
{2}
}}
"""


@asynccontextmanager
async def balanced(balancer: str, services: list[str], first_line: str = "") -> AsyncGenerator[str]:
    """Run a balancer before services; yield its URL once it answers."""
    program = shutil.which(balancer, path=SYSTEM)
    if program is None:
        pytest.skip(f"{balancer} is not installed")
    port, folder = free_port(), Path(balancer).absolute()
    folder.mkdir()
    text = config_of(balancer, port, services, first_line)
    if balancer == "nginx":
        user = "user root;" if os.geteuid() == 0 else ""
        text = NGINX.format(folder, user, text)
        command = [program, "-p", str(folder), "-c", str(folder / "conf")]
    else:
        command = [program, "-f", str(folder / "conf")]
    (folder / "conf").write_text(text, encoding="utf-8")
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            with anyio.fail_after(WAIT):
                while not await is_live(url):
                    assert process.poll() is None, (folder / "log").read_text()
            yield url
        finally:
            process.terminate()


async def is_live(url: str) -> bool:
    try:
        async with patient_client(base_url=url) as client:
            return (await client.get("/health/live")).is_success
    except httpx2.TransportError:
        return False


async def agree(_context: object, _params: types.ElicitRequestParams) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"value": True})


async def text_of(client: Client, name: str) -> str:
    answer = await client.call_tool(name, {})
    block = answer.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


async def hears_at_once(client: Client) -> None:
    """Call a tool that ends when its progress has been heard."""
    go = Path("go")

    async def hear(_done: float, _total: float | None, _message: str | None) -> None:
        go.touch()

    with anyio.fail_after(WAIT):
        answer = await client.call_tool("wait", {}, progress_callback=hear)
    assert not answer.is_error
    go.unlink()


@contextmanager
def two_services(*options: str) -> Iterator[list[Peer]]:
    with ExitStack() as stack:
        peers: list[Peer] = []
        for _ in range(2):
            peers.append(Peer("serve", "--transport", "http", "--port", "0", *options))
            stack.callback(peers[-1].kill)
        yield peers


async def test_sessions_stay_with_their_service(install: Install, monkeypatch: pytest.MonkeyPatch):
    install("books", BOOKS)
    tokens = [new_token() for _ in range(2)]
    for number, token in enumerate(tokens):
        name = f"STANDARDS_MCP_SERVER__AUTH__TOKENS__T{number}__SHA256"
        monkeypatch.setenv(name, token_hash(token))
    monkeypatch.setenv("STANDARDS_MCP_SERVER__STATE_KEY", "k" * 32)
    with two_services() as peers:
        services = [await to_thread.run_sync(told_url, peer) for peer in peers]
        async with balanced("haproxy", services) as url:
            await a_whole_session(url, tokens[0], "auto")
            served_by: set[str] = set()
            with anyio.fail_after(WAIT):
                while len(served_by) < len(peers):
                    served_by |= await a_whole_session(url, tokens[0], "legacy")
        async with balanced("nginx", services, "hash $http_authorization consistent;") as url:
            for token in tokens:
                for mode in ("legacy", "auto"):
                    await a_whole_session(url, token, mode)


async def a_whole_session(url: str, token: str, mode: str) -> set[str]:
    """Use all that a client can; return the only process that a session of its has met."""
    async with http_client(url, token, mode=mode, elicitation_callback=agree) as client:
        pids = {await text_of(client, "who") for _ in range(4)}
        assert mode == "auto" or len(pids) == 1
        assert (await text_of(client, "lend")).startswith("True ")
        await hears_at_once(client)
        return pids


@pytest.mark.parametrize("balancer", ["nginx", "haproxy"])
async def test_the_log_has_the_address_that_the_proxy_saw_and_not_one_that_a_client_made_up(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture, balancer: str
):
    caplog.set_level("INFO", "standards_mcp")
    server = {"port": 0, "trusted_proxies": ["127.0.0.1"], "auth": {"required": True}}
    host = make_host({}, server=server)
    async with (
        served_over_http(host) as service,
        balanced(balancer, [service] * 2) as url,
        patient_client(headers={"x-forwarded-for": "203.0.113.7"}) as client,
    ):
        assert (await client.get(f"{url}/health", auth=("", "wrong"))).status_code == 401
    assert refused_clients(caplog) == ["127.0.0.1"]
