"""Files are replaced as a whole, and only the owner can read the host's own files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from standards_mcp.files import (
    Edit,
    diff,
    edit_text,
    keep_text,
    open_private,
    private_folder,
    read_text,
    replace_text,
    replacing,
    restrict,
    write_private,
)

posix = pytest.mark.skipif(os.name != "posix", reason="modes and links are of POSIX")
FILE = Path("folder/settings.toml")


def names() -> list[str]:
    return sorted(path.name for path in FILE.parent.iterdir())


def test_a_new_file_is_written_with_its_folder():
    assert read_text(FILE) is None
    assert replace_text(FILE, "é\r\n") is None
    assert FILE.read_bytes() == "é\r\n".encode()
    assert read_text(FILE) == "é\r\n"
    assert names() == ["settings.toml"]


def test_the_old_text_is_kept_beside():
    replace_text(FILE, "old")
    backup = replace_text(FILE, "new")
    assert backup is not None
    assert (backup.read_text(), FILE.read_text()) == ("old", "new")


@posix
def test_mode_and_link_stay():
    replace_text(FILE, "old")
    assert FILE.stat().st_mode & 0o777 == 0o600
    FILE.chmod(0o640)
    link = Path("link.toml")
    link.symlink_to(FILE)
    replace_text(link, "new")
    assert link.is_symlink()
    assert FILE.read_text() == "new"
    assert FILE.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_in_the_middle_leaves_everything_as_it_was(
    step: str, monkeypatch: pytest.MonkeyPatch
):
    replace_text(FILE, "old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    if step == "replace":
        monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        replace_text(FILE, "new")
    assert FILE.read_text() == "old"
    assert names() == ["settings.toml"]


def test_a_diff_shows_what_changes():
    lines = diff(FILE, "a\nb\nc\n", "a\nB\nc\n").splitlines()
    assert lines[3:] == ["-b", "+B"]


def test_what_another_program_writes_in_the_meantime_is_not_lost():
    replace_text(FILE, "a")
    seen: list[str] = []

    def change(text: str) -> str:
        seen.append(text)
        if len(seen) == 1:
            FILE.write_text("ab")
        return text + "!"

    done = edit_text(FILE, change)
    assert seen == ["a", "ab"]
    assert done.backup is not None
    assert (read_text(FILE), done.backup.read_text()) == ("ab!", "ab")
    assert len(names()) == 2


def test_an_edit_that_changes_nothing_writes_nothing():
    assert edit_text(FILE, str) == Edit("", "")
    replace_text(FILE, "a")
    assert edit_text(FILE, str) == Edit("a", "a")
    assert edit_text(FILE, str.upper, dry_run=True) == Edit("a", "A")
    assert (read_text(FILE), names()) == ("a", ["settings.toml"])


def test_the_last_ten_old_texts_are_kept_and_no_file_of_others_goes():
    replace_text(FILE, "0")
    dated = "xsettings.toml.20200101-000000-000000.bak"
    others = ["settings.toml.bak", "settings.toml.old.bak", dated]
    for name in others:
        (FILE.parent / name).write_text("")
    for number in range(1, 15):
        replace_text(FILE, str(number))
    kept = [path.read_text() for path in sorted(FILE.parent.glob("settings.toml.2*.bak"))]
    assert kept == [str(number) for number in range(4, 14)]
    assert all((FILE.parent / name).exists() for name in others)


class TestAFileThatTheUserNames:
    def test_is_replaced_when_all_of_it_is_written(self):
        FILE.parent.mkdir()
        FILE.write_text("old")
        with replacing(FILE) as file:
            file.write("né")
            assert FILE.read_text() == "old"
        assert FILE.read_text(encoding="utf-8") == "né"
        assert names() == ["settings.toml"]

    def test_stays_as_it_was_after_a_failure(self):
        FILE.parent.mkdir()
        FILE.write_text("old")
        writing = replacing(FILE)
        writing.__enter__().write("half")
        with pytest.raises(OSError, match="No space"):
            writing.gen.throw(OSError(errno.ENOSPC, "No space left on device"))
        assert FILE.read_text() == "old"
        assert names() == ["settings.toml"]

    @posix
    def test_follows_the_umask_and_keeps_its_mode_and_its_link(self):
        FILE.parent.mkdir()
        before = os.umask(0o027)
        try:
            with replacing(FILE) as file:
                file.write("x")
        finally:
            os.umask(before)
        assert FILE.stat().st_mode & 0o777 == 0o640
        FILE.chmod(0o604)
        link = Path("link.toml")
        link.symlink_to(FILE)
        with replacing(link) as file:
            file.write("y")
        assert link.is_symlink()
        assert (FILE.read_text(), FILE.stat().st_mode & 0o777) == ("y", 0o604)

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
    def test_is_written_to_directly_if_it_is_a_device(self):
        with pytest.raises(OSError, match="No space"), replacing(Path("/dev/full")) as file:
            file.write("x" * 100_000)
        assert Path("/dev/full").is_char_device()


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def private(test: Callable[..., None]) -> Callable[..., None]:
    return posix(pytest.mark.usefixtures("usual_umask")(test))


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@private
def test_a_new_folder_and_its_missing_parents_are_for_their_owner(tmp_path: Path):
    tmp_path.chmod(0o755)
    folder = private_folder(tmp_path / "a" / "b")
    assert [mode(each) for each in (folder, folder.parent, tmp_path)] == [0o700, 0o700, 0o755]
    assert private_folder(folder) == folder


@private
@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o1777, 0o1777)])
def test_a_folder_that_is_there_is_closed_to_others_unless_all_may_write_in_it(
    tmp_path: Path, before: int, after: int
):
    tmp_path.chmod(before)
    assert mode(private_folder(tmp_path)) == after


@private
def test_a_file_that_is_there_is_written_anew_and_closed_to_others(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("long before")
    file.chmod(0o644)
    write_private(file, "né")
    assert (file.read_bytes(), mode(file)) == ("né".encode(), 0o600)
    with open_private(tmp_path / "new") as new:
        assert mode(tmp_path / "new") == 0o600
        new.write(b"x")


@private
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


@private
def test_what_is_remembered_between_runs_is_private(tmp_path: Path):
    keep_text(tmp_path / "state" / "file.json", "{}")
    assert mode(tmp_path / "state") == 0o700
    assert mode(tmp_path / "state" / "file.json") == 0o600
