"""Many programs start at once on one state folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.conversations import INITIALIZE
from support.fronts import line

from standards_mcp.start.launch import Launch

pytestmark = [pytest.mark.processes, pytest.mark.slow]

STARTS = 16  # 200 pass, too; they take 16 seconds and 3 GB
RESULTS = {
    "2025-11-25 initialize": json.dumps({"protocolVersion": "2025-11-25"}),
    "2025-11-25 tools/list": json.dumps({"tools": ["x" * 100_000]}),
    "2026-07-28 server/discover": "{}",
}
# The start of a program without its server: it answers its client, and stores a snapshot.
START = """
import json, sys, time
from standards_mcp.start.launch import Launch
from standards_mcp.start.snapshot import Snapshot

launch = Launch(())
sys.stderr.write("ready\\n")
sys.stderr.flush()
sys.stdin.buffer.raw.read(1)  # all begin at once
launch.answer_client()
while launch.front and len(launch.front.answered) < 2:
    time.sleep(0.001)
launch.take_streams().start(lambda _: True)
salt = launch.store.make_salt()
results = {key: text.encode() for key, text in json.loads(sys.argv[1]).items()}
current = launch.fingerprint(salt, (), ())
snapshot = Snapshot(fingerprint=current, variables=(), files=(), results=results, note=launch.note)
launch.store.write(launch.snapshot_name(salt), snapshot)
sys.stderr.write(json.dumps([salt.hex(), launch.note]))
"""
LINES = [line("initialize", 1, **INITIALIZE), line("tools/list", 2)]


def start_all(count: int) -> list[tuple[bytes, tuple[str, str]]]:
    """Start programs at once; return what each wrote to its client, its salt and its note."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", START, json.dumps(RESULTS)]
    programs = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) for _ in range(count)
    ]
    for program in programs:
        assert program.stderr.readline() == b"ready\n"
    for program in programs:
        program.stdin.write(b" " + b"\n".join(LINES) + b"\n")
        program.stdin.flush()
    ended = [program.communicate(timeout=300) for program in programs]
    assert [program.returncode for program in programs] == [0] * count, ended[0][1]
    return [(answers, tuple(json.loads(report))) for answers, report in ended]


def test_many_starts_at_once_agree_and_leave_one_whole_snapshot(tmp_path: Path):
    first, then = start_all(STARTS), start_all(STARTS)
    assert len({salt for _, (salt, _) in (*first, *then)}) == 1
    # The others of the first starts may have been late enough to find a snapshot.
    assert first[0][1][1] in ("", "there was no snapshot")
    expected = [json.loads(RESULTS[key]) for key in list(RESULTS)[:2]]
    for answers, (_, note) in then:
        assert note == ""
        assert [json.loads(answer)["result"] for answer in answers.splitlines()] == expected
    assert Launch(()).last_note() == ""
    (folder,) = {file.parent for file in tmp_path.rglob("*.snapshot")}
    assert {file.suffix for file in folder.iterdir()} == {"", ".snapshot"}
