"""The audit log: caller, tool and outcome of each call."""
# ruff: noqa: ASYNC240  small files, in tests

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from pydantic import SecretStr, ValidationError
from support.hosts import MakeHost
from support.http import (
    auth_of,
    bearer,
    client_of,
    http_client,
    patient_client,
    served_over_http,
)

from standards_mcp import (
    InvalidInputError,
    Plugin,
    PluginSettings,
    Prompt,
    Resource,
    hookimpl,
    tool,
)
from standards_mcp._utils.full_disk import MESSAGE
from standards_mcp.config.models.http import AuditSettings
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.transports import audited
from standards_mcp_service.audit_log import canonical
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
ANN, BOB = new_token(), new_token()
AUTH = auth_of({"reader": ["find_*"]}, ann=(ANN, "reader"), bob=BOB)
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a disk that is full")


class ShelfSettings(PluginSettings):
    code: SecretStr = SecretStr("shelf-secret")


class ShelfPlugin(Plugin[ShelfSettings]):
    """A tool that fails in every way, a prompt, a resource, and a wrapper."""

    settings_type = ShelfSettings
    ran: ClassVar[Counter[str]] = Counter()

    @tool(read_only=True)
    async def find_book(self, title: str = "", api_key: str = "") -> str:
        """Find."""
        self.ran["tool"] += 1
        if title == "wrong":
            raise InvalidInputError("no such title")
        if title == "broken":
            raise OSError("no shelf")
        return f"{title} {api_key}"

    @tool
    def drop_book(self) -> str:
        """Drop."""
        return "dropped"

    @hookimpl
    def wrap_tool_call(self, call_next):
        async def handle(call):
            self.ran["wrapper"] += 1
            return await call_next(call)

        return handle

    @hookimpl
    def register_prompts(self):
        def greet(name: str) -> str:
            self.ran["prompt"] += 1
            return f"Hello {name}"

        return [Prompt(name="find_greeting", description="Greet", function=greet)]

    @hookimpl
    def register_resources(self):
        def shelf(number: str) -> str:
            return f"shelf {number}"

        uri = "shelf://{number}"
        return [Resource(uri=uri, name="find_shelf", description="One", function=shelf)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def make_shelf(make_host: MakeHost, path: Path) -> MakeHost:
    def make(server: dict[str, Any] | None = None, **audit: Any) -> Host:
        ShelfPlugin.ran.clear()
        table = {"port": 0, "audit": {"path": path, **audit}, **(server or {})}
        return make_host({"shelf": ShelfPlugin}, server=table)

    return make


def refuse_number(number: str) -> None:
    raise AssertionError(f"{number} is not JSON")


def lines_of(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line, parse_constant=refuse_number) for line in lines]


def calls_of(path: Path) -> list[dict[str, Any]]:
    return [line for line in lines_of(path) if line["event"] == "call"]


@pytest.mark.slow
async def test_each_call_is_a_line_with_caller_tool_and_outcome(make_shelf: MakeHost, path: Path):
    async with served_over_http(make_shelf({"auth": AUTH})) as url:
        async with http_client(url, ANN, mode="legacy") as client:
            await client.call_tool("find_book", {"title": "Emma"})
            for title in ("wrong", "broken"):
                assert (await client.call_tool("find_book", {"title": title})).is_error
            for refused in ("drop_book", "burn_book"):
                with pytest.raises(MCPError, match="Unknown tool"):
                    await client.call_tool(refused, {"title": "Emma"})
            await client.get_prompt("find_greeting", {"name": "Emma"})
            await client.read_resource("shelf://7")
            for uri in ("shelf://7/8", "other://7"):
                with pytest.raises(MCPError, match="Unknown resource"):
                    await client.read_resource(uri)
            with pytest.raises(MCPError, match="Unknown prompt"):
                await client.get_prompt("greeting", {"name": "Emma"})
        async with http_client(url, BOB) as client:
            await client.call_tool("drop_book", {})
        async with patient_client() as http:
            chosen = {**bearer(BOB), "mcp-session-id": "the session of ann"}
            await http.get(f"{url}/plugins/shelf/none", headers=chosen)
    started, *calls, ended = lines_of(path)
    assert started["event"] == "service started"
    assert ended["event"] == "service ended"
    assert started["process"] == os.getpid()
    seen = [
        (line["caller"], line["kind"], line["name"], line.get("error_type", line["outcome"]))
        for line in calls
    ]
    assert seen == [
        ("ann", "tool", "find_book", "ok"),
        ("ann", "tool", "find_book", "invalid_input"),
        ("ann", "tool", "find_book", "internal_error"),
        ("ann", "tool", "drop_book", "not_served"),
        ("ann", "tool", "burn_book", "not_served"),
        ("ann", "prompt", "find_greeting", "ok"),
        ("ann", "resource", "find_shelf", "ok"),
        ("ann", "resource", "shelf://7/8", "not_served"),
        ("ann", "resource", "other://7", "not_served"),
        ("ann", "prompt", "greeting", "not_served"),
        ("bob", "tool", "drop_book", "ok"),
        ("bob", "route", "GET /plugins/shelf/none", "not_served"),
    ]
    assert {line["transport"] for line in calls} == {"http"}
    sessions = [line.get("session") for line in calls]
    assert sessions[0]
    assert sessions == [sessions[0]] * 10 + [None] * 2
    assert all(line["duration_ms"] >= 0 and line["time"] > started["time"] for line in calls)
    assert [line["plugin"] for line in calls if "plugin" in line] == ["shelf"] * 6
    crashed = calls[2]
    assert crashed["outcome"] == "error"
    assert len(crashed["incident"]) == 12
    # What was asked for is not to be read in it.
    assert "Emma" not in path.read_text(encoding="utf-8")
    if os.name != "nt":
        assert path.stat().st_mode & 0o777 == 0o600


