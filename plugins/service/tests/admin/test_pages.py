"""The admin page as a browser requests it: access, pages and forms."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from support.hosts import MakeHost, names_of
from support.http import (
    auth_of,
    bearer,
    http_client,
    patient_client,
    requests_to,
    served_over_http,
)
from support.waiting import WAIT, until

from standards_mcp import Health, Plugin, Prompt, Service, ToolError, hookimpl, tool
from standards_mcp.config.loading import Sources
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.server.reload import ReloadOptions
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
ANN, BOB, ROOT = (new_token() for _ in range(3))
PAGES = ("/admin", "/admin/tools")
TEXT = '[server]\nadmin = true\nport = 0\n\n[tools]\nrate_limit = "60/minute"\n'


class DeskPlugin(Plugin):
    """Tools that are called, fail and wait, and a prompt that needs one of them."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.going, self.go = anyio.Event(), anyio.Event()

    @tool(read_only=True)
    async def look(self, where: str = "here") -> str:
        """Look <script>alert(1)</script>."""
        if where == "nowhere":
            raise ToolError("no")
        return where

    @tool
    async def wait(self) -> str:
        """Wait."""
        self.going.set()
        await self.go.wait()
        return "waited"

    @hookimpl
    def register_services(self):
        facts = {"books": 2115, "size_bytes": 2000, "readers": {"Ann": 3}}
        facts["place"] = "<i>on the left</i>"

        async def health(_: object) -> Health:
            return Health(status="ok", facts=facts)

        return [Service(type=dict, factory=dict, health=health)]

    @hookimpl
    def register_prompts(self):
        return [Prompt(name="greet", description="Greet", function=greet, needs=["wait"])]

    @hookimpl
    async def check_health(self):
        return Health(status="degraded", message="<b>dusty</b>")


def greet(tools: object) -> str:
    return f"Hi {tools}"


class BrokenPlugin(Plugin):
    def __init__(self, *args: Any) -> None:
        raise RuntimeError(f"no <i>ledger</i>{len(args)}")


@asynccontextmanager
async def administered(file: Path | None, **told: Any) -> AsyncGenerator[tuple[Host, str]]:
    """Serve a host by a file, and what it takes to change that."""
    sources = Sources(file)
    plugins = {"desk": DeskPlugin, "broken": BrokenPlugin}
    installed = [PluginInfo(name=name, load=lambda p=each: p) for name, each in plugins.items()]
    host = Host(sources.load(), installed=installed)
    host.load()
    async with served_over_http(host, ReloadOptions(sources=sources, **told)) as url:
        yield host, url


def written(text: str = TEXT, name: str = "service.toml") -> Path:
    file = Path(name)
    file.write_text(text, encoding="utf-8")
    return file


async def send(url: str, page: str, form: Mapping[str, Any], token: str = "") -> httpx2.Response:
    """Send a form as a page would."""
    own = {"origin": url, "sec-fetch-site": "same-origin", **(bearer(token) if token else {})}
    async with patient_client(headers=own) as http:
        return await http.post(f"{url}/admin/{page}", data=form)


async def press(url: str, action: str, tool: str) -> httpx2.Response:
    """Send the form of a switch as the page would."""
    return await send(url, "tools", {"action": action, "tool": tool})


async def read(url: str, page: str = "", **options: Any) -> str:
    async with patient_client(**options) as http:
        return unescape((await http.get(f"{url}/admin{page}")).text)


async def test_the_pages_are_for_tokens_with_the_scope_admin(make_host: MakeHost):
    auth = auth_of({"few": ["look"]}, ann=(ANN, "few"), bob=(BOB, "admin"), root=ROOT)
    host = make_host({"desk": DeskPlugin}, server={"port": 0, "admin": True, "auth": auth})
    async with served_over_http(host) as url, patient_client() as http:
        for page in PAGES:
            statuses = [
                (await http.get(url + page, headers=bearer(each) if each else {})).status_code
                for each in ("", "wrong", ANN, BOB, ROOT)
            ]
            assert statuses == [401, 401, 403, 200, 200], page
        style = f"{url}/admin/style.css"
        assert (await http.get(style)).status_code == 401
        assert (await http.get(style, headers=bearer(ANN))).status_code == 200
        asked = await http.get(f"{url}/admin", headers={"accept": "text/html"})
        assert "Basic" in asked.headers["www-authenticate"]
        assert (await http.get(f"{url}/admin", auth=("any name", BOB))).status_code == 200
        refused = await http.get(f"{url}/admin", headers=bearer(ANN))
        health = [
            (await http.get(f"{url}/health", headers=bearer(each))).json() for each in (ANN, BOB)
        ]
        async with http_client(url, BOB) as client:
            assert (await client.list_tools()).tools == []
    assert "You need the scope &#39;admin&#39;" in refused.text
    assert ["plugins" in each for each in health] == [False, True]


