from __future__ import annotations

import json
import multiprocessing
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until

from standards_mcp.config.timing import DEFAULT_TIMING
from standards_mcp.loading.quarantine import Quarantine
from standards_mcp.loading.records import PluginInfo, PluginRecord, Status

NOTE: dict[str, Any] = {
    "distribution": "acme", "version": "", "status": "failed", "reason": "broken",
    "step": "loading", "time": "2026-01-02", "attempt": None, "since": 1e9, "is_suspect": False,
    "verdict": "",
}  # fmt: skip


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


def test_a_plugin_is_tried_once_in_a_start(tmp_path: Path):
    info = PluginInfo(name="acme", load=lambda: None, distribution="acme")
    trials: list[str] = []

    def passed(info: PluginInfo, step: str) -> str:
        trials.append(f"{info.name} {step}")
        return ""

    first = Quarantine(tmp_path, DEFAULT_TIMING, passed)
    first.save([PluginRecord(info, Status.STARTED)], "starting")
    (file,) = tmp_path.glob("*.json")
    note = {**NOTE, "attempt": "loading"}
    file.write_text(json.dumps({"acme": note}), encoding="utf-8")
    quarantine = Quarantine(tmp_path, DEFAULT_TIMING, passed)
    assert [quarantine.judge(info, again=False) for _ in range(2)] == ["", ""]
    assert trials == ["acme loading"]


def stored_note(folder: Path, text: str) -> tuple[str, str]:
    """Return the status and the reason of a plugin after a restart, with *text* as both files."""
    record = PluginRecord(PluginInfo(name="acme", load=lambda: None, distribution="acme"))
    quarantine = Quarantine(folder, DEFAULT_TIMING, lambda *_: "it ended")
    record.status = Status.STARTED
    quarantine.save([record], "loading")
    (file,) = folder.glob("*.json")
    for damaged in (file, file.with_suffix(".attempt")):
        damaged.write_text(text, encoding="utf-8")
    record.status = Status.DISCOVERED
    assert quarantine.judge(record.info, again=True) == ""
    quarantine.restore([record])
    return record.status, record.reason


def test_the_outcome_of_the_last_start_is_restored(tmp_path: Path):
    earlier = {key: value for key, value in NOTE.items() if key != "is_suspect"}
    text = json.dumps({"acme": {**earlier, "of a later version": 1}})
    assert stored_note(tmp_path, text) == ("failed", "broken (at the last start, 2026-01-02)")


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{", '{"acme": []}', '{"acme": {}}', "[" * 100_000, '"\\ud800"',
        *(
            json.dumps({"acme": {**NOTE, "attempt": "loading", **fields}})
            for fields in (
                {"since": 10**400}, {"since": 1e300}, {"since": float("nan")}, {"since": "now"},
                {"verdict": ["a"]}, {"reason": {"a": 1}}, {"attempt": "xyz"},
                {"attempt": ["loading"]}, {"step": "ending"}, {"status": "lost"}, {"time": 1},
            )
        ),
    ],
)  # fmt: skip
def test_damaged_notes_are_no_notes(tmp_path: Path, text: str):
    assert stored_note(tmp_path, text) == ("discovered", "")
