"""Install the project for development into .venv-dev and run its checks.

usage: python3 scripts/check.py [format] [lint] [types] [contracts] [tests] [package]

Without names the checks run in this order, up to the first that fails; `package`, which builds and
installs all that is published, then runs in CI only. It needs Python 3.11 or later with pip, and
nothing else; Node.js, where it is there, packs the bundle. The folder is its own: it touches no
environment of yours.
"""

import configparser
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-dev"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON = str(PROGRAMS / "python")
PACKAGES = sorted(path.parent.name for path in ROOT.glob("plugins/*/standards_mcp_*/__init__.py"))
"""The import packages of all plugins in this repository."""
DISTRIBUTIONS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
"""The folders of plugins that are distributions of their own."""
CONTRACTS = ENVIRONMENT / "import-contracts.ini"
PUBLIC = {"__init__", "catalog", "testing"}
"""What plugins import."""
MEASURED = [f"--cov={name}" for name in ("standards_mcp", *PACKAGES)]
CODE = ("benchmarks", "packaging", "plugins", "scripts", "standards_mcp", "tests")

CHECKS: dict[str, list[list[str]]] = {
    "format": [["ruff", "format", "--check", *CODE]],
    "lint": [["ruff", "check", *CODE]],
    "types": [["mypy"], ["pyright", "--pythonpath", PYTHON]],
    "contracts": [["lint-imports", "--config", str(CONTRACTS)]],
    "tests": [["pytest", "-n", "auto", *MEASURED, "--cov-report=term"]],
    "package": [["python", "scripts/check_package.py"]],
}
ONLY_IN_CI = "package"


def main() -> int:
    names = sys.argv[1:] or [name for name in CHECKS if name != ONLY_IN_CI or os.environ.get("CI")]
    if unknown := sorted(set(names) - CHECKS.keys()):
        print(f"unknown check {', '.join(unknown)}; known: {', '.join(CHECKS)}")
        return 2
    install()
    write_contracts()
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
    editable = [part for path in (ROOT, *DISTRIBUTIONS) for part in ("-e", str(path))]
    if run([*pip, "--upgrade", "pip>=25.1"]) or run([*pip, *editable, "--group", "dev"]):
        raise SystemExit("installing failed; see the messages above")


def write_contracts() -> None:
    """Write the import contracts of pyproject.toml with those that hold for every plugin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    settings: dict[str, Any] = project["tool"]["importlinter"]
    contracts: list[dict[str, Any]] = settings.pop("contracts")
    contracts += [
        {
            "name": "The host never imports a plugin",
            "type": "forbidden",
            "source_modules": ["standards_mcp"],
            "forbidden_modules": PACKAGES,
        },
        {"name": "Plugins do not know each other", "type": "independence", "modules": PACKAGES},
        {
            "name": "Plugins use the public API only",
            "type": "forbidden",
            "source_modules": PACKAGES,
            "forbidden_modules": [*_private_modules(), "mcp", "mcp_types"],
            "allow_indirect_imports": True,
        },
    ]
    settings["root_packages"] += PACKAGES
    sections = {f"importlinter:contract:{each['name']}": each for each in contracts}
    written = configparser.ConfigParser()
    for name, values in {"importlinter": settings, **sections}.items():
        written[name] = {key: _ini_value(value) for key, value in values.items()}
    with CONTRACTS.open("w", encoding="utf-8") as file:
        written.write(file)


def _private_modules() -> list[str]:
    names = {
        path.stem
        for path in (ROOT / "standards_mcp").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    return [f"standards_mcp.{name}" for name in sorted(names - PUBLIC)]


def _ini_value(value: object) -> str:
    return "\n".join(["", *value]) if isinstance(value, list) else str(value)


def run(command: list[str]) -> int:
    print("+", *command, flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