async def test_without_tokens_the_page_is_for_programs_of_this_machine_only(make_host: MakeHost):
    server = {"port": 0, "admin": True}
    async with served_over_http(make_host({}, server=server)) as url:
        assert "Overview" in await read(url)
    host = make_host({}, server={**server, "allowed_hosts": ["*"]})
    async with requests_to(host) as http:
        answer = await http.get("/admin")
    assert answer.status_code == 403
    assert "auth token new NAME --scope admin" in answer.text


async def test_the_overview_tells_of_calls_errors_plugins_sessions_and_services():
    async with administered(written()) as (host, url):
        desk: Any = host.manager.records["desk"].plugin
        async with http_client(url, mode="legacy") as client, anyio.create_task_group() as tasks:
            for where in ("here", "there", "nowhere"):
                await client.call_tool("look", {"where": where})
            tasks.start_soon(client.call_tool, "wait", {})
            await desk.going.wait()
            async with patient_client() as http:
                page = await http.get(f"{url}/admin")
            desk.go.set()
        assert "refresh" not in page.headers
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        text = " ".join(page.text.split())
        for shown in (
            "2 <small>of 2</small>",
            '<dd>3</dd><dd class="more">1 running now</dd>',
            '<dd>1</dd><dd class="more">33.3 % of the calls</dd>',
            "<dd>1 <small>of 1,000</small></dd>",
            "3 calls in all, 3 in the busiest minute, 1 with an error.",
            '<rect class="errors" x="591"',
            'wait <span class="quiet">tool</span></th><td>anonymous</td>',
            'look <span class="quiet">tool</span></th><td class="number">3</td>',
            "Errors: tool_error 1",
            "without a token",
            "no &lt;i&gt;ledger&lt;/i&gt;",
            "&lt;b&gt;dusty&lt;/b&gt;",
            "<dt>Services</dt><dd>1 <small>of 1</small>",
            "<dt>Books</dt><dd>2,115</dd>",
            "<dt>Size bytes</dt><dd>2.0 kB</dd>",
            'Ann <span class="quiet">3</span>',
            "&lt;i&gt;on the left&lt;/i&gt;",
        ):
            assert shown in text, shown
        assert "<script" not in text
        async with patient_client() as http:
            assert (await http.get(f"{url}/admin?refresh=")).headers["refresh"] == "10"


async def test_texts_of_plugins_and_of_addresses_are_text_on_the_page():
    async with administered(written()) as (_, url), patient_client() as http:
        page = (await http.get(f"{url}/admin/tools")).text
        odd = (await http.get(f"{url}/admin/tools?changed=<script>alert(2)</script>")).text
    assert "Look &lt;script&gt;alert(1)&lt;/script&gt;." in page
    assert "<script" not in page + odd
    assert "alert(2)" not in odd


async def test_a_switch_reaches_clients_of_both_generations_and_gives_the_file_back():
    file, heard = written(), list[str]()

    async def hear(message: object) -> None:
        heard.append(str(getattr(message, "method", "")))

    async with (
        administered(file) as (_, url),
        http_client(url, mode="legacy", message_handler=hear) as client,
        http_client(url) as modern,
        modern.listen(tools_list_changed=True) as changes,
    ):
        assert await names_of(client) == ["look", "wait"]
        pressed = await press(url, "disable", "look")
        with anyio.fail_after(WAIT):
            assert "ToolsListChanged" in type(await anext(aiter(changes))).__name__
            await until(lambda: "notifications/tools/list_changed" in heard)
        assert pressed.status_code == 303
        assert pressed.headers["location"] == "tools?changed=look"
        assert file.read_text().endswith('"60/minute"\ndisable = ["look"]\n')
        assert await names_of(client) == ["wait"]
        told = await read(url, "/tools?changed=look")
        assert "look is not served: [tools] disable has 'look'." in told
        assert 'aria-label="Enable look">Enable</button>' in told
        assert (await press(url, "enable", "look")).status_code == 303
        assert file.read_text() == TEXT
        assert "look is served." in await read(url, "/tools?changed=look")
        assert await names_of(client) == ["look", "wait"]


