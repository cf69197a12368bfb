"""Two nodes behind HAProxy, of which one is killed: a short run of the benchmark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import WAIT

PROGRAM = Path(__file__).parents[3] / "benchmarks" / "nodes.py"
SYSTEM = f"{os.environ.get('PATH', '')}:/usr/sbin"


@pytest.mark.processes
@pytest.mark.slow
def test_nodes_pull_while_they_serve_and_a_killed_one_costs_only_its_calls_in_flight():
    for name in ("haproxy", "redis-server"):
        if shutil.which(name, path=SYSTEM) is None:
            pytest.skip(f"{name} is not installed")
    options = ("--seconds", "1", "--clients", "4", "--limit", "60")
    command = [sys.executable, str(PROGRAM), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10 * WAIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "answered" in done.stdout
