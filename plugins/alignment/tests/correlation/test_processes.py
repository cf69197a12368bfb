"""Runs in processes of their own: kills, and two at once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.usefixtures("installed", "starter_catalog"),
]
WORDS = ("fractions", "poems", "circuits", "maps", "graphs", "cells", "verbs", "angles", "loops")


def start(source: Path, out: Path) -> subprocess.Popen[str]:
    options = ("alignment", "align", str(source), "--out", str(out), "--json")
    return subprocess.Popen(
        [sys.executable, "-m", "standards_mcp", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "lessons.csv"
    lines = (f"Lesson {n},We study {WORDS[n % len(WORDS)]} in part {n}" for n in range(400))
    path.write_text("title,text\n" + "\n".join(lines), "utf-8")
    return path


def test_a_killed_run_goes_on_where_it_ended(source, tmp_path):
    out, journal = tmp_path / "r.json", tmp_path / "r.json.journal"
    process = start(source, out)
    while process.poll() is None and (
        not journal.exists() or journal.read_bytes().count(b"\n") < 20
    ):
        time.sleep(0.01)
    process.kill()
    process.communicate()
    kept = journal.read_bytes()
    kept = kept[: kept.rfind(b"\n") + 1]
    assert 20 <= kept.count(b"\n") < 400
    assert not out.exists()
    process = start(source, out)
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["summary"]["items"] == 400
    assert journal.read_bytes().startswith(kept)
    assert len(journal.read_bytes().splitlines()) == 400


def test_of_two_runs_at_once_one_writes_and_the_other_is_refused(source, tmp_path):
    out = tmp_path / "r.json"
    processes = [start(source, out) for _ in range(2)]
    results = [process.communicate() for process in processes]
    codes = [process.returncode for process in processes]
    assert 0 in codes
    for code, (_, stderr) in zip(codes, results, strict=True):
        assert code == 0 or "another run is writing" in stderr
    assert json.loads(out.read_text("utf-8"))["summary"]["items"] == 400