async def test_equal_arguments_have_equal_hashes_that_depend_on_the_key(
    make_shelf: MakeHost, path: Path, caplog: pytest.LogCaptureFixture
):
    for arguments in ({"title": "Emma", "api_key": "1"}, {"api_key": "1", "title": "Emma"}):
        host = make_shelf()
        async with client_of(host) as client:
            await client.call_tool("find_book", arguments)
    first, second = (line["arguments_hmac"] for line in calls_of(path))
    assert first == second
    key = host.state_dir / "audit.key"
    if os.name != "nt":
        assert key.stat().st_mode & 0o777 == 0o600
    key.write_text("it was changed", encoding="ascii")
    async with client_of(make_shelf()) as client:
        await client.call_tool("find_book", arguments)
    assert calls_of(path)[-1]["arguments_hmac"] != first
    assert "remove it if it is not a key" in caplog.text


VALUES = st.recursive(st.none() | st.text() | st.integers(), st.lists, max_leaves=5)


@pytest.mark.slow
@given(st.dictionaries(st.text(), VALUES))
def test_the_order_of_arguments_does_not_change_their_canonical_text(arguments: dict[str, Any]):
    turned = dict(reversed(arguments.items()))
    assert canonical(arguments) == canonical(turned)
    assert json.loads(canonical(arguments)) == arguments
    assert canonical(arguments) != canonical({**arguments, "one more": 1})


async def test_redacted_arguments_are_valid_json_without_secrets(make_shelf: MakeHost, path: Path):
    host = make_shelf(arguments="redacted")
    async with client_of(host, mode="legacy") as client:
        await client.call_tool("find_book", {"title": "by shelf-secret", "api_key": "k-12345"})
        await client.call_tool("find_book", {"title": "x" * 100_000})
        with pytest.raises(MCPError):
            await client.call_tool("shelf-secret" + "x" * 100_000, {})
        await host.call_tool("find_book", {"title": ["of", float("inf"), float("nan")]})
    known, long, unknown, numbers = calls_of(path)
    assert known["arguments"] == {"title": "by ***", "api_key": "***"}
    assert long["arguments_are_cut"]
    assert len(long["arguments"]) < 20_000
    assert unknown["name"].startswith("***x")
    assert len(unknown["name"]) < 300
    assert numbers["arguments"] == {"title": ["of", "inf", "nan"]}


@linux
async def test_without_a_line_no_call_runs_where_the_log_is_required(
    make_shelf: MakeHost, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path.symlink_to(tmp_path / "real.jsonl")
    host = make_shelf({"metrics": True}, required=True)
    async with served_over_http(host) as url, http_client(url) as client:

        async def get(page: str) -> httpx2.Response:
            async with patient_client() as http:
                return await http.get(f"{url}{page}")

        await client.call_tool("find_book", {"title": "Emma"})
        await client.get_prompt("find_greeting", {"name": "Emma"})
        assert (await get("/health/ready")).status_code == 200
        before = ShelfPlugin.ran.copy()
        path.unlink()
        path.symlink_to("/dev/full")
        refused = await client.call_tool("find_book", {"title": "Emma"})
        assert refused.is_error
        assert refused.structured_content["error_type"] == "not_audited"
        assert "administrator" in refused.content[0].text
        with pytest.raises(MCPError, match="audit log"):
            await client.get_prompt("find_greeting", {"name": "Emma"})
        assert ShelfPlugin.ran == before
        assert (await get("/health/ready")).status_code == 503
        told = (await get("/health")).json()
        assert told["status"] == "degraded"
        assert told["audit"] == {"status": "failed", "reason": MESSAGE}
        metrics = (await get("/metrics")).text
        assert "standards_mcp_audit_up 0.0" in metrics
        assert "standards_mcp_audit_lost_total 2.0" in metrics
        path.unlink()
        path.symlink_to(tmp_path / "real.jsonl")
        assert (await get("/health/ready")).status_code == 200
        await client.call_tool("find_book", {"title": "Emma"})
    events = [(line["event"], line.get("lost")) for line in lines_of(path)]
    calls = [("call", None)]
    resumed = [("audit resumed", 2), *calls * 2, ("service ended", None)]
    assert events == [("service started", None), *calls * 4, *resumed]
    begin, end, *_ = calls_of(path)
    assert (begin["outcome"], end["outcome"]) == ("running", "ok")
    assert "duration_ms" not in begin
    assert begin["call"] == end["call"]
    assert len({line["call"] for line in calls_of(path)}) == 3
    assert caplog.text.count("the audit log cannot be written") == 1
    assert caplog.text.count("the audit log is written again") == 1


@linux
async def test_calls_run_without_a_line_where_the_log_is_not_required(
    make_shelf: MakeHost, path: Path, caplog: pytest.LogCaptureFixture
):
    path.symlink_to("/dev/full")
    async with served_over_http(make_shelf()) as url, http_client(url) as client:
        for _ in range(2):
            assert not (await client.call_tool("find_book", {"title": "Emma"})).is_error
        async with patient_client() as http:
            assert (await http.get(f"{url}/health/ready")).status_code == 200
            told = (await http.get(f"{url}/health")).json()
    assert told["audit"]["status"] == "failed"
    assert caplog.text.count("the audit log cannot be written") == 1


def test_a_service_does_not_start_without_a_log_that_it_must_have(make_shelf: MakeHost, path: Path):
    with pytest.raises(ValidationError, match="it needs the path"):
        AuditSettings(required=True)
    path.mkdir()
    host = make_shelf(required=True)
    with pytest.raises(StandardsMcpError, match="set required = false"), audited(host, "http", "1"):
        pass
