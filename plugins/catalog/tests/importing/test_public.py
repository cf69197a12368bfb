"""Addresses that come over the network lead to public servers only."""

from __future__ import annotations

import socket
from http.server import ThreadingHTTPServer
from typing import ClassVar

import pytest
from support.web_server import QuietHandler, in_thread

from standards_mcp_catalog.importing import public
from standards_mcp_catalog.importing.public import PublicWeb, is_public
from standards_mcp_catalog.importing.report import SourceError


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "::1", "::", "fe80::1%eth0", "fd00::1", "ff02::1"),  # noqa: S104
        *("::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001:0:a00:1::1"),
        *("localhost", "LOCALHOST.", "printer.local", "db.internal", "a.localhost"),
    ],
)
def test_an_address_of_this_machine_or_of_a_private_network_is_refused(address: str):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8", "example.org"]
)
def test_a_public_address_is_accepted(address: str):
    assert is_public(address)


class Redirecting(QuietHandler):
    received: ClassVar[list[str]] = []

    def do_GET(self) -> None:  # noqa: N802
        self.received.append(self.path)
        if self.path == "/redirect":
            self.reply(302, location=self.headers["Host"].join(("http://", "/secret")))
        else:
            self.reply(200, b"the secret")


@pytest.fixture
def url():
    Redirecting.received.clear()
    with in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def refused(address: str) -> str:
    with pytest.raises(SourceError) as caught, PublicWeb().download(address):
        pass
    return str(caught.value)


def test_a_request_inside_the_network_is_not_sent(url: str):
    assert "127.0.0.1 is not a public address; import it with" in refused(url)
    # Spellings that the system understands, too.
    for host in ("localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"):
        assert "is not a public address" in refused(url.replace("127.0.0.1", host)), host


def test_a_redirect_into_the_network_is_not_followed(url: str, monkeypatch: pytest.MonkeyPatch):
    paths = list[str]()

    def check(request: public.httpx2.Request) -> None:
        paths.append(request.url.path)
        if request.url.path == "/secret":
            checked(request)

    checked = public._check_request
    monkeypatch.setattr(public, "_check_request", check)
    monkeypatch.setattr(public, "_check_connection", lambda _: None)
    assert "is not a public address" in refused(f"{url}/redirect")
    assert paths == ["/redirect", "/secret"]


def test_a_name_that_changes_its_address_after_the_check_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    lookup, answers = socket.getaddrinfo, iter(["8.8.8.8"])

    def rebinding(host: str, *args: object, **options: object):
        if host in ("rebind.example", b"rebind.example"):
            host = next(answers, "127.0.0.1")
        return lookup(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    assert "is not a public address" in refused(url.replace("127.0.0.1", "rebind.example"))
    assert not Redirecting.received


def test_a_proxy_has_its_own_rules_for_names(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("http_proxy", url)
    with PublicWeb().download("http://standards.example/x.csv") as file:
        assert file.read() == b"the secret"  # the proxy's answer
    assert "is not a public address" in refused("http://10.0.0.1/")
    assert "is not a public address" in refused("http://localhost/")
