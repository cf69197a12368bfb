"""Install the project for development into .venv-dev and run its checks.

usage: python3 scripts/check.py [format] [lint] [types] [contracts] [tests] [package]

Without names the checks run in this order, up to the first that fails; `package`, which builds and
installs all that is published, then runs in CI only. It needs Python 3.11 or later with pip, and
nothing else; Node.js, where it is there, packs the bundle. The folder is its own: it touches no
environment of yours.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-dev"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON = str(PROGRAMS / "python")
# Those of plugins that are distributions of their own.
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
CODE = ("benchmarks", "packaging", "plugins", "scripts", "standards_mcp", "tests")

CHECKS: dict[str, list[list[str]]] = {
    "format": [["ruff", "format", "--check", *CODE]],
    "lint": [["ruff", "check", *CODE]],
    "types": [["mypy"], ["pyright", "--pythonpath", PYTHON]],
    "contracts": [["lint-imports"]],
    "tests": [["pytest", "-n", "auto", "--cov", "--cov-report=term"]],
    "package": [["python", "scripts/check_package.py"]],
}
ONLY_IN_CI = "package"


def main() -> int:
    names = sys.argv[1:] or [name for name in CHECKS if name != ONLY_IN_CI or os.environ.get("CI")]
    if unknown := sorted(set(names) - CHECKS.keys()):
        print(f"unknown check {', '.join(unknown)}; known: {', '.join(CHECKS)}")
        return 2
    install()
    for name in names:
        for command in CHECKS[name]:
            if code := run([str(PROGRAMS / command[0]), *command[1:]]):
                print(f"{name} failed: {' '.join(command)}")
                return code
    return 0


def install() -> None:
    if not Path(PYTHON).exists():
        venv.create(ENVIRONMENT, with_pip=True)
    # Dependency groups need pip 25.1 or later.
    pip = [PYTHON, "-m", "pip", "install", "--quiet"]
    editable = [part for path in (ROOT, *PLUGINS) for part in ("-e", str(path))]
    if run([*pip, "--upgrade", "pip>=25.1"]) or run([*pip, *editable, "--group", "dev"]):
        raise SystemExit("installing failed; see the messages above")


def run(command: list[str]) -> int:
    print("+", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
