"""The last lines of the log and of the audit log on the admin page."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
import logging
import time
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from support.hosts import MakeHost
from support.http import auth_of, bearer, http_client, patient_client, requests_to, served_over_http
from support.waiting import WAIT

from standards_mcp import Plugin, tool
from standards_mcp_service.admin.logs import RecentLog
from standards_mcp_service.audit_chain import verify_part
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
KEY = "a-key-of-the-service-with-32-letters"
SERVER = {"port": 0, "admin": True, "state_key": KEY}
HOSTILE = "<script>alert(1)</script> \u202egnp.evil \x1b[31m \x00"


class DeskPlugin(Plugin):
    @tool(read_only=True)
    async def look(self, where: str = "") -> str:
        """Look."""
        self.context.log.warning("a look at %s", where or HOSTILE, extra={"key": KEY})
        if where == "nowhere":
            raise RuntimeError("dark")
        return "here"


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_a_line_that_cannot_be_formatted_is_left_out(make_host: MakeHost):
    recent = RecentLog(make_host({}))
    for message, argument in (("odd %s", Odd()), ("fine %s", "it")):
        recent.handle(logging.LogRecord("a", logging.INFO, "", 0, message, (argument,), None))
    assert [line.text for line in recent.lines()] == ["fine it"]


async def page(url: str, query: str = "") -> str:
    async with patient_client() as http:
        answer = await http.get(f"{url}/admin/log{query}")
    assert answer.status_code == 200
    return " ".join(answer.text.split())


def lines_of(text: str) -> str:
    return text.partition('aria-label="Lines"')[2]


async def test_the_log_shows_masked_lines_of_hosts_and_plugins(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "standards_mcp")
    async with served_over_http(make_host({"desk": DeskPlugin}, server=SERVER)) as url:
        async with http_client(url) as client:
            for where in ("", "nowhere"):
                await client.call_tool("look", {"where": where})
        logging.getLogger("other.library").error("%s failed", "it")
        logging.getLogger("standards_mcp").info("the key is %s", KEY)
        text = await page(url)
        assert KEY not in text
        assert "<script" not in text
        shown = unescape(lines_of(text))
        for part in (
            "<strong>desk</strong>",
            "a look at <script>alert(1)</script> \\u202egnp.evil \\u001b[31m \\u0000",
            "RuntimeError: dark",
            "it failed",
            "the key is ***",
        ):
            assert part in shown, part
        assert shown.index("the key is") < shown.index("a look at")
        only_errors = unescape(lines_of(await page(url, "?level=error")))
        assert "it failed" in only_errors
        assert "a look at" not in only_errors
        of_desk = lines_of(await page(url, "?plugin=desk&level=warning"))
        assert "a look at" in of_desk
        assert "it failed" not in of_desk
        assert "No line passes" in await page(url, "?text=%00%ff&level=nonsense&plugin=%3Cb%3E")
        assert "it failed" in lines_of(await page(url, "?text=IT%20FAIL"))
    handlers = [*logging.getLogger().handlers, *logging.getLogger("standards_mcp").handlers]
    assert not [each for each in handlers if type(each).__name__ == "RecentLog"]


async def test_long_and_many_lines_are_bounded(make_host: MakeHost):
    async with served_over_http(make_host({}, server=SERVER)) as url:
        await page(url)
        log = logging.getLogger("standards_mcp")
        for number in range(3000):
            log.warning("line %d", number)
        log.warning("x" * 10_000_000)
        text = await page(url)
    assert "line 2999" in text
    assert "line 2700" not in text
    assert "narrow them down" in text
    assert "more characters" in text
    assert len(text) < 100_000


async def test_the_page_is_for_the_scope_admin(make_host: MakeHost):
    ann = new_token()
    auth = auth_of({"few": ["look"]}, ann=(ann, "few"))
    async with requests_to(make_host({}, server={**SERVER, "auth": auth})) as http:
        for path in ("log", "approvals"):
            assert (await http.get(f"/admin/{path}")).status_code == 401
            assert (await http.get(f"/admin/{path}", headers=bearer(ann))).status_code == 403


async def test_the_audit_log_is_shown_with_the_state_of_its_chain(make_host: MakeHost):
    file = Path("audit.jsonl")
    host = make_host({"desk": DeskPlugin}, server={**SERVER, "audit": {"path": str(file)}})
    async with served_over_http(host) as url:
        async with http_client(url) as client:
            for where in ("here", "nowhere"):
                await client.call_tool("look", {"where": where})
        text = await page(url, "?log=audit")
        assert "follow each other, and none was changed" in text
        shown = unescape(lines_of(text))
        assert shown.index('"outcome": "error"') < shown.index('"outcome": "ok"')
        assert "service started" in shown
        assert "digest" not in shown
        errors = unescape(lines_of(await page(url, "?log=audit&level=error&plugin=desk")))
        assert '"outcome": "error"' in errors
        assert '"outcome": "ok"' not in errors
        lines = file.read_bytes().splitlines(keepends=True)
        for broken in (
            b"".join(lines).replace(b'"ok"', b'"no"'),
            b"".join([*lines[:1], *lines[2:]]),
            b"".join([*lines, HOSTILE.encode("utf-8", "surrogatepass"), b"\n"]),
            b"".join(
                [
                    *lines,
                    b"[" * 50_000,
                    b"\n",
                    b"\xff\n",
                    b'{"time": 5, "plugin": [], "x": "\\ud800"}\n',
                ]
            ),
        ):
            file.write_bytes(broken)
            text = await page(url, "?log=audit")
            assert "The chain is broken: line " in text
            assert "<script" not in text
            assert len(text) < 60_000


@pytest.mark.parametrize("size", [500_000, 10_000_000])
async def test_a_huge_line_of_the_audit_log_is_cut_or_left_out(make_host: MakeHost, size: int):
    file = Path("audit.jsonl")
    host = make_host({"desk": DeskPlugin}, server={**SERVER, "audit": {"path": str(file)}})
    async with served_over_http(host) as url:
        await page(url)
        line = json.dumps({"time": "2026-01-31T09:26:53", "event": "x" * size})
        file.write_text(f"{file.read_text()}{line}\n")
        began = time.monotonic()
        text = await page(url, "?log=audit")
    assert time.monotonic() - began < WAIT
    assert len(text) < 20_000
    assert ("more characters" in text) == (size < 2**20)


@pytest.mark.parametrize("path", ["missing/audit.jsonl", "", "folder", "/dev/null"])
async def test_a_log_that_cannot_be_read_is_named(make_host: MakeHost, path: str):
    Path("folder").mkdir()
    audit: dict[str, Any] = {"audit": {"path": path}} if path else {}
    async with served_over_http(make_host({}, server={**SERVER, **audit})) as url:
        text = await page(url, "?log=audit")
    assert ("cannot be read" if path else "[server.audit] path is not set") in text


def test_a_part_of_a_log_may_begin_anywhere_and_have_the_start_of_any_process():
    def chained(count: int, name: str, previous: str) -> list[bytes]:
        import hashlib

        lines = list[bytes]()
        for entry in range(1, count + 1):
            link = {"chain": name, "entry": entry, "previous": previous}
            text = json.dumps({"time": "now", **link})
            previous = hashlib.sha256(text.encode()).hexdigest()
            lines.append(f'{text[:-1]}, "digest": "{previous}"}}'.encode())
        return lines

    first, second = chained(5, "a", ""), chained(3, "b", "0" * 64)
    assert verify_part([*first[2:], *second]) == ""
    assert verify_part([]) == ""
    assert "line 3 of these" in verify_part([*first[1:3], first[4]])
