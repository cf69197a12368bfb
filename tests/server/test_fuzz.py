"""A short run of scripts/fuzz.py against the server, and a check that it finds faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

FUZZ = Path(__file__).parents[2] / "scripts" / "fuzz.py"


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZ), "--seed", "1", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.usefixtures("starter_catalog")
def test_odd_lines_and_arguments_are_each_answered_once():
    done = fuzz("--lines", "200", "--arguments", "100")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("200 lines and 100 calls") == 2, "in both generations"
