"""The health checks of a service."""

from __future__ import annotations

from typing import Any, ClassVar

import anyio
import httpx2
import pytest
from support.hosts import MakeHost
from support.http import requests_to
from support.waiting import WAIT, let_time_pass

from standards_mcp import Health, Plugin, Service, hookimpl
from standards_mcp.config.timing import Timing
from standards_mcp.host import Host
from standards_mcp_service.health import TtlCache

pytestmark = pytest.mark.anyio


class TiredPlugin(Plugin):
    asked = 0

    @hookimpl
    async def check_health(self) -> Health:
        TiredPlugin.asked += 1
        return Health(status="degraded", message="it needs a rest")


class StuckPlugin(Plugin):
    ended = False

    @hookimpl
    async def check_health(self) -> Health:
        let_time_pass()
        try:
            await anyio.sleep_forever()
        finally:
            StuckPlugin.ended = True


class QuietPlugin(Plugin):
    """A plugin without a check of its own."""


async def health_of(host: Host, times: int = 1) -> dict[str, Any]:
    async with requests_to(host, timeout=None) as http:
        found: list[httpx2.Response] = []

        async def ask() -> None:
            found.append(await http.get("/health"))

        async with anyio.create_task_group() as tasks:
            for _ in range(times):
                tasks.start_soon(ask)
    return found[-1].json()


@pytest.mark.slow
async def test_health_has_the_plugins_own_checks_however_often_it_is_asked(make_host: MakeHost):
    TiredPlugin.asked = 0
    plugins = {"tired": TiredPlugin, "quiet": QuietPlugin, "stuck": StuckPlugin}
    host = make_host(plugins, server={"port": 0}, timing=Timing(health=WAIT))
    found = await health_of(host, times=5)
    assert TiredPlugin.asked == 1
    assert StuckPlugin.ended
    message = "check_health did not answer within 90 seconds"
    assert found.pop("uptime_seconds") >= 0
    assert found.pop("version")
    assert found.pop("services") == {}
    quiet = {"status": "started", "reason": ""}
    tired = {"status": "degraded", "message": "it needs a rest"}
    stuck = {"status": "failed", "message": message}
    plugins = {"tired": quiet | {"health": tired}, "stuck": quiet | {"health": stuck}}
    plugins["quiet"] = quiet
    assert found == {"status": "degraded", "audit": {"status": "off"}, "plugins": plugins}


@pytest.mark.parametrize(
    ("plugins", "status"),
    [({"quiet": QuietPlugin}, "ok"), ({"broken": lambda *_: 1 / 0}, "degraded")],
    ids=["quiet", "broken"],
)
async def test_the_status_is_degraded_only_if_a_plugin_failed(
    make_host: MakeHost, plugins: dict[str, Any], status: str
):
    assert (await health_of(make_host(plugins, server={"port": 0})))["status"] == status


class ShelfPlugin(Plugin):
    @hookimpl
    def register_services(self):
        async def health(shelf: dict[str, int]) -> Health:
            if not shelf:
                await anyio.sleep_forever()
            return Health(status="ok", facts={**shelf, "room": "hall"})

        return [Service(type=dict, factory=lambda: dict(self.shelf), health=health)]

    shelf: ClassVar[dict[str, int]] = {}


class FullShelfPlugin(ShelfPlugin):
    shelf: ClassVar[dict[str, int]] = {"books": 7}


async def test_a_service_that_does_not_answer_has_failed(make_host: MakeHost):
    timing = Timing(health=0.1)
    config = {"port": 0, "metrics": True}
    host = make_host({"shelf": ShelfPlugin}, server=config, timing=timing)
    async with requests_to(host) as http:
        assert (await http.get("/health/ready")).status_code == 503
        told = (await http.get("/health")).json()
        message = "check_health did not answer within 0.1 seconds"
        assert told["status"] == "degraded"
        assert told["services"] == {"dict": {"status": "failed", "message": message, "facts": {}}}
        assert 'standards_mcp_service_up{service="dict"} 0.0' in (await http.get("/metrics")).text


async def test_the_numbers_of_a_service_are_metrics(make_host: MakeHost):
    host = make_host({"shelf": FullShelfPlugin}, server={"port": 0, "metrics": True})
    async with requests_to(host) as http:
        assert (await http.get("/health/ready")).status_code == 200
        text = (await http.get("/metrics")).text
    assert 'standards_mcp_service_up{service="dict"} 1.0' in text
    assert 'standards_mcp_service_fact{fact="books",service="dict"} 7.0' in text
    assert "hall" not in text


async def test_a_caller_that_stops_waiting_gets_the_result_before_and_cancels_nothing():
    asked, answer = 0, anyio.Event()

    async def ask() -> str:
        nonlocal asked
        asked += 1
        if asked == 2:
            await answer.wait()
        return f"answer {asked}"

    fresh = TtlCache(ask, 0)
    assert await fresh() == "answer 1"
    assert await fresh.within(0.01) == "answer 1"
    answer.set()
    assert await fresh.within(WAIT) == "answer 2"
