from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.waiting import wait_until

from standards_mcp.config.timing import DEFAULT_TIMING
from standards_mcp.loading.quarantine import Quarantine
from standards_mcp.loading.records import PluginInfo, PluginRecord


def test_one_process_at_a_time_records_what_it_loads(tmp_path: Path):
    record = PluginRecord(PluginInfo(name="acme", load=lambda: None, distribution="acme"))
    first, second = (Quarantine(tmp_path, DEFAULT_TIMING, lambda *_: "") for _ in range(2))

    def recorded() -> str:
        return "".join(file.read_text().strip() for file in tmp_path.glob("*.attempt"))

    with first.watch("loading", [record]):
        with second.watch("loading", [record]), second.attempt(record):
            assert recorded() == ""
        with first.attempt(record):
            assert "acme" in recorded()
    with second.watch("loading", [record]), second.attempt(record):
        assert "acme" in recorded()


def test_a_plugin_that_hangs_is_logged_once_and_quick_ones_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    timing = replace(DEFAULT_TIMING, hung=0.2)
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
