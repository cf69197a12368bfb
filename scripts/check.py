"""Install the project for development into .venv-dev and run its checks.

usage: python3 scripts/check.py [format] [lint] [types] [contracts] [tests] [processes] [package]
                                [coverage] [PLUGIN...]

Without names the checks run in this order, up to the first that fails; `package`, which builds and
installs all that is published, then runs in CI only, and `coverage`, which is all tests once more
at twice the processor time, only by its name. `processes` are the tests that start servers,
isolated plugins and clients in processes of their own; `tests` are all others. It needs Python
3.11 or later with pip, and nothing else; Node.js, where it is there, packs the bundle. The folder
is its own: it touches no environment of yours.

PLUGIN is a folder in plugins/ that is a distribution of its own. Its `types`, `tests`,
`package` and `coverage` run in an environment made from its own pyproject.toml, .venv-PLUGIN:
`check.py tests filters`, or the first three with `check.py filters`. A plugin that says
`environment = "own"` in its table `[tool.standards-mcp]` is left out of .venv-dev, and so of the
types, tests and package of the core; CI checks such plugins side by side, after the core.
"""

import configparser
import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / ".venv-dev"
CONTRACTS = CORE / "import-contracts.ini"
PUBLIC = {"__init__", "catalog", "commands", "testing"}
"""What plugins import."""
CODE = ("benchmarks", "packaging", "plugins", "scripts", "standards_mcp", "tests")
CHECKS = ("format", "lint", "types", "contracts", "tests", "processes", "package", "coverage")
OF_PLUGINS = ("types", "tests", "package", "coverage")
"""The checks that need what a plugin depends on."""
ONLY_IN_CI = "package"
ONLY_BY_NAME = "coverage"
WORKERS = os.environ.get("CHECK_WORKERS", "auto")
"""How many processes run tests."""


def read_project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def is_heavy(folder: Path) -> bool:
    """Tell whether a plugin wants an environment of its own, away from the core's."""
    said = read_project(folder).get("tool", {}).get("standards-mcp", {}).get("environment")
    if said not in (None, "own"):
        raise SystemExit(f'{folder / "pyproject.toml"}: environment is "own" or left out')
    return said == "own"


PACKAGES = sorted(path.parent for path in ROOT.glob("plugins/*/standards_mcp_*/__init__.py"))
"""The import packages of all plugins in this repository."""
DISTRIBUTIONS = {path.parent.name: path.parent for path in ROOT.glob("plugins/*/pyproject.toml")}
"""The folders of plugins that are distributions of their own, by their names."""
HEAVY = {name: folder for name, folder in DISTRIBUTIONS.items() if is_heavy(folder)}
LIGHT = {name: folder for name, folder in DISTRIBUTIONS.items() if name not in HEAVY}
NAMES = [package.name for package in PACKAGES]


def main() -> int:
    plugins = [name for name in sys.argv[1:] if name in DISTRIBUTIONS]
    checks = [name for name in sys.argv[1:] if name not in DISTRIBUTIONS]
    known = OF_PLUGINS if plugins else CHECKS
    if unknown := sorted(set(checks) - set(known)):
        names = ", ".join((*known, *sorted(DISTRIBUTIONS)))
        print(
            f"unknown check {', '.join(unknown)}{' of a plugin' if plugins else ''}; known: {names}"
        )
        return 2
    for plugin in plugins:
        if code := check_plugin(plugin, checks or without(OF_PLUGINS, ONLY_BY_NAME)):
            return code
    if plugins:
        return 0
    in_ci = bool(os.environ.get("CI"))
    names = checks or without(CHECKS, ONLY_BY_NAME, *(() if in_ci else (ONLY_IN_CI,)))
    return check_core(names) or (check_heavy() if in_ci and not checks else 0)


def without(checks: Sequence[str], *others: str) -> list[str]:
    return [name for name in checks if name not in others]


def check_core(names: list[str]) -> int:
    install(CORE, LIGHT)
    write_contracts()
    packages = [package for package in PACKAGES if package.parent not in HEAVY.values()]
    measured = [f"--cov={name}" for name in ("standards_mcp", *(each.name for each in packages))]
    tests = ["pytest", "-n", WORKERS]
    commands = {
        "format": [["ruff", "format", "--check", *CODE]],
        "lint": [["ruff", "check", *CODE]],
        "types": [
            *types(CORE, [ROOT / "standards_mcp", *packages]),
            ["pytest", "-q", "-m", "types"],
        ],
        "contracts": [["lint-imports", "--config", str(CONTRACTS)]],
        "tests": [[*tests, "-m", "not types and not processes"]],
        "processes": [[*tests, "-m", "processes"]],
        "package": [["python", "scripts/check_package.py"]],
        "coverage": [[*tests, *measured, "--cov-report=term"]],
    }
    return run_checks(CORE, {name: commands[name] for name in names})


