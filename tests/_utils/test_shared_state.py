from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from standards_mcp._utils.shared_state import ChangedStateError, KeptState


def _state() -> tuple[object, ...]:
    return [*sys.path], [*sys.argv], {**os.environ}, Path.cwd(), builtins.len


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (sys.path.clear, "sys.path"),
        (lambda: sys.path.pop(0), "sys.path"),
        (lambda: setattr(sys, "path", None), "sys.path"),
        (sys.argv.clear, "sys.argv"),
        (os.environ.clear, "environment variables"),
        (lambda: os.environ.update(PATH="/nowhere"), "environment variables"),
        (lambda: os.chdir("/"), "the working directory"),
        (lambda: setattr(builtins, "len", None), r"builtins \(len\)"),
    ],
)
def test_what_is_taken_away_is_put_back(
    change: Callable[[], object], what: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", os.pathsep.join(("/usr/bin", "/bin")))
    before = _state()
    expected = pytest.raises(ChangedStateError, match=f"it changes what all code uses: {what}$")
    with expected, KeptState():
        change()
    assert _state() == before


def test_what_is_added_may_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("ADDED", "")
    with KeptState():
        sys.path.insert(0, "/added")
        os.environ["PATH"] = f"/added{os.pathsep}/usr/bin"
        os.environ["ADDED"] = "1"
    assert (sys.path[0], os.environ["PATH"]) == ("/added", "/added:/usr/bin")


def test_a_folder_that_is_gone_is_not_returned_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with KeptState():
        os.chdir(tmp_path)
