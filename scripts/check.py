"""Install the project for development into .venv-dev and run its checks.

usage: python3 scripts/check.py [--all | CHECK... | PLUGIN...]

Without arguments it runs `format`, `lint` and `quick`: a few minutes on two cores. `quick` runs
the tests that stay in one process and end within about a second, and a dozen smoke tests of
the whole program. `--all` runs everything that CI runs: also `types`, `contracts`, all `tests`,
`package`, which builds and installs all that is published, `lean`, which runs the tests of the host
without the libraries that only the catalog needs, and the checks of each heavy plugin.
`coverage` runs all tests once more, at twice the processor time, and only by its name. The checks
run in this order, up to the first that fails; tests that fail run once more, one after the other,
and count as passed if they pass then. The script needs Python 3.11 or later with pip;
Node.js, where it is installed, packs the bundle. It changes no environment of yours.

PLUGIN is a folder in plugins/ that is a distribution of its own. Its `types`, `tests`,
`package` and `coverage` run in an environment made from its own pyproject.toml, .venv-PLUGIN:
`check.py tests filters`, or the first three with `check.py filters`. A plugin with
`environment = "own"` in its table `[tool.standards-mcp]` is heavy: it is left out of .venv-dev, and
so of the types, tests and package of the core.
"""

import configparser
import os
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / ".venv-dev"
CONTRACTS = CORE / "import-contracts.ini"
PUBLIC = {"__init__", "commands", "errors", "files", "filters", "testing", "transports"}
"""What plugins import."""
SERVICE = "standards_mcp_service"
"""The transport over HTTP."""
CODE = ("benchmarks", "packaging", "plugins", "scripts", "standards_mcp", "tests")
DEFAULT = ("format", "lint", "quick")
FIRST = ("format", "lint", "contracts", "tests")
"""The checks of `--all` that come before those that run side by side."""
CHECKS = ("format", "lint", "types", "contracts", "quick", "tests", "package", "lean", "coverage")
OF_PLUGINS = ("types", "tests", "package")
"""The checks of a plugin that need what it depends on; `coverage` is one more."""
QUICK_TESTS = "smoke or not (processes or slow or types)"
LEAN = ROOT / ".venv-lean"
OF_CATALOG = ("numpy", "onnxruntime", "pinecone", "simsimd", "tantivy", "tokenizers")
"""The libraries that the host does without."""
TESTS_FAILED = 1
"""The exit code of pytest if tests failed, and nothing else."""
WORKERS = os.environ.get("CHECK_WORKERS") or str((os.cpu_count() or 1) + 1)
"""How many processes run tests: one more than there are processors, since many tests wait."""


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
    arguments = [argument for argument in sys.argv[1:] if argument != "--all"]
    plugins = [name for name in arguments if name in DISTRIBUTIONS]
    checks = [name for name in arguments if name not in DISTRIBUTIONS]
    allowed = (*OF_PLUGINS, "coverage") if plugins else CHECKS
    if unknown := sorted(set(checks) - set(allowed)):
        names = ", ".join((*allowed, *sorted(DISTRIBUTIONS)))
        of_plugin = " of a plugin" if plugins else ""
        print(f"unknown check {', '.join(unknown)}{of_plugin}; known: {names}")
        return 2
    if "--all" in sys.argv:
        if arguments:
            print("--all runs every check: leave out", ", ".join(arguments))
            return 2
        return check_core(FIRST) or check_side_by_side()
    if checks == ["lean"]:
        return check_lean()
    for plugin in plugins:
        if code := check_plugin(plugin, checks or OF_PLUGINS):
            return code
    return 0 if plugins else check_core(checks or DEFAULT)


def check_core(names: Sequence[str]) -> int:
    install(CORE, LIGHT)
    write_contracts()
    packages = [package for package in PACKAGES if package.parent not in HEAVY.values()]
    measured = [f"--cov={name}" for name in ("standards_mcp", *(each.name for each in packages))]
    tests = ["pytest", "-n", WORKERS]
    commands = {
        "format": [["ruff", "format", "--check", *CODE]],
        "lint": [["ruff", "check", *CODE], ["python", "scripts/check_english.py"]],
        "types": [
            *types(CORE, [ROOT / "standards_mcp", *packages]),
            ["pytest", "-q", "-m", "types"],
        ],
        "contracts": [["lint-imports", "--config", str(CONTRACTS)]],
        "quick": [[*tests, "-m", QUICK_TESTS, "--hypothesis-profile", "quick"]],
        "tests": [tests],
        "package": [["python", "scripts/check_package.py"]],
        "coverage": [[*tests, *measured, "--cov-report=term"]],
    }
    return run_checks(CORE, {name: commands[name] for name in names})


def check_plugin(name: str, checks: Sequence[str]) -> int:
    environment, folder = ROOT / f".venv-{name}", DISTRIBUTIONS[name]
    install(environment, {**for_tests(), name: folder})
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


def check_lean() -> int:
    """Run the tests of the host without the libraries that only the catalog needs."""
    install(LEAN, for_tests())
    command = [str(program(LEAN, "python")), "-m", "pip", "uninstall", "--quiet", "--yes"]
    if run([*command, *OF_CATALOG]):
        raise SystemExit("uninstalling failed; see the messages above")
    tests = ["pytest", "-n", WORKERS, str(ROOT / "tests"), "-m", QUICK_TESTS]
    return run_checks(LEAN, {"lean": [[*tests, "--hypothesis-profile", "quick"]]})