def check_plugin(name: str, checks: Sequence[str]) -> int:
    environment, folder = ROOT / f".venv-{name}", DISTRIBUTIONS[name]
    install(environment, {name: folder})
    packages = [package for package in PACKAGES if package.parent == folder]
    measured = [f"--cov={package.name}" for package in packages]
    tests = ["pytest", "-n", WORKERS, str(folder)]
    commands = {
        "types": types(environment, packages),
        "tests": [tests],
        "package": [["python", "scripts/check_package.py", name]],
        "coverage": [[*tests, *measured, "--cov-report=term"]],
    }
    return run_checks(environment, {check: commands[check] for check in checks})


def check_heavy() -> int:
    """Check the heavy plugins side by side, each in a process and an environment of its own."""
    if not HEAVY:
        return 0
    cores = os.cpu_count() or 1
    share = {"CHECK_WORKERS": str(max(1, cores // len(HEAVY)))}

    def check(name: str) -> tuple[str, subprocess.CompletedProcess[str]]:
        command = [sys.executable, __file__, name]
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        variables = {**os.environ, **share}
        return name, subprocess.run(command, env=variables, check=False, text=True, **options)

    failed: list[str] = []
    with ThreadPoolExecutor(cores) as pool:
        for name, done in pool.map(check, sorted(HEAVY)):
            print(f"--- {name}", done.stdout, sep="\n", flush=True)
            failed += [name] if done.returncode else []
    if failed:
        print(f"failed: {', '.join(failed)}; repeat with python3 scripts/check.py {failed[0]}")
    return 1 if failed else 0


def types(environment: Path, paths: Sequence[Path]) -> list[list[str]]:
    python = str(program(environment, "python"))
    names = [str(path) for path in paths]
    return [["mypy", *names], ["pyright", "--pythonpath", python, *names]]


def run_checks(environment: Path, checks: dict[str, list[list[str]]]) -> int:
    for name, commands in checks.items():
        for command in commands:
            if code := run([str(program(environment, command[0])), *command[1:]]):
                print(f"{name} failed: {' '.join(command)}")
                return code
    return 0


def install(environment: Path, plugins: dict[str, Path]) -> None:
    """Install the host and *plugins*, with the groups `dev` of all."""
    python = program(environment, "python")
    if not python.exists():
        venv.create(environment, with_pip=True)
    # Dependency groups need pip 25.1 or later.
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    folders = [ROOT, *plugins.values()]
    groups = [
        f"{folder / 'pyproject.toml'}:dev"
        for folder in folders
        if "dev" in read_project(folder).get("dependency-groups", {})
    ]
    what = [
        *(part for folder in folders for part in ("-e", str(folder))),
        *(part for group in groups for part in ("--group", group)),
    ]
    if run([*pip, "--upgrade", "pip>=25.1"]) or run([*pip, *what]):
        raise SystemExit("installing failed; see the messages above")


def program(environment: Path, name: str) -> Path:
    return environment / ("Scripts" if os.name == "nt" else "bin") / name


def write_contracts() -> None:
    """Write the import contracts of pyproject.toml with those that hold for every plugin."""
    settings: dict[str, Any] = read_project(ROOT)["tool"]["importlinter"]
    contracts: list[dict[str, Any]] = settings.pop("contracts")
    contracts += [
        {
            "name": "No modules or folders beside each other import in a circle",
            "type": "acyclic_siblings",
            "ancestors": ["standards_mcp", *NAMES],
        },
        {
            "name": "The host never imports a plugin",
            "type": "forbidden",
            "source_modules": ["standards_mcp"],
            "forbidden_modules": NAMES,
        },
        {"name": "Plugins do not know each other", "type": "independence", "modules": NAMES},
        {
            "name": "Plugins use the public API only",
            "type": "forbidden",
            "source_modules": NAMES,
            "forbidden_modules": [*_private_modules(), "mcp", "mcp_types"],
            "allow_indirect_imports": True,
        },
    ]
    settings["root_packages"] += NAMES
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
    # What imports what is read from files, so that no plugin must be installed for it.
    folders = [str(folder) for folder in HEAVY.values()] if "lint-imports" in command[0] else []
    path = [*folders, *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = os.environ | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
