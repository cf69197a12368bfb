"""The bounded end of the process, even if a plugin blocks it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from support.hostile import source_of
from support.hosts import Install
from support.peer import WAIT, Peer

pytestmark = pytest.mark.processes

Start = Callable[[str], Peer]

HURRIED = """
import os
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # as `__main__` does
from standards_mcp.cli import main
from standards_mcp.config.timing import Timing
main(Timing(stop=0.2, end=0.5))
"""
HELD = "the process is ended while a plugin still runs"


@pytest.fixture
def start(install: Install) -> Generator[Start]:
    """Return a function that starts the program with one of the hostile plugins."""
    Path("standards-mcp.toml").write_text(
        'plugins.catalog.local.model = "none"\nplugins.lookup.enabled = false\n'
        "plugins.search.enabled = false\n",
        encoding="utf-8",
    )
    peers: list[Peer] = []

    def begin(name: str) -> Peer:
        install(name, source_of(name))
        peers.append(Peer(command=[sys.executable, "-c", HURRIED]))
        peers[-1].initialize()
        return peers[-1]

    yield begin
    for peer in peers:
        peer.kill()


def is_held(peer: Peer) -> bool:
    """Return True if the log says that a plugin still ran."""
    return HELD in [event["event"] for event in peer.events()]


@pytest.mark.parametrize("name", ["lingers", "delays", "forgets"])
def test_leftovers_of_a_plugin_do_not_keep_the_process_running(start: Start, name: str):
    peer = start(name)
    (tool,) = peer.tool_names()
    peer.call(1, tool)
    assert peer.answers(1)
    code = peer.end()
    # A thread of a tool that has not ended yet ends the process before what waits for its end.
    assert code == 1 or name == "delays"
    assert code == 0 or is_held(peer)


@pytest.mark.skipif(sys.platform == "win32", reason="a process is ended there without a signal")
def test_a_call_that_swallows_its_cancellation_does_not_hold_the_process(start: Start):
    peer = start("persists")
    peer.call(1, "persist")
    peer.call(2, "no_such_tool")
    assert peer.answers(1), "the first call has begun"
    peer.process.send_signal(signal.SIGTERM)
    assert peer.process.wait(WAIT) == 1
    assert peer.end() == 1
    assert is_held(peer)


def test_a_plugin_that_patches_python_does_not_hold_the_process(start: Start):
    peer = start("rewrites")
    peer.call(1, "rewrite")
    assert peer.answers(1)
    assert peer.end() == 1
    assert is_held(peer)


HOLDS_THE_LOG = """
    import logging
    import time

    from standards_mcp import Plugin, tool

    class HoldsPlugin(Plugin):
        @tool
        async def hold(self) -> str:
            \"\"\"Hold.\"\"\"
            for handler in logging.getLogger("standards_mcp").handlers:
                handler.emit = lambda record: time.sleep(3600 * (record.levelno >= 40))
            return "done"
"""


def test_a_plugin_that_holds_the_log_does_not_hold_the_process(start: Start, install: Install):
    install("holds", HOLDS_THE_LOG)
    peer = start("lingers")
    peer.call(1, "linger")
    assert peer.answers(1)
    peer.call(2, "hold")
    assert peer.end() == 1