def hidden_fields(page: httpx2.Response) -> dict[str, list[str]]:
    """Return the fields of the form by which a page asks for a confirmation."""
    fields: dict[str, list[str]] = {}
    for name, text in re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', page.text):
        fields.setdefault(unescape(name), []).append(unescape(text))
    return fields


async def test_a_switch_that_would_serve_more_than_its_tool_must_be_confirmed():
    text = f'{TEXT}disable = ["wait"]\n'
    file = written(text)
    async with administered(file) as (host, url):
        assert host.visible().prompts[0].hidden_reason
        asked = await press(url, "enable", "wait")
        assert asked.status_code == 200
        assert "This also serves the prompt greet." in asked.text
        assert file.read_text() == text
        confirmed = await send(url, "tools", hidden_fields(asked))
        assert confirmed.headers["location"] == "tools?changed=wait"
        assert not host.visible().prompts[0].hidden_reason
    assert file.read_text() == TEXT


async def test_a_tool_that_something_else_hides_has_no_switch():
    text = f'{TEXT}disable = ["lo*"]\nread_only = true\n'
    async with administered(written(text)) as (_, url):
        page = await read(url, "/tools")
        assert "[tools] disable has 'lo*'" in page
        assert "it is not read-only, and [tools] read_only = true" in page
        assert 'aria-label="Enable look"' not in page
        assert 'aria-label="Enable wait"' not in page


async def test_a_form_of_another_page_changes_nothing():
    text = TEXT.replace("port = 0", 'port = 0\nallowed_origins = ["https://friend.example"]')
    file, form = written(text), {"action": "disable", "tool": "look"}
    async with administered(file) as (_, url), patient_client() as http:
        for headers in (
            {},
            {"sec-fetch-site": "same-origin"},
            *({"origin": each} for each in ("null", "https://other.example")),
            {"origin": "https://friend.example"},
            *({"origin": url, "sec-fetch-site": f"{each}"} for each in ("cross-site", "none")),
            {"origin": url, "sec-fetch-site": "same-site"},
        ):
            answer = await http.post(f"{url}/admin/tools", data=form, headers=headers)
            assert answer.status_code == 403, headers
    assert file.read_text() == text


async def test_only_forms_are_read():
    async with administered(written()) as (_, url), patient_client() as http:
        own, address = {"origin": url}, f"{url}/admin/tools"
        for status, options in (
            (415, {"json": {"action": "disable", "tool": "look"}}),
            (400, {"data": {"action": "remove", "tool": "look"}}),
            (400, {"data": {str(each): "" for each in range(20)}}),
            (413, {"data": {"action": "disable", "tool": "x" * 20_000}}),
            (409, {"data": {"action": "disable", "tool": "gone"}}),
        ):
            answer = await http.post(address, headers=own, **options)
            assert answer.status_code == status, options
            assert 'role="alert"' in answer.text


async def test_a_secret_in_the_reason_of_a_plugin_is_masked(make_host: MakeHost):
    key = "a-key-of-the-service-with-32-letters"

    class LeakyPlugin(Plugin):
        def __init__(self, *args: Any) -> None:
            raise RuntimeError(f"cannot log in as {key}{args and ''}")

    host = make_host({"leaky": LeakyPlugin}, server={"port": 0, "admin": True, "state_key": key})
    async with served_over_http(host) as url:
        pages = await read(url) + await read(url, "/tools")
    assert "cannot log in as ***" in pages
    assert key not in pages


async def test_a_file_that_cannot_be_written_stays_as_it_is():
    file = written(name=f"{'long' * 61}.toml")  # there is no room for a name beside it
    async with administered(file) as (_, url):
        answer = await press(url, "disable", "look")
        assert answer.status_code == 409
        assert "cannot be changed" in answer.text
        assert "look is not served" not in await read(url, "/tools?changed=look")
    assert file.read_text() == TEXT


