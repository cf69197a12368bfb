"""Environments of their own for what is built, without a package index."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOOLS = Path(sysconfig.get_path("scripts"))


def run(*command: str | Path, **options: Any) -> str:
    """Run a command that knows nothing of this source tree or of coverage; return its output."""
    ours = ("PYTHONPATH", "COVERAGE_PROCESS_CONFIG")
    variables = {key: value for key, value in os.environ.items() if key not in ours}
    ran = subprocess.run(
        command, env=variables, capture_output=True, text=True, check=False, **options
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def built_wheel(folder: Path) -> Path:
    """Build the host's wheel into a folder, and return its path."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def environment_with(wheel: Path, folder: Path) -> Path:
    """Make an environment with a wheel and what it depends on; return its folder of programs."""
    venv.create(folder, with_pip=False)
    names = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=names))
    # The dependencies of this environment; what is installed in the new one comes first.
    borrowed = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (site / "zz_borrowed.pth").write_text(borrowed, encoding="utf-8")
    programs = Path(sysconfig.get_path("scripts", "venv", vars=names))
    install(programs, wheel)
    return programs


def install(programs: Path, *what: str | Path) -> None:
    """Install into an environment of `environment_with`, without dependencies."""
    options = ("--offline", "--no-deps", "--no-build-isolation", "--python", programs / "python")
    run(TOOLS / "uv", "pip", "install", *options, *what)
