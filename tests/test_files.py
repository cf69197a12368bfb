"""Files of the user are replaced whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from standards_mcp.files import diff, read_text, replace_text

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