async def test_a_file_with_mistakes_stays_unchanged_and_the_page_says_so():
    file = written()
    async with administered(file) as (host, url):
        for mistake in ('[tools]\ndisabel = ["look"]\n', "[tools", f"{TEXT}disable = 5\n"):
            file.write_text(mistake)
            answer = await press(url, "disable", "look")
            assert answer.status_code == 409
            assert "The file has mistakes, and nothing is changed" in answer.text
            assert file.read_text() == mistake
        file.unlink()
        assert (await press(url, "disable", "look")).status_code == 409
        assert [item.published for item in host.visible().visible_tools] == ["look", "wait"]


async def test_later_edits_of_the_file_are_kept_and_applied():
    file = written()
    told = list[str]()
    async with administered(file, tell_others=lambda: told.append("others")) as (host, url):
        file.write_text(f"# mine\n{TEXT}timeout = 7\n")
        assert (await press(url, "disable", "look")).status_code == 303
        assert file.read_text() == f'# mine\n{TEXT}timeout = 7\ndisable = ["look"]\n'
        assert host.settings.tools.timeout == 7
        assert told == ["others"]


async def test_the_first_switch_makes_a_file_if_there_is_no_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STANDARDS_MCP_SERVER__ADMIN", "true")
    monkeypatch.setenv("STANDARDS_MCP_SERVER__PORT", "0")
    async with administered(None) as (host, url):
        assert (await press(url, "disable", "look")).status_code == 303
        assert host.loaded.file
        assert host.loaded.file.read_text() == '[tools]\ndisable = ["look"]\n'
        assert "look is not served" in await read(url, "/tools?changed=look")


async def test_the_page_names_a_variable_that_overrides_the_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STANDARDS_MCP_TOOLS__DISABLE", '["look"]')
    async with administered(written()) as (_, url):
        assert (await press(url, "enable", "look")).status_code == 303
        told = await read(url, "/tools?changed=look")
    assert "look is not served: [tools] disable has 'look'." in told


async def test_a_service_that_has_no_configuration_to_write_has_no_switches(make_host: MakeHost):
    host = make_host({"desk": DeskPlugin}, server={"port": 0, "admin": True})
    async with served_over_http(host) as url:
        assert "<button" not in await read(url, "/tools")
        assert (await press(url, "disable", "look")).status_code == 409


AUDITED = f'{TEXT}\n[server.audit]\npath = "audit.jsonl"\n'


def write_audit_log_to(target: str) -> None:
    """Let the audit log be a link to *target*."""
    Path("audit.jsonl").unlink(missing_ok=True)
    Path("audit.jsonl").symlink_to(target)


def audited() -> list[dict[str, Any]]:
    lines = Path("audit.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a disk that is full")
async def test_without_a_line_nothing_changes_where_the_audit_log_is_required():
    write_audit_log_to("real.jsonl")
    text = f"{AUDITED}required = true\n"
    file = written(text)
    async with administered(file) as (_, url):
        await read(url)
        write_audit_log_to("/dev/full")
        refused = await press(url, "disable", "look")
        assert refused.status_code == 409
        assert "Nothing is changed" in unescape(refused.text)
        assert file.read_text("utf-8") == text
        write_audit_log_to("real.jsonl")
        assert (await press(url, "disable", "look")).status_code == 303
    changes = [(line["event"], line["action"]) for line in audited() if "action" in line]
    assert changes == [
        ("configuration is about to change", "tools disable"),
        ("configuration changed", "tools disable"),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a disk that is full")
async def test_a_change_without_a_line_counts_as_lost_where_the_log_is_not_required():
    write_audit_log_to("/dev/full")
    async with administered(written(AUDITED)) as (_, url):
        assert (await press(url, "disable", "look")).status_code == 303
        write_audit_log_to("real.jsonl")
        assert (await press(url, "enable", "look")).status_code == 303
    assert [line["lost"] for line in audited() if line["event"] == "audit resumed"] == [1]


async def test_the_logs_name_the_caller_of_a_change(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "standards_mcp")
    async with administered(written(AUDITED)) as (_, url):
        for _ in range(2):
            await press(url, "disable", "look")
    (change,) = (line for line in audited() if line["event"] == "configuration changed")
    who = {"caller": "anonymous", "action": "tools disable", "tool": "look"}
    link = {key: change[key] for key in ("chain", "entry", "previous", "digest")}
    assert change == {"time": change["time"], "event": "configuration changed", **who, **link}
    assert caplog.messages.count("configuration changed") == 1
