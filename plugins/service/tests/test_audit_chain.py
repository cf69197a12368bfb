"""The chain of the audit log, and the command that verifies it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.hosts import MakeHost

from standards_mcp.cli import cli
from standards_mcp.server.auditing import audited
from standards_mcp_service.audit_chain import Verdict, rotated, verify


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def write(make_host: MakeHost, path: Path) -> Callable[..., None]:
    """Write the log of one process with so many notes."""

    def write_notes(count: int = 5, **audit: Any) -> None:
        host = make_host({}, server={"audit": {"path": path, **audit}})
        with audited(host, "stdio", "1") as log:
            assert log is not None
            for number in range(count):
                log.note("noted", {"number": number, "text": "naïve \ud83d"})

    return write_notes


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def verified(path: Path) -> Verdict:
    files = rotated(path)
    return verify(files, has_older=len(files) > 1)


def test_each_line_has_the_digest_of_the_line_before_it(write: Callable[..., None], path: Path):
    write()
    write()
    entries = [json.loads(line) for line in lines_of(path)]
    assert [entry["entry"] for entry in entries] == [*range(1, 8), *range(1, 8)]
    assert entries[0]["previous"] == ""
    for before, entry in pairwise(entries):
        assert entry["previous"] == before["digest"]
    assert len({entry["chain"] for entry in entries}) == 2
    verdict = verified(path)
    assert (verdict.entries, verdict.problem, verdict.open_chains) == (14, "", [])
    assert verdict.last == entries[-1]["digest"]


def changed(lines: list[bytes]) -> None:
    lines[3] = lines[3].replace(b'"number": 2', b'"number": 9')


def replaced(lines: list[bytes]) -> None:
    """Change a line, and compute its digest anew."""
    data = lines[3].replace(b'"number": 2', b'"number": 9').rstrip(b"\n")
    body = data[: data.index(b', "digest"')]
    digest = hashlib.sha256(body + b"}").hexdigest()
    lines[3] = body + f', "digest": "{digest}"}}\n'.encode()


def swapped(lines: list[bytes]) -> None:
    lines[3], lines[4] = lines[4], lines[3]


def shortened(lines: list[bytes]) -> None:
    lines[3] = lines[3][:40] + b"\n"


TAMPERINGS = [
    (changed, ":4: the line was changed"),
    (replaced, ":5: before this line, entry 4 of chain"),
    (swapped, ":4: before this line, entries 4 to 4 of chain"),
    (shortened, ":4: the line has no digest"),
    (lambda lines: lines.pop(3), ":4: before this line, entries 4 to 4 of chain"),
    (lambda lines: lines.insert(3, lines[2]), ":4: entry 3 of chain"),
    (lambda lines: lines.insert(3, b'{"event": "call"}\n'), ":4: the line has no digest"),
    (lambda lines: lines.pop(0), ":1: chain"),
    (lambda lines: lines.__delitem__(slice(0, 7)), ":1: chain"),
    (lambda lines: lines.__delitem__(slice(5, 7)), ":6: chain"),
    (lambda lines: lines.__delitem__(slice(5, 8)), ":6: chain"),
]


@pytest.mark.parametrize(("tamper", "problem"), TAMPERINGS)
def test_the_first_broken_line_is_named(
    write: Callable[..., None],
    path: Path,
    tamper: Callable[[list[bytes]], object],
    problem: str,
):
    write()
    write()
    lines = lines_of(path)
    tamper(lines)
    path.write_bytes(b"".join(lines))
    verdict = verified(path)
    assert verdict.problem.startswith(f"{path}{problem}")


def test_a_cut_end_shows_as_a_process_without_an_end(write: Callable[..., None], path: Path):
    write()
    path.write_bytes(b"".join(lines_of(path)[:-3]))
    verdict = verified(path)
    assert verdict.problem == ""
    (chain,) = verdict.open_chains
    assert "entry 4 at 20" in chain


def test_lines_of_an_earlier_version_have_no_chain(write: Callable[..., None], path: Path):
    path.write_text('{"event": "call"}\n' * 3, encoding="utf-8")
    write()
    verdict = verified(path)
    assert (verdict.unchained, verdict.entries, verdict.problem) == (3, 7, "")


def test_lines_that_are_no_entries_are_refused_without_a_crash(tmp_path: Path):
    for data in (b"{}", b"[1]", b"\xff", b'{"chain": 1, "entry": "x"}', b"[" * 100_000):
        digest = hashlib.sha256(data[:-1] + b"}").hexdigest()
        line = data[:-1] + f', "digest": "{digest}"}}\n'.encode()
        (tmp_path / "log").write_bytes(line)
        assert verified(tmp_path / "log").problem.endswith("not an entry of the log")


def test_rotation_continues_the_chain(write: Callable[..., None], path: Path):
    write(100, max_bytes=10_000, files=100)
    assert len(rotated(path)) > 3
    assert (verified(path).entries, verified(path).problem) == (102, "")
    lines = lines_of(rotated(path)[1])
    rotated(path)[1].write_bytes(b"".join(lines[1:]))
    assert "are missing" in verified(path).problem


def test_a_chain_may_begin_in_a_file_that_was_deleted(write: Callable[..., None], path: Path):
    write(100, max_bytes=10_000, files=2)
    verdict = verified(path)
    assert verdict.problem == ""
    (begun,) = verdict.begun
    assert "it may be in a file that was deleted" in begun


WRITER = """
    import sys
    from pathlib import Path
    from standards_mcp.config.loading import LoadedSettings
    from standards_mcp.config.models.settings import Settings
    from standards_mcp.host import Host
    from standards_mcp.server.auditing import audited

    path, state = map(Path, sys.argv[1:])
    audit = {"path": path, "max_bytes": 65536, "files": 1000}
    settings = Settings(state_dir=state, server={"audit": audit})
    host = Host(LoadedSettings(settings, None), installed=[])
    with audited(host, "stdio", "1") as log:
        for number in range(400):
            log.note("noted", {"number": number, "text": "x" * 200})
