"""What the host writes by itself can be read by its owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from standards_mcp._utils.files import (
    keep_text,
    open_private,
    private_folder,
    restrict,
    write_private,
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_new_folder_and_its_missing_parents_are_for_their_owner(tmp_path: Path):
    tmp_path.chmod(0o755)
    folder = private_folder(tmp_path / "a" / "b")
    assert [mode(each) for each in (folder, folder.parent, tmp_path)] == [0o700, 0o700, 0o755]
    assert private_folder(folder) == folder


def test_a_folder_that_is_there_is_closed_to_others(tmp_path: Path):
    tmp_path.chmod(0o755)
    assert mode(private_folder(tmp_path)) == 0o700


def test_a_folder_for_everybody_stays_one(tmp_path: Path):
    tmp_path.chmod(0o1777)
    assert mode(private_folder(tmp_path)) == 0o1777


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path):
    (tmp_path / "file").touch()
    for name in ("file", "file/below"):
        with pytest.raises(OSError, match="file"):
            private_folder(tmp_path / name)


def test_a_file_that_is_there_is_written_anew_and_closed_to_others(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("long before")
    file.chmod(0o644)
    write_private(file, "né")
    assert (file.read_bytes(), mode(file)) == ("né".encode(), 0o600)
    with open_private(tmp_path / "new") as new:
        assert mode(tmp_path / "new") == 0o600
        new.write(b"x")


def test_everything_below_a_folder_is_closed_and_links_are_left_alone(tmp_path: Path):
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "file").touch()
    outside.touch()
    (folder / "link").symlink_to(outside)
    restrict(folder)
    restrict(tmp_path / "missing")
    assert [mode(each) for each in (folder, folder / "below")] == [0o700, 0o700]
    assert mode(folder / "below" / "file") == 0o600
    assert mode(outside) == 0o644


def test_what_is_remembered_between_runs_is_private(tmp_path: Path):
    keep_text(tmp_path / "state" / "file.json", "{}")
    assert mode(tmp_path / "state") == 0o700
    assert mode(tmp_path / "state" / "file.json") == 0o600