def for_tests() -> dict[str, Path]:
    """Return the distribution that tests need beside the one they test: some serve over HTTP."""
    return {"service": DISTRIBUTIONS["service"]}


def check_side_by_side() -> int:
    """Run the other checks and those of heavy plugins, each in a process of its own."""
    # The checks `package` fill it side by side, each with its own distributions.
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    share = {"CHECK_WORKERS": "1"}

    def check(names: str) -> tuple[str, subprocess.CompletedProcess[str]]:
        command = [sys.executable, __file__, *names.split()]
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        variables = {**os.environ, **share}
        return names, subprocess.run(command, env=variables, check=False, text=True, **options)

    failed: list[str] = []
    with ThreadPoolExecutor(int(WORKERS)) as pool:
        # The longest ones first, so that no core is left alone with one of them.
        for names, done in pool.map(check, [*sorted(HEAVY), "lean", "types package"]):
            print(f"--- {names}", done.stdout, sep="\n", flush=True)
            failed += [names] if done.returncode else []
    if failed:
        print(f"failed: {', '.join(failed)}; repeat with python3 scripts/check.py {failed[0]}")
    return 1 if failed else 0


def types(environment: Path, paths: Sequence[Path]) -> list[list[str]]:
    python = str(program(environment, "python"))
    names = [str(path) for path in paths]
    # Checks side by side damage a cache that they share.
    cache = ["--cache-dir", str(environment / "mypy-cache")]
    return [["mypy", *cache, *names], ["pyright", "--pythonpath", python, *names]]


def run_checks(environment: Path, checks: dict[str, list[list[str]]]) -> int:
    for name, commands in checks.items():
        began = time.monotonic()
        for command in commands:
            if code := run_check(environment, command):
                print(f"{name} failed: {' '.join(command)}")
                return code
        print(f"{name} passed in {time.monotonic() - began:.0f} s", flush=True)
    return 0


def run_check(environment: Path, command: list[str]) -> int:
    """Run a check; tests that fail beside others run once more, alone."""
    arguments = [str(program(environment, command[0])), *command[1:]]
    if command[0] != "pytest":
        return run(arguments)
    # Checks side by side remember their failures apart.
    arguments += ["-o", f"cache_dir={environment / 'pytest-cache'}"]
    code = run(arguments)
    if code != TESTS_FAILED:
        return code
    print("failed tests run once more, one by one; if one passes now, it fails under load: fix it")
    return run([*arguments, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"])


def install(environment: Path, plugins: dict[str, Path]) -> None:
    """Install the host and *plugins*, with the groups `dev` of all."""
    python = program(environment, "python")
    if not python.exists():
        venv.create(environment, with_pip=True)
    folders = [ROOT, *plugins.values()]
    groups = [
        f"{folder / 'pyproject.toml'}:dev"
        for folder in folders
        if "dev" in read_project(folder).get("dependency-groups", {})
    ]
    requirements = [
        *(part for folder in folders for part in ("-e", str(folder))),
        *(part for group in groups for part in ("--group", group)),
    ]
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    # uv takes seconds, because it links the packages that another environment has already. It does
    # not read pip's configuration: where only that names an index, pip installs.
    uv = ["uv", "pip", "install", "--quiet", "--python", str(python)]
    if not run([*pip, "uv>=0.9"]) and not run(
        [str(program(environment, uv[0])), *uv[1:], *requirements]
    ):
        return
    # Dependency groups need pip 25.1 or later.
    if run([*pip, "--upgrade", "pip>=25.1"]) or run([*pip, *requirements]):
        raise SystemExit("the installation failed; see the messages above")


def program(environment: Path, name: str) -> Path:
    return environment / ("Scripts" if os.name == "nt" else "bin") / name


def write_contracts() -> None:
    """Write the import contracts of pyproject.toml with those that hold for every plugin."""
    settings: dict[str, Any] = read_project(ROOT)["tool"]["importlinter"]
    shared = [
        "standards_mcp_catalog",
        "standards_mcp_backup",
        "standards_mcp_documents",
        "standards_mcp_encoders",
        "standards_mcp_oauth",
    ]
    others = [name for name in NAMES if name not in shared]
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
        {
            "name": "Plugins know the catalog and the shared packages, and no other plugin",
            "type": "layers",
            "layers": [" | ".join(others), shared[0], " | ".join(shared[1:])],
        },
        {
            "name": "Only the store in Pinecone imports its SDK",
            "type": "forbidden",
            "source_modules": [name for name in NAMES if name != "standards_mcp_pinecone"],
            "forbidden_modules": ["pinecone"],
        },
        {
            "name": "Plugins use the public API only",
            "type": "forbidden",
            "source_modules": NAMES,
            "forbidden_modules": _private_modules(),
            "allow_indirect_imports": True,
        },
        {
            "name": "Of all plugins, only the service speaks MCP",
            "type": "forbidden",
            "source_modules": [name for name in NAMES if name != SERVICE],
            "forbidden_modules": ["mcp", "mcp_types"],
            "allow_indirect_imports": True,
        },
        {
            "name": "Only the service serves HTTP, signs in, counts and renders pages",
            "type": "forbidden",
            "source_modules": ["standards_mcp", *(name for name in NAMES if name != SERVICE)],
            "forbidden_modules": ["jinja2", "jwt", "prometheus_client", "uvicorn"],
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
    # Like pip, let uv trust the certificates that the machine trusts.
    variables |= {"UV_NATIVE_TLS": "1", "UV_SYSTEM_CERTS": "1"}
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