"""


@pytest.mark.processes
@pytest.mark.slow
def test_processes_that_write_and_rotate_at_once_keep_whole_chains(path: Path, tmp_path: Path):
    program = [sys.executable, "-c", textwrap.dedent(WRITER), str(path), str(tmp_path / "state")]
    processes = [subprocess.Popen(program) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    verdict = verified(path)
    assert verdict.problem == ""
    assert len(rotated(path)) > 5
    assert verdict.entries == 4 * 402


def test_the_command_tells_the_state_with_its_exit_code(write: Callable[..., None], path: Path):
    write()
    good = CliRunner().invoke(cli, ["audit", "verify", str(path)])
    assert good.exit_code == 0
    assert "The audit log is intact (7 intact entries)." in good.output
    lines = lines_of(path)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    broken = CliRunner().invoke(cli, ["audit", "verify", str(path), "--json"])
    assert broken.exit_code == 1
    assert "are missing" in json.loads(broken.output)["problem"]
    assert CliRunner().invoke(cli, ["audit", "verify"]).exit_code == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_keeps_no_lines_to_verify(tmp_path: Path):
    os.mkfifo(tmp_path / "audit.jsonl")
    shown = CliRunner().invoke(cli, ["audit", "verify", str(tmp_path / "audit.jsonl")])
    assert shown.exit_code == 1
    assert "audit.jsonl is no file; name the FILE that keeps its lines" in shown.output


def test_a_number_without_end_is_no_entry(tmp_path: Path):
    data = b'{"time": "", "chain": "a", "entry": Infinity, "previous": ""'
    digest = hashlib.sha256(data + b"}").hexdigest()
    path = tmp_path / "audit.jsonl"
    path.write_bytes(data + f', "digest": "{digest}"}}\n'.encode())
    problem = verify([path], has_older=False).problem
    assert problem == f"{path}:1: the line is not an entry of the log"
