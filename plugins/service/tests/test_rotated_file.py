"""A file of lines that several processes may append to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_service.audit_log import RotatedFile

MOST = 1000
posix = pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be renamed there")


def files_of(path: Path) -> list[Path]:
    """Return all files, oldest first."""
    older = [each for each in path.parent.iterdir() if each.suffix[1:].isdigit()]
    older.sort(key=lambda each: -int(each.suffix[1:]))
    return [*older, path]


def lines_of(path: Path) -> list[bytes]:
    return [line for each in files_of(path) for line in each.read_bytes().splitlines()]


@pytest.mark.slow
@given(st.lists(st.integers(0, 2 * MOST), max_size=30))
def test_every_line_is_kept_in_order_in_files_that_are_no_longer_than_they_may_be(
    lengths: list[int],
):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        file = RotatedFile(path, MOST, 100)
        lines = [b"%d " % number + b"x" * length for number, length in enumerate(lengths)]
        for line in lines:
            file.append(line + b"\n")
        file.close()
        path.touch()
        assert lines_of(path) == lines
        for each in files_of(path):
            content = each.read_bytes()
            assert len(content) <= MOST or content.count(b"\n") == 1


def test_so_many_full_files_are_kept(tmp_path: Path):
    file = RotatedFile(tmp_path / "log", 100, 3)
    for number in range(20):
        file.append(b"%02d" % number + b"x" * 60 + b"\n")
    file.close()
    names = [each.name for each in files_of(tmp_path / "log")]
    assert names == ["log.3", "log.2", "log.1", "log"]
    assert [line[:2] for line in lines_of(tmp_path / "log")] == [b"16", b"17", b"18", b"19"]


@posix
def test_only_its_owner_can_read_it(tmp_path: Path):
    file = RotatedFile(tmp_path / "log", 100, 3)
    for _ in range(3):
        file.append(b"x" * 80 + b"\n")
    file.close()
    modes = [each.stat().st_mode & 0o777 for each in files_of(tmp_path / "log")]
    assert modes == [0o600] * 3


@posix
def test_a_file_that_another_program_renamed_or_removed_is_begun_again(tmp_path: Path):
    path = tmp_path / "log"
    file = RotatedFile(path, MOST, 3)
    file.append(b"first\n")
    path.rename(tmp_path / "moved")
    file.append(b"second\n")
    assert (tmp_path / "moved").read_bytes() == b"first\n"
    assert path.read_bytes() == b"second\n"
    path.unlink()
    file.append(b"third\n")
    assert path.read_bytes() == b"third\n"
    file.close()


@posix
def test_a_file_that_cannot_be_renamed_grows_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "log"
    (tmp_path / "log.1" / "taken").mkdir(parents=True)
    file = RotatedFile(path, 100, 1)
    for number in range(5):
        file.append(b"%d" % number + b"x" * 80 + b"\n")
    assert [line[:1] for line in path.read_bytes().splitlines()] == [b"0", b"1", b"2", b"3", b"4"]
    assert caplog.text.count("cannot be renamed") == 1
    (tmp_path / "log.1" / "taken").rmdir()
    (tmp_path / "log.1").rmdir()
    file.append(b"last\n")
    file.close()
    assert path.read_bytes() == b"last\n"


WRITER = """
    import sys
    from pathlib import Path
    from standards_mcp_service.audit_log import RotatedFile

    file = RotatedFile(Path(sys.argv[1]), 1000, 1000)
    sys.stdin.readline()
    for number in range(150):
        file.append(f'["{sys.argv[2]}", {number}]\\n'.encode())
"""


@posix
def test_several_processes_lose_and_mix_no_line(tmp_path: Path):
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(tmp_path / "log")]
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in "abc"
    ]
    for each in writers:
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in writers:
        assert each.communicate()[1] == ""
    found = [json.loads(line) for line in lines_of(tmp_path / "log")]
    assert len(files_of(tmp_path / "log")) > 2
    assert sorted(map(tuple, found)) == sorted((name, n) for name in "abc" for n in range(150))


LIMITED = """
    import resource, sys
    from pathlib import Path
    from standards_mcp_service.audit_log import RotatedFile

    file = RotatedFile(Path(sys.argv[1]), 1_000_000, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (25, hard))
    file.append(b"x" * 19 + b"\\n")
    for _ in range(2):
        try:
            file.append(b"y" * 19 + b"\\n")
        except OSError as exc:
            print(type(exc).__name__)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    file.append(b"z" * 19 + b"\\n")
"""


def test_an_incomplete_line_of_another_process_damages_no_other_line(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"whole\nto")
    file = RotatedFile(path, MOST, 1)
    file.append(b"first\n")
    with path.open("ab") as other:
        other.write(b"of another\n")
    file.append(b"second\n")
    with path.open("ab") as other:
        other.write(b"rn")
    for line in (b"third\n", b"fourth\n"):
        file.append(line)
    file.close()
    lines = b"whole", b"to", b"first", b"of another", b"second", b"rn", b"third", b"fourth"
    assert path.read_bytes().splitlines() == [*lines]


@posix
def test_nothing_stays_of_a_line_that_does_not_fit_on_the_disk(tmp_path: Path):
    command = [sys.executable, "-c", textwrap.dedent(LIMITED), str(tmp_path / "log")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["OSError", "OSError"]
    assert (tmp_path / "log").read_bytes() == b"x" * 19 + b"\n" + b"z" * 19 + b"\n"
