"""The metrics of a service for Prometheus."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from prometheus_client.parser import text_string_to_metric_families
from support.hosts import MakeHost
from support.http import auth_of, bearer, http_client, patient_client, requests_to, served_over_http
from support.waiting import until

from standards_mcp import Plugin, Prompt, ToolError, hookimpl, tool
from standards_mcp.host import Host
from standards_mcp_service.tokens import new_token

pytestmark = pytest.mark.anyio
ANN, BOB, PROMETHEUS = (new_token() for _ in range(3))


class OwnError(ToolError):
    error_type = "of this plugin alone"


class DeskPlugin(Plugin):
    """Tools that fail, wait, and are limited."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.going, self.go = anyio.Event(), anyio.Event()

    @tool(read_only=True, cache_ttl=60)
    async def look(self, where: str = "here") -> str:
        """Look."""
        if where == "nowhere":
            raise OwnError("no")
        return where

    @tool(rate_limit="1/day")
    async def sign(self) -> str:
        """Sign."""
        return "signed"

    @tool
    async def wait(self) -> str:
        """Wait."""
        self.going.set()
        await self.go.wait()
        return "waited"

    @hookimpl
    def register_prompts(self):
        return [Prompt(name="greet", description="Greet", function=lambda: "Hello")]


def make_desk(make_host: MakeHost, **server: Any) -> Host:
    plugins = {"desk": DeskPlugin, "broken": lambda *_: 1 / 0}
    overrides = {"wait": {"concurrency": 1}}
    return make_host(
        plugins, server={"port": 0, "metrics": True, **server}, tools={"overrides": overrides}
    )


async def metrics_of(url: str) -> dict[tuple[str, str], float]:
    """Return the values by the names of the metrics, and the values of labels in their order."""
    async with patient_client() as http:
        text = (await http.get(f"{url}/metrics")).raise_for_status().text
    return {
        (
            sample.name.removeprefix("standards_mcp_"),
            " ".join(value for _, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.slow
async def test_metrics_tell_of_calls_requests_and_plugins(make_host: MakeHost):
    host = make_desk(make_host)
    desk = host.manager.records["desk"].plugin
    async with served_over_http(host) as url, http_client(url, mode="legacy") as client:
        for where in ("here", "here", "nowhere"):
            await client.call_tool("look", {"where": where})
        for _ in range(3):
            await client.call_tool("sign", {})
        for name in ("made_up_1", "made_up_2"):
            with pytest.raises(MCPError):
                await client.call_tool(name, {})
        await client.get_prompt("greet")
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(client.call_tool, "wait", {})
            await desk.going.wait()
            await until(lambda: host.pipeline.slots.waiting == 2)
            during = await metrics_of(url)
            desk.go.set()
        found = await metrics_of(url)
    assert during["calls_in_flight", ""] == 3
    assert during["calls_waiting", ""] == 2
    assert during["http_requests_in_flight", "request"] == 4
    assert during["http_requests_in_flight", "stream"] == 1
    assert during["sessions", ""] == 1
    assert found["calls_in_flight", ""] == found["calls_waiting", ""] == 0
    calls = {labels: value for (name, labels), value in found.items() if name == "calls_total"}
    assert calls == {
        "tool look ok desk": 2,
        "tool look other desk": 1,
        "tool sign ok desk": 1,
        "tool sign rate_limited desk": 2,
        "tool  not_served ": 2,
        "prompt greet ok desk": 1,
        "tool wait ok desk": 3,
    }
    assert found["cached_answers_total", "look desk"] == 1
    assert found["call_seconds_count", "tool look desk"] == 3
    assert found["call_seconds_bucket", "tool +Inf wait desk"] == 3
    assert found["http_requests_total", "200"] > 10
    assert found["plugins", "desk started"] == found["plugins", "broken failed"] == 1
    assert ("python_gc_collections_total", "0") in found
    assert any(name == "build_info" for name, _ in found)


async def test_all_metrics_are_documented(make_host: MakeHost, tmp_path: Path):
    page = Path(__file__).parents[3] / "docs" / "serving.md"
    documented = set(re.findall(r"`(standards_mcp_\w+)`", page.read_text(encoding="utf-8")))
    audit = {"path": tmp_path / "audit.jsonl"}
    async with requests_to(make_desk(make_host, audit=audit)) as http:
        told = (await http.get("/metrics")).text
    found = set(re.findall(r"# TYPE (standards_mcp_\w+)", told))
    assert {name for name in found if not name.endswith("_created")} == documented


async def test_metrics_are_for_holders_of_their_scope(make_host: MakeHost):
    held = {"ann": (ANN, "few"), "bob": BOB, "prometheus": (PROMETHEUS, "metrics")}
    auth = auth_of({"few": ["look"]}, **held)
    async with requests_to(make_desk(make_host, auth=auth)) as http:
        statuses = [
            (await http.get("/metrics", headers=headers)).status_code
            for headers in ({}, bearer("wrong"), bearer(ANN), bearer(BOB))
        ]
        of_prometheus = bearer(PROMETHEUS)
        measured = await http.get("/metrics", headers=of_prometheus)
        health = (await http.get("/health", headers=of_prometheus)).json()
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        told = await http.get("/metrics", headers=bearer(BOB) | accept)
    assert statuses == [401, 401, 403, 200]
    assert measured.status_code == 200
    assert "plugins" not in health
    assert told.headers["content-type"].startswith("application/openmetrics-text")
    assert told.text.endswith("# EOF\n")
    assert 'http_requests_total{status="401"} 2.0' in told.text
