"""The service at a Unix socket."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from support.hosts import MakeHost
from support.http import patient_client, refused_clients, served_over_http

from standards_mcp import Plugin, tool
from standards_mcp.config.loading import load_settings
from standards_mcp.config.models.http import HttpSettings
from standards_mcp.errors import StandardsMcpError
from standards_mcp_service.listening import check_exposure, listen

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="Python has no Unix sockets there"),
]


class BooksPlugin(Plugin):
    """A tool."""

    @tool
    def find_book(self) -> str:
        """Find."""
        return "found"


@pytest.fixture
def path() -> Path:
    return Path("socket")  # a system has room for a hundred letters


def through(path: Path) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(uds=str(path))
    return patient_client(transport=transport, base_url="http://localhost")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_reach_it_through_its_file(make_host: MakeHost, path: Path, mode: str):
    host = make_host({"books": BooksPlugin}, server={"uds": path})
    async with served_over_http(host) as url, through(path) as http:
        assert url == f"unix:{path}"
        transport = streamable_http_client("http://localhost/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert not (await client.call_tool("find_book", {})).is_error


async def test_the_host_is_checked_as_at_a_port(make_host: MakeHost, path: Path):
    server = {"uds": path, "allowed_hosts": ["mcp.example.org"]}
    for settings, status in (({"uds": path}, 421), (server, 200)):
        host = make_host({"books": BooksPlugin}, server=settings)
        async with served_over_http(host), through(path) as client:
            answer = await client.get("/health", headers={"host": "mcp.example.org"})
            assert answer.status_code == status


async def test_the_proxy_that_uses_it_may_say_from_where_a_request_comes(
    make_host: MakeHost, path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO", "standards_mcp")
    server = {"uds": path, "trusted_proxies": ["*"]}
    async with served_over_http(make_host({}, server=server)), through(path) as client:
        headers = {"x-forwarded-for": "203.0.113.7"}
        await client.get("/health/live", auth=("", "wrong"), headers=headers)
    assert refused_clients(caplog) == ["203.0.113.7"]


def test_it_is_for_the_user_and_the_group_on_this_machine(path: Path):
    settings = HttpSettings(uds=path, host="0.0.0.0")  # noqa: S104
    check_exposure(settings)
    with listen(settings):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660


def test_a_file_is_replaced_only_where_a_process_has_left_a_socket(path: Path):
    settings = HttpSettings(uds=path)
    with listen(settings), pytest.raises(StandardsMcpError, match="another process listens at"):
        listen(settings)
    listen(settings).close()
    path.unlink()
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(StandardsMcpError, match="is not a socket"):
        listen(settings)
    assert path.read_text("utf-8") == "mine"


def test_a_path_in_the_file_is_relative_to_it(tmp_path: Path):
    file = tmp_path / "standards-mcp.toml"
    file.write_text('[server]\nuds = "run/socket"\n', encoding="utf-8")
    assert load_settings(file).settings.server.uds == tmp_path / "run" / "socket"
