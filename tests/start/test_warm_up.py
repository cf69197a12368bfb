"""A server over stdio prepares the first call while its client does nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.peer import Peer
from support.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.slow]

SHELF = """
    import time
    from pathlib import Path

    from standards_mcp import Plugin, Service, Tool, hookimpl

    class Shelf:
        pass

    async def fill(shelf):
        Path("filled").touch()

    def wait() -> str:
        Path("called").touch()
        while not Path("gate").exists():
            time.sleep(0.01)
        return "done"

    class ShelfPlugin(Plugin):
        uses = (Shelf,)

        @hookimpl
        def register_services(self):
            return [Service(type=Shelf, factory=Shelf, warm_up=fill)]

        @hookimpl
        def register_tools(self):
            return [Tool(name="wait", description="Wait.", function=wait, read_only=True)]
"""


def test_a_service_is_warmed_up_once_no_call_is_in_flight(install):
    install("shelf", SHELF)
    peer = Peer("--set", "plugins.catalog.enabled=false")
    try:
        peer.initialize()
        assert "wait" in peer.tool_names()
        peer.call(1, "wait")
        wait_until(lambda: Path("called").exists(), peer.log)
        time.sleep(1)
        assert not Path("filled").exists()
        Path("gate").touch()
        assert peer.answers(1)[1]["result"]["content"][0]["text"] == "done"
        wait_until(lambda: Path("filled").exists(), peer.log)
        assert peer.end() == 0
    finally:
        peer.kill()


def test_nothing_is_warmed_up_for_a_client_that_lists_no_tools(install):
    install("shelf", SHELF)
    peer = Peer("--set", "plugins.catalog.enabled=false")
    try:
        peer.initialize()
        peer.wait_for_log('"started"')
        time.sleep(1)
        assert not Path("filled").exists()
        assert peer.end() == 0
    finally:
        peer.kill()
