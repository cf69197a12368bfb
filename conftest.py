"""Fixtures for all tests: no setting, file or folder of the machine reaches a test."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import textwrap
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from mcp import Client

from standards_mcp._utils.installation import HOST
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.host import Host
from standards_mcp.loading.discovery import installed_plugins
from standards_mcp.loading.records import PluginInfo
from standards_mcp.plugin import Plugin
from standards_mcp.server.server import build_server

MakeHost = Callable[..., Host]
OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
Install = Callable[..., Path]

# By its module: what pytest loads by entry point is imported before coverage is measured.
pytest_plugins = ["standards_mcp.testing", "standards_mcp_catalog.testing"]
pytest.register_assert_rewrite("support.store_contract")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background so, and the processes of tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A process that compiles the host anew takes a quarter longer to start, and tests start hundreds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("standards-mcp", deadline=None, max_examples=50)
# For the check `quick`.
hypothesis.settings.register_profile("quick", deadline=None, max_examples=10)
# For a search at leisure: pytest --hypothesis-profile thorough
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("standards-mcp")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _hidden_plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the plugins that are installed beside the host: no test may depend on them.

    Of two distributions with one name the first on the path counts, so one without plugins hides
    the other, also in the processes that tests start.
    """
    folder = tmp_path_factory.mktemp("hidden")
    for name in {each.distribution for each in installed_plugins()} - {HOST}:
        info = folder / f"{name.replace('-', '_')}-0.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
    with pytest.MonkeyPatch.context() as monkeypatch:
        _prepend(monkeypatch, folder)
        yield


def _prepend(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put a folder on the path of this process and, through PYTHONPATH, of those that it starts."""
    monkeypatch.syspath_prepend(str(folder))
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(folder), *([inherited] if inherited else [])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Take half as many workers again as there are cores: a quarter of the suite's time is waiting.

    More take longer, since each of them collects all tests first.
    """
    cores = os.cpu_count() or 1
    return cores + (cores + 1) // 2


@pytest.fixture(autouse=True)
def _clean_environment(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give every test its own home and working directory and no settings of the machine.

    Coverage of a process that a test starts costs half as much again as the process. So it is
    taken only where a process is what runs the lines, in tests that are marked `measured`.
    """
    if not request.node.get_closest_marker("measured"):
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    ours = ("STANDARDS_MCP_", "PINECONE_", "CSP_", "MCP_PORT", "PYTHONUNBUFFERED")
    for name in [name for name in os.environ if name.startswith(ours)]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
    folder = tmp_path / "cwd"
    folder.mkdir()
    monkeypatch.chdir(folder)


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a catalog with the starter set, which no test may change.

    Tests of the host also run in an environment without the libraries of the catalog. The few that
    want real standards are skipped there.
    """
    for library in ("numpy", "onnxruntime", "tantivy", "tokenizers"):
        pytest.importorskip(library)
    from support.catalogs import planted_catalog  # noqa: PLC0415  - see above

    return planted_catalog(tmp_path_factory)


@pytest.fixture
def starter_catalog(planted: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the catalog with the starter set be the configured one, and return its folder."""
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__CATALOG__PATH", str(planted))
    return planted


@pytest.fixture
def own_catalog(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let a copy of it, which the test may change, be the configured one; return its folder."""
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__CATALOG__PATH", str(tmp_path / "own-catalog"))
    # Tests that read the original make and remove journals, which are empty.
    journals = shutil.ignore_patterns("*-wal", "*-shm")
    return shutil.copytree(planted, tmp_path / "own-catalog", ignore=journals)


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Undo what a command that ran in this process set up: it takes records away from pytest."""
    root, package = logging.getLogger(), logging.getLogger("standards_mcp")
    before = [(log, log.handlers[:], log.level, log.propagate) for log in (root, package)]
    raises = logging.raiseExceptions
    yield
    logging.raiseExceptions = raises
    for log, log.handlers[:], level, log.propagate in before:
        log.setLevel(level)


@pytest.fixture
def make_host(tmp_path: Path) -> MakeHost:
    """Return a function that loads plugin classes, by name, into a host without discovery.

    Its argument *given* has objects in place of services; the others are settings.
    """

    def make(
        plugins: dict[str, type[Plugin]] | None = None,
        /,
        *,
        timing: Timing = DEFAULT_TIMING,
        given: Mapping[Any, object] | None = None,
        **settings: object,
    ) -> Host:
        loaded = LoadedSettings(Settings(state_dir=tmp_path / "state", **settings), None)
        installed = [
            PluginInfo(name=name, load=lambda found=plugin: found)
            for name, plugin in (plugins or {}).items()
        ]
        host = Host(loaded, installed=installed, timing=timing, services=given)
        host.load()
        return host

    return make


@pytest.fixture(params=["legacy", "auto"])
def open_client(request: pytest.FixtureRequest) -> OpenClient:
    """Return a function that opens a client of a host, in either protocol generation."""

    @asynccontextmanager
    async def open_one(host: Host, **arguments: Any) -> AsyncGenerator[Client]:
        async with Client(build_server(host, "1.2.3"), mode=request.param, **arguments) as client:
            yield client

    return open_one


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that installs a distribution with one plugin, as an installer would."""
    site = tmp_path / "site"
    site.mkdir()
    _prepend(monkeypatch, site)
    modules: list[str] = []

    def write(  # noqa: PLR0913  - keyword arguments, mostly omitted
        name: str,
        source: str,
        *,
        version: str = "1.0",
        requires: Iterable[str] = (),
        distribution: str | None = None,
        group: str = "standards_mcp.plugins",
        attribute: str = "",
    ) -> Path:
        distribution = distribution or f"standards-mcp-{name}"
        module = f"{distribution.replace('-', '_')}_plugin"
        (site / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
        lines += [f"Requires-Dist: {item}" for item in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
        attribute = attribute or f"{name.capitalize()}Plugin"
        entry = f"[{group}]\n{name} = {module}:{attribute}\n"
        (info / "entry_points.txt").write_text(entry, encoding="utf-8")
        modules.append(module)
        return site / f"{module}.py"

    yield write
    for module in modules:
        sys.modules.pop(module, None)
