"""Commands of the catalog, run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from standards_mcp.cli import run as run_program

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def data(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a data command on a catalog without vectors."""
    pairs = (f"plugins.catalog.path={tmp_path / 'catalog'}", "plugins.catalog.local.model=none")
    options = [part for pair in pairs for part in ("--set", pair)]

    def run(*arguments: str) -> tuple[int, str, str]:
        code = run_program([*options, "data", *arguments])
        return code, *capfd.readouterr()

    return run
