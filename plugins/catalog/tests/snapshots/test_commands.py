"""The commands, run as programs: their messages, kills, and a server that searches meanwhile."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.killing import killed_at_the_end, report_of
from support.records import record
from support.snapshots import Site

from standards_mcp_catalog.local.store import LocalStore

pytestmark = pytest.mark.processes

KILLS = int(os.environ.get("KILLS", "2"))
"""How often each command is killed; more take longer and find more."""
COUNT = 1500
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return a function that starts a data command on the catalog of a machine."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")

    with killed_at_the_end() as begin:

        def begin_at(machine: str, *arguments: str, key: str = "") -> subprocess.Popen[str]:
            folder = tmp_path / machine
            settings = {
                "state_dir": folder / "state",
                "plugins.catalog.path": folder / "catalog",
                "plugins.catalog.local.model": "none",
            } | ({"plugins.catalog.snapshots.publisher": key} if key else {})
            options = [f"--set={name}={value}" for name, value in settings.items()]
            return begin(*options, "data", *arguments)

        yield begin_at


def write_standards(path: Path, label: str) -> None:
    """Write records that all have the same label."""
    records = (
        record(number, f"Learners count {number} zebras", statement_label=label)
        for number in range(COUNT)
    )
    path.write_text("".join(f"{json.dumps(each.to_dict())}\n" for each in records), "utf-8")


def test_publish_and_pull_say_what_they_did_and_a_copy_refuses_imports(
    start: Start, tmp_path: Path
):
    published = report_of(start("publisher", "publish", str(tmp_path / "out"), "--json"))
    assert published["is_new"]
    out, _ = start("publisher", "publish", str(tmp_path / "out")).communicate(timeout=120)
    assert "Nothing has changed since snapshot" in out
    assert f'publisher = "{published["publisher"]}"' in out
    _, err = start("node", "pull", str(tmp_path / "out")).communicate(timeout=120)
    assert "set [plugins.catalog.snapshots] publisher" in err
    out, err = start("node", "pull", str(tmp_path / "out"), key=published["publisher"]).communicate(
        timeout=120
    )
    assert "The catalog is now snapshot" in out, err
    process = start("node", "import", "starter")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "nothing was changed: this catalog is a copy of snapshot" in err
    status = report_of(start("node", "status", "--json"))
    assert status["copy"] == f"snapshot {published['counter']} of {published['publisher']}"
    wrong = start("node", "pull", str(tmp_path / "out"), key="0" * 64)
    _, err = wrong.communicate(timeout=120)
    assert wrong.returncode == 1
    assert "is not signed by" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_kills_of_both_commands_leave_the_old_or_the_new_catalog(
    start: Start, tmp_path: Path, site_of: Callable[[Path], Site]
):
    source, folder = tmp_path / "source.jsonl", tmp_path / "out"
    write_standards(source, "label 0")
    report_of(start("publisher", "import", str(source), "--json"))
    began = time.monotonic()
    key = report_of(start("publisher", "publish", str(folder), "--json"))["publisher"]
    url = site_of(folder).url
    report_of(start("node", "pull", url, "--json", key=key))
    longest = (time.monotonic() - began) / 2
    label = "label 0"
    for number in range(1, KILLS + 1):
        before, label = label, f"label {number}"
        write_standards(source, label)
        report_of(start("publisher", "import", str(source), "--json"))
        for machine, *command in (("publisher", "publish", str(folder)), ("node", "pull", url)):
            process = start(machine, *command, "--json", key=key)
            time.sleep(random.uniform(0.3, 1) * longest)  # noqa: S311
            process.kill()
            process.communicate()
            if machine == "publisher":
                report_of(start(machine, *command, "--json"))
        node = LocalStore(tmp_path / "node" / "catalog", "none")
        labels = {each.statement_label for each in node.records({"set-math"})}
        assert labels in ({before}, {label})
        assert node.search("learners count zebras", 1).hits
        node.close()
        report_of(start("node", "pull", url, "--json", key=key))
        node = LocalStore(tmp_path / "node" / "catalog", "none")
        assert {each.statement_label for each in node.records({"set-math"})} == {label}
        assert node.stats().details["index"] == "current"
        node.close()
        leftovers = [path.name for path in (tmp_path / "node" / "catalog" / "pull").iterdir()]
        assert leftovers == ["lock"]
