"""The checks of schemathesis, run against a service over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

from .waiting import WAIT


async def check_openapi(
    url: str, folder: Path, accepted: Sequence[str], *, token: str | None = None
) -> str:
    """Run all checks on the paths of ``/openapi.json``, and return what they print.

    Args:
        folder: Where their configuration is written.
        accepted: Statuses that arguments may have which fit the schema.
    """
    config = folder / "schemathesis.toml"
    statuses = f"expected-statuses = {json.dumps(list(accepted))}"
    config.write_text(f"[checks.positive_data_acceptance]\n{statuses}\n", "utf-8")
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run"]
    command += [f"{url}/openapi.json", "--checks=all", "--max-examples=5", "--seed=1"]
    # The first search loads a model, which takes longer than their limits on a busy machine.
    command += [f"--request-timeout={WAIT}", f"--max-response-time={WAIT}"]
    command += ["--no-color", *([f"--header=Authorization: Bearer {token}"] if token else [])]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)

    ran = await anyio.to_thread.run_sync(run)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-1000:]
    return ran.stdout
