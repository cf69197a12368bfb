"""Pages of plugins on the admin page, and their imports."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
import logging
import os
import re
import sys
from html import unescape
from pathlib import Path

import anyio
import pytest
from support.hosts import MakeHost
from support.http import auth_of, bearer, patient_client, requests_to
from support.shelf import (
    HOSTILE_NAME,
    SETTINGS,
    BadPlugin,
    OddPlugin,
    ShelfPage,
    ShelfPlugin,
    audited,
    page_text,
    shelved,
    until_page,
    upload,
)
from support.waiting import WAIT, until

from standards_mcp_service.tokens import new_token
from standards_mcp_service.wire import BoundedProtocol

pytestmark = [pytest.mark.processes, pytest.mark.anyio]
FOLDER = Path("state/imports/shelf")


@pytest.fixture(autouse=True)
def state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STANDARDS_MCP_STATE_DIR", str(Path("state").absolute()))


async def test_the_page_shows_content_as_text_and_a_form(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async with shelved(monkeypatch, odd=OddPlugin, bad=BadPlugin) as (_, url):
        page = await page_text(url)
        tools = await page_text(url, "tools")
        monkeypatch.setattr(ShelfPage, "problem", "The <shelf> fell.")
        fallen = await page_text(url)
        monkeypatch.setattr(ShelfPage, "content", lambda _: 1 / 0)
        assert "The plugin failed: ZeroDivisionError." in await page_text(url)
    for part in (
        "<h1>The &lt;shelf&gt;</h1>",
        "<dt>Books</dt><dd>7 &lt;i&gt;</dd>",
        '<th scope="row">&lt;b&gt;0&lt;/b&gt;</th><td>\\u202eood</td>',
        "and 100 more",
        '<label for="field-note">A &lt;note&gt;</label>',
        '<input type="checkbox" name="strict"',
        "A file may have 100.0 kB.",
    ):
        assert part in page, part
    assert 'href="shelf">The &lt;shelf&gt;</a>' in tools
    assert "<h1>Plugins and tools</h1>" in tools  # not that of the plugin
    assert "The &lt;shelf&gt; fell." in fallen
    assert "a page of a plugin is left out" in caplog.messages


async def test_an_import_is_shown_while_it_runs_and_at_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "standards_mcp")
    async with shelved(monkeypatch) as (_, url):
        sent = await upload(url, "wait", note="all", unknown="x")
        assert (sent.status_code, sent.headers["location"]) == (303, "shelf?refresh=")
        page = await until_page(url, "Reading: 1 of 4")
        assert 'value="1"' in page
        assert 'type="file"' not in page
        assert (FOLDER / "run/upload/books.csv").read_text() == "wait"
        if sys.platform != "win32":
            assert {each.stat().st_mode & 0o077 for each in FOLDER.rglob("*")} == {0}
        async with patient_client() as http:
            refreshed = (await http.get(f"{url}/admin/shelf?refresh=")).headers
            assert refreshed["refresh"] == "2"
            assert "refresh" not in (await http.get(f"{url}/admin/shelf")).headers
        second = await upload(url, "more")
        assert second.status_code == 409
        assert "Another import is running." in second.text
        Path("go").touch()
        page = await until_page(url, "Last import of books.csv")
        async with patient_client() as http:
            assert "refresh" not in (await http.get(f"{url}/admin/shelf?refresh=")).headers
    for part in (
        "Took all of books.csv.",
        "<dt>Books</dt><dd>4</dd>",
        "Rejected (501)",
        "line 0: &lt;i&gt;bad&lt;/i&gt;",
        "... and 100 more",
        "By anonymous, in ",
        'type="file"',
    ):
        assert part in page, part
    assert not (FOLDER / "run/upload").exists()
    began, ended = audited()
    about = {"page": "shelf", "source": "books.csv", "caller": "anonymous"}
    assert began.items() >= ({"event": "import began", "values": {"note": "all"}} | about).items()
    assert ended.items() >= ({"event": "import ended", "counts": {"Books": 4}} | about).items()
    assert caplog.messages.count("import ended") == 1
    assert (began["chain"], ended["outcome"]) == (ended["chain"], "done")


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("crash", ["ended with code 7", "native &lt;trouble&gt;"]),
        ("raise", ["The import failed: ZeroDivisionError: by &lt;zero&gt;"]),
        ("refuse", ["the shelf is full; make room"]),
        ("lie", ["ended with code 0"]),
    ],
)
async def test_a_failed_import_says_why(
    monkeypatch: pytest.MonkeyPatch, content: str, parts: list[str]
):
    async with shelved(monkeypatch) as (_, url):
        await upload(url, content)
        page = await until_page(url, "Last import of")
    for part in ('badge bad">failed', *parts):
        assert part in page, part
    assert audited()[-1]["outcome"] == "failed"


async def test_an_import_can_be_cancelled_by_any_worker(monkeypatch: pytest.MonkeyPatch):
    async with shelved(monkeypatch) as (_, url):
        headers = {"origin": url}
        async with patient_client(headers=headers) as http:
            cancel = {"action": "cancel", "began": "1.5"}
            assert (await http.post(f"{url}/admin/shelf", data=cancel)).status_code == 409
            assert (await http.post(f"{url}/admin/shelf", data={"a": "b"})).status_code == 400
            await upload(url, "wait")
            await until(Path("waiting").exists)
            # A form that was shown for an earlier import does not end this one.
            refused = await http.post(f"{url}/admin/shelf", data=cancel)
            assert refused.status_code == 409
            assert "This import is not running any more." in refused.text
            (cancel["began"],) = re.findall('name="began" value="(.*?)"', refused.text)
            assert (await http.post(f"{url}/admin/shelf", data=cancel)).status_code == 303
        page = await until_page(url, "The import was cancelled.")
        assert "Start the import again." in page
        await until_gone(int(Path("waiting").read_text()))
    assert [line["event"] for line in audited()][1:] == [
        "import is being cancelled",
        "import ended",
    ]


async def until_gone(pid: int) -> None:
    def is_gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    await until(is_gone)


async def test_an_import_ends_with_the_service_and_the_next_one_tells(
    monkeypatch: pytest.MonkeyPatch,
):
    async with shelved(monkeypatch) as (_, url):
        await upload(url, "wait")
        await until(Path("waiting").exists)
    await until_gone(int(Path("waiting").read_text()))
    assert [line.get("outcome") for line in audited()] == [None, "interrupted"]
    async with shelved(monkeypatch) as (_, url):
        assert "The service ended while the import was running." in await page_text(url)


async def test_what_a_killed_service_left_is_removed_at_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
):
    for folder in ("run", "next"):
        (FOLDER / folder / "upload").mkdir(parents=True)
        (FOLDER / folder / "upload" / "books.csv").write_text("secret")
    job = {"source": "books.csv", "caller": "ann", "began": 1}
    (FOLDER / "run/job.json").write_text(json.dumps(job))
    async with shelved(monkeypatch) as (_, url):
        page = await page_text(url)
        assert not [*FOLDER.rglob("books.csv")]
        assert 'badge bad">interrupted' in page
        assert "By ann" in page
        assert (await upload(url, "new")).status_code == 303
        await until_page(url, "Took nothing of books.csv")
    assert audited()[0].items() >= {"caller": "ann", "outcome": "interrupted"}.items()


async def test_a_state_that_cannot_be_read_is_no_state(monkeypatch: pytest.MonkeyPatch):
    (FOLDER / "run").mkdir(parents=True)
    for text in ("[", "{}", '{"source": 5, "caller": [], "began": "x"}', "[1]", "\udc80"):
        (FOLDER / "run/job.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        async with shelved(monkeypatch) as (_, url):
            assert 'type="file"' in await page_text(url), text


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "Choose a file, or enter an address."),
        ("/etc/passwd", "The address must begin with https://."),
        ("file:///etc/passwd", "The address must begin with https://."),
        ("--help", "The address must begin with https://."),
        ("https://ann:pass@example.org/x.csv", "Leave out the user name in the address."),
        ("https://[", "The address is not valid."),
    ],
)
async def test_only_addresses_are_accepted(
    monkeypatch: pytest.MonkeyPatch, address: str, message: str
):
    async with shelved(monkeypatch) as (_, url):
        refused = await upload(url, address=address)
        assert refused.status_code == 409
        assert message in refused.text
        assert (await upload(url, "x", note="wrong")).status_code == 409
        # Neither has left a lock or a file.
        assert not (FOLDER / "next").exists()
        assert (await upload(url, address="https://example.org/x.csv?grade=1")).status_code == 303
        await until_page(url, "Took nothing of x.csv?grade=1.")
    assert [line["source"] for line in audited()] == ["https://example.org/x.csv?grade=1"] * 2


async def test_the_name_of_a_file_leads_nowhere(monkeypatch: pytest.MonkeyPatch):
    async with shelved(monkeypatch) as (_, url):
        for name in (
            HOSTILE_NAME.encode("utf-8", "replace").decode(),
            "x" * 2000 + ".csv",
            "..",
            "a/",
        ):
            assert (await upload(url, "text", file_name=name)).status_code == 303
            page = await until_page(url, "Last import of")
            await until(lambda: not (FOLDER / "run/upload").exists())
            assert "<b>" not in page
    assert sorted(path.name for path in Path().iterdir() if path.suffix == ".csv") == []
    sources = [line["source"] for line in audited() if line["event"] == "import began"]
    assert sources[0] == "_b__csv.exe__[31m.csv"
    assert (len(sources[1]), sources[1][-5:], sources[2:]) == (80, "x.csv", ["upload", "upload"])


async def test_a_file_may_take_longer_than_other_requests_but_not_be_too_large(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(BoundedProtocol, "seconds", 0.3)
    settings = SETTINGS.replace("port = 0", "port = 0\nmax_request_bytes = 2000")
    async with shelved(monkeypatch, settings) as (_, url), anyio.create_task_group() as tasks:

        async def send_second() -> None:
            await until((FOLDER / "next").exists)
            second = await upload(url, "text")
            assert second.status_code == 409
            assert "The file of another import is arriving" in second.text

        tasks.start_soon(send_second)
        slow = await send_slowly(url, b"x" * 90_000, "shelf")
        assert slow.startswith(b"HTTP/1.1 303")
        await until_page(url, "<dt>Books</dt><dd>90,000</dd>")
        large = await upload(url, "x" * 180_000)
        assert large.status_code == 413
        assert "The file is too large" in large.text
        assert not (FOLDER / "next").exists()
        assert (await send_slowly(url, b"x" * 90_000, "tools")).startswith(b"HTTP/1.1 4")


async def test_a_form_that_cannot_be_decoded_is_refused(monkeypatch: pytest.MonkeyPatch):
    body = b'--b\r\nContent-Disposition: form-data; name="address"\r\n\r\nx\r\n--b--\r\n'
    async with shelved(monkeypatch) as (_, url), patient_client(headers={"origin": url}) as http:
        kind = {"content-type": "multipart/form-data; boundary=b; charset=undefined"}
        answer = await http.post(f"{url}/admin/shelf", content=body, headers=kind)
        assert (answer.status_code, "cannot be read" in answer.text) == (400, True)
        assert (await upload(url, "text")).status_code == 303
        await until_page(url, "Last import of")


async def test_a_file_is_accepted_in_a_request_that_was_sent_before_the_last_answer(
    monkeypatch: pytest.MonkeyPatch,
):
    async with shelved(monkeypatch) as (_, url):
        host = url.removeprefix("http://")
        name, _, port = host.partition(":")
        body = (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
            b"text\r\n--b--\r\n"
        )
        requests = (
            f"GET /admin/style.css HTTP/1.1\r\nHost: {host}\r\n\r\n"
            f"POST /admin/shelf HTTP/1.1\r\nHost: {host}\r\nOrigin: {url}\r\n"
            "Content-Type: multipart/form-data; boundary=b\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        answers = b""
        async with await anyio.connect_tcp(name, int(port)) as stream:
            await stream.send(requests.encode() + body)
            with anyio.fail_after(WAIT):
                async for part in stream:
                    answers += part
        assert b"HTTP/1.1 303" in answers
        await until_page(url, "Last import of")


async def send_slowly(url: str, content: bytes, page: str) -> bytes:
    """Send a form in parts, for longer than a request may take, and return the answer."""
    host = url.removeprefix("http://")
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="slow.csv"\r\n\r\n'
        + content
        + b"\r\n--b--\r\n"
    )
    head = (
        f"POST /admin/{page} HTTP/1.1\r\nHost: {host}\r\nOrigin: {url}\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    name, _, port = host.partition(":")
    async with await anyio.connect_tcp(name, int(port)) as stream:
        await stream.send(head.encode())
        try:
            for at in range(0, len(body), 20_000):
                await stream.send(body[at : at + 20_000])
                await anyio.sleep(0.15)
        except anyio.BrokenResourceError:
            pass  # refused meanwhile
        return await stream.receive()


async def test_a_form_of_another_page_or_without_the_scope_imports_nothing(make_host: MakeHost):
    ann, bob = new_token(), new_token()
    auth = auth_of({"few": ["look"]}, ann=(ann, "few"), bob=(bob, "admin"))
    host = make_host({"shelf": ShelfPlugin}, server={"port": 0, "admin": True, "auth": auth})
    async with requests_to(host) as http:
        files = {"file": ("a.csv", b"x" * 90_000)}
        for token, headers in ((ann, {"origin": str(http.base_url)}), (bob, {}), ("", {})):
            sent = bearer(token) | headers if token else headers
            answer = await http.post("/admin/shelf", files=files, headers=sent)
            assert answer.status_code == (403 if token else 401)
        assert (await http.get("/admin/shelf", headers=bearer(bob))).status_code == 200
    assert not FOLDER.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a disk that is full")
async def test_nothing_is_imported_without_a_line_where_the_audit_log_is_required(
    monkeypatch: pytest.MonkeyPatch,
):
    log = Path("audit.jsonl")
    async with shelved(monkeypatch, f"{SETTINGS}required = true\n") as (_, url):
        await page_text(url)
        log.rename("kept.jsonl")
        log.symlink_to("/dev/full")
        refused = await upload(url, "text")
        assert refused.status_code == 409
        assert "Nothing is changed." in unescape(refused.text)
        assert not (FOLDER / "run").exists()
        log.unlink()
        assert (await upload(url, "text")).status_code == 303
        await until_page(url, "Last import of")
    events = [line["event"] for line in audited()]
    assert events == ["audit resumed", "import is about to begin", "import began", "import ended"]


async def test_a_disabled_plugin_has_no_page(monkeypatch: pytest.MonkeyPatch):
    async with shelved(monkeypatch) as (host, url):
        sections = {"shelf": host.settings.section("shelf").model_copy(update={"enabled": False})}
        changed = host.settings.model_copy(update={"plugins": sections})
        host.take_over(host.loaded, changed)
        async with patient_client(headers={"origin": url}) as http:
            assert (await http.get(f"{url}/admin/shelf")).status_code == 404
        assert (await upload(url, "text")).status_code == 404
        assert 'href="shelf"' not in await page_text(url, "tools")
