from __future__ import annotations

import multiprocessing
import sys
import threading
import warnings
from pathlib import Path

import pytest
from support.waiting import wait_until

from standards_mcp.config.timing import DEFAULT_TIMING
from standards_mcp.loading.quarantine import Quarantine
from standards_mcp.loading.records import PluginInfo, PluginRecord


def recorded(folder: Path) -> str:
    return "".join(file.read_text().strip() for file in folder.glob("*.attempt"))


def test_one_process_at_a_time_records_what_it_loads(tmp_path: Path):
    record = PluginRecord(PluginInfo(name="acme", load=lambda: None, distribution="acme"))
    first, second = (Quarantine(tmp_path, DEFAULT_TIMING, lambda *_: "") for _ in range(2))
    with first.watch("loading", [record]):
        with second.watch("loading", [record]), second.attempt(record):
            assert recorded(tmp_path) == ""
        with first.attempt(record):
            assert "acme" in recorded(tmp_path)
    with second.watch("loading", [record]), second.attempt(record):
        assert "acme" in recorded(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_process_that_a_plugin_forked_keeps_no_lock(tmp_path: Path):
    record = PluginRecord(PluginInfo(name="acme", load=lambda: None, distribution="acme"))
    first, second = (Quarantine(tmp_path, DEFAULT_TIMING, lambda *_: "") for _ in range(2))
    with first.watch("loading", [record]), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the test runner has threads
        fork = multiprocessing.get_context("fork")
        child = fork.Process(target=threading.Event().wait, daemon=True)
        child.start()
    try:
        with second.watch("loading", [record]), second.attempt(record):
            assert "acme" in recorded(tmp_path)
    finally:
        child.kill()
        child.join()


def test_a_plugin_that_hangs_is_logged_once_and_quick_ones_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    timing = DEFAULT_TIMING._replace(hung=0.2)
    quarantine = Quarantine(tmp_path, timing, lambda *_: "")
    quick, slow = (
        PluginRecord(PluginInfo(name=name, load=lambda: None, distribution=name))
        for name in ("quick", "slow")
    )
    for _ in range(3):
        with quarantine.attempt(quick):
            pass
    with quarantine.attempt(slow):
        wait_until(lambda: "still loading" in caplog.text)
    with quarantine.attempt(quick):
        pass
    assert [item.args for item in caplog.records] == [("slow",)]
