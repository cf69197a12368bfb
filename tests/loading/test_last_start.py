from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from standards_mcp.config.timing import DEFAULT_TIMING
from standards_mcp.loading.quarantine import Quarantine, Step
from standards_mcp.loading.records import PluginInfo, PluginRecord, Status


def _record(name: str = "acme", status: Status = Status.DISCOVERED, **more: Any) -> PluginRecord:
    about = {"distribution": "standards-mcp-acme", "version": "1.0"}
    about |= {key: more.pop(key) for key in about.keys() & more.keys()}
    return PluginRecord(PluginInfo(name=name, load=pytest.fail, **about), status=status, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state"


def _save(folder: Path, step: Step, *records: PluginRecord) -> None:
    Quarantine(folder, DEFAULT_TIMING, pytest.fail).save(records, step)


def _restored(folder: Path, **more: Any) -> PluginRecord:
    record = _record(**more)
    Quarantine(folder, DEFAULT_TIMING, pytest.fail).restore([record])
    return record


def _only_file(folder: Path) -> Path:
    (file,) = folder.glob("*.json")
    return file


def test_a_failure_is_shown_with_its_reason_and_when(folder: Path):
    _save(folder, "starting", _record(status=Status.FAILED, reason="it broke"))
    text = _only_file(folder).read_text(encoding="utf-8")
    text = re.sub(r"20\d\d-\d\d-\d\d \d\d:\d\d", "1970-01-01 00:00", text)
    _only_file(folder).write_text(text, encoding="utf-8")
    found = _restored(folder)
    assert found.status is Status.FAILED
    assert found.reason == "it broke (at the last start, 1970-01-01 00:00 UTC)"


FAILED = {"status": Status.FAILED, "reason": "it broke"}
LOADED = {"status": Status.REGISTERED}
STARTED = {"status": Status.STARTED}


@pytest.mark.parametrize(
    ("runs", "shown"),
    [
        ([("loading", LOADED), ("starting", FAILED), ("loading", LOADED)], FAILED),
        ([("loading", LOADED), ("starting", STARTED), ("loading", LOADED)], STARTED),
        (
            [("loading", LOADED), ("starting", FAILED), ("loading", LOADED), ("starting", STARTED)],
            STARTED,
        ),
        ([("loading", LOADED)], LOADED),
        ([("loading", FAILED), ("loading", LOADED)], LOADED),
        ([("loading", FAILED), ("starting", FAILED), ("loading", LOADED)], LOADED),
        ([("loading", LOADED), ("starting", STARTED), ("loading", FAILED)], FAILED),
        ([("starting", FAILED), ("loading", {"status": Status.DISABLED})], FAILED),
    ],
)
def test_loading_tells_nothing_of_how_a_plugin_starts(folder: Path, runs: Any, shown: Any):
    for step, fields in runs:
        _save(folder, step, _record(**fields))
    found = _restored(folder)
    assert found.status is shown["status"]
    assert found.reason.startswith(shown.get("reason", ""))


@pytest.mark.parametrize(
    ("saved", "listed", "shown"),
    [
        ({"status": Status.DISCOVERED}, {}, Status.DISCOVERED),
        ({"status": Status.DISABLED}, {}, Status.DISCOVERED),
        (FAILED, {"version": "1.1"}, Status.DISCOVERED),
        (FAILED, {"distribution": "other"}, Status.DISCOVERED),
        (STARTED, {"status": Status.DISABLED}, Status.DISABLED),
    ],
    ids=["not tried", "disabled then", "another version", "another distribution", "disabled now"],
)
def test_an_outcome_counts_for_the_same_plugin_only_and_if_it_was_tried(
    folder: Path, saved: dict[str, Any], listed: dict[str, Any], shown: Status
):
    _save(folder, "starting", _record(**saved))
    assert _restored(folder, **listed).status is shown


GOOD = {"distribution": "standards-mcp-acme", "version": "1.0"}


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "null", '{"acme": 5}'),
        json.dumps({"acme": GOOD}),
        json.dumps({"acme": GOOD | {"status": "flying", "reason": ""}}),
        json.dumps({"acme": GOOD | {"status": [], "reason": ""}}),
    ],
)
def test_a_file_with_anything_else_in_it_is_as_good_as_none(folder: Path, content: str):
    _save(folder, "starting", _record(status=Status.STARTED))
    _only_file(folder).write_text(content, encoding="utf-8")
    assert _restored(folder).status is Status.DISCOVERED


def test_a_folder_that_cannot_be_written_is_no_error(folder: Path):
    folder.touch()
    _save(folder / "below", "starting", _record(status=Status.STARTED))
    assert _restored(folder / "below").status is Status.DISCOVERED
