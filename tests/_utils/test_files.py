"""Files of the user are replaced whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from standards_mcp._utils.files import Edit, diff, edit_text, read_text, replace_text, replacing

FILE = Path("folder/settings.toml")


def names() -> list[str]:
    return sorted(path.name for path in FILE.parent.iterdir())


def test_a_new_file_is_written_with_its_folder():
    assert replace_text(FILE, "é\r\n") is None
    assert FILE.read_bytes() == "é\r\n".encode()
    assert read_text(FILE) == "é\r\n"
    assert names() == ["settings.toml"]


def test_a_file_that_is_not_there_has_no_text():
    assert read_text(FILE) is None


def test_the_old_text_is_kept_beside():
    replace_text(FILE, "old")
    backup = replace_text(FILE, "new")
    assert backup is not None
    assert (backup.read_text(), FILE.read_text()) == ("old", "new")


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are of POSIX")
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


def test_text_that_cannot_be_encoded_changes_nothing():
    replace_text(FILE, "old")
    with pytest.raises(UnicodeEncodeError):
        replace_text(FILE, "\ud800")
    assert (FILE.read_text(), names()) == ("old", ["settings.toml"])


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


def test_a_file_that_never_stays_the_same_is_given_up():
    replace_text(FILE, "a")

    def change(text: str) -> str:
        FILE.write_text(text + "b")
        return text + "!"

    with pytest.raises(OSError, match="keeps changing it; try again"):
        edit_text(FILE, change)
    assert "!" not in (read_text(FILE) or "!")
    assert names() == ["settings.toml"]


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

    @pytest.mark.skipif(sys.platform == "win32", reason="modes and links are of POSIX")
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
