"""The clients that people use, each in a process, against a server process over both transports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from support.downloads import NODE, node_packages, python_with
from support.environments import ROOT, run
from support.environments import TOOLS as PROGRAMS
from support.http import served_behind, served_process
from support.peer import COMMAND, store_snapshot

pytestmark = [pytest.mark.slow, pytest.mark.processes]
PYTHON_SDK_1 = "mcp==1.30.0"
FASTMCP = "fastmcp==4.2.3"
TYPESCRIPT_SDK_1 = "@modelcontextprotocol/sdk@1.32.2"
TYPESCRIPT_SDK_2 = "@modelcontextprotocol/client@2.4.0"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"

SCRIPTS = Path(__file__).with_name("clients")
TOOL, ARGUMENTS = "get_standard_details", {"standard_id": "3.NF.A.1"}
FOUND = "CCSS.Math.Content.3.NF.A.1"
TOOLS = {"find_relevant_standards", "get_standard_details"}
Command: TypeAlias = Callable[[], Sequence[str | Path]]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, planted: Path) -> Iterator[str]:
    with served_process(tmp_path_factory.mktemp("served"), catalog=planted) as found:
        yield f"{found}/mcp"


@pytest.fixture(params=["stdio", "stdio from a snapshot", "http"])
def target(request: pytest.FixtureRequest, starter_catalog: Path) -> Sequence[str]:
    """What a client is told to connect to: a command, or an address."""
    del starter_catalog  # the variable that names it is passed on
    if request.param == "stdio from a snapshot":
        store_snapshot()
        return COMMAND
    return COMMAND if request.param == "stdio" else [request.getfixturevalue("url")]


def typescript(version: str, package: str) -> Command:
    return lambda: (NODE, SCRIPTS / "typescript.mjs", node_packages(package), version)


CLIENTS: dict[str, Command] = {
    "python-sdk-1": lambda: (python_with(PYTHON_SDK_1), SCRIPTS / "python_v1.py"),
    "python-sdk-2": lambda: (sys.executable, SCRIPTS / "python_v2.py"),
    "fastmcp": lambda: (python_with(FASTMCP), SCRIPTS / "with_fastmcp.py"),
    "typescript-sdk-1": typescript("1", TYPESCRIPT_SDK_1),
    "typescript-sdk-2": typescript("2", TYPESCRIPT_SDK_2),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_lists_the_tools_and_calls_one(client: str, target: Sequence[str]):
    told = json.loads(run_client(*CLIENTS[client](), TOOL, json.dumps(ARGUMENTS), *target))
    assert set(told["tools"]) >= TOOLS
    assert [each["statement_notation"] for each in told["structured"]["results"]] == [FOUND]


PATIENCE = "90000"
"""Milliseconds that the inspector waits for the start of a server on a busy machine."""


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_finds_no_fault_and_calls_a_tool(era: str, target: Sequence[str]):
    strict = ("--method", "tools/list", "--strict")
    listed = json.loads(inspected(era, target, *strict))["result"]["tools"]
    assert {each["name"] for each in listed} >= TOOLS
    called = ("--method", "tools/call", "--tool-name", TOOL)
    told = inspected(era, target, *called, "--tool-args-json", json.dumps(ARGUMENTS))
    answer = json.loads(told)["result"]
    assert [each["statement_notation"] for each in answer["structuredContent"]["results"]] == [
        FOUND
    ]


def inspected(era: str, target: Sequence[str], *options: str) -> str:
    """Return what the inspector prints."""
    package = node_packages(INSPECTOR) / "@modelcontextprotocol" / "inspector"
    launcher = package / "clients" / "launcher" / "build" / "index.js"
    named = ("--protocol-era", era, "--format", "json", "--connect-timeout", PATIENCE, *options)
    return run_client(NODE, launcher, "--cli", *named, *over(target))


FILES = {
    "skill://align-lesson/SKILL.md": ["SKILL.md"],
    "skill://unpack-standard/SKILL.md": ["SKILL.md"],
    "skill://build-progression/SKILL.md": ["SKILL.md", "references/wording.md"],
    "skill://check-unit-coverage/SKILL.md": ["SKILL.md"],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the plugins that have skills, and the tools for them."""
    site = tmp_path_factory.mktemp("site")
    options = ("--offline", "--no-deps", "--no-build-isolation", "--target", site)
    plugins = (ROOT / "plugins" / name for name in ("prompts", "resources"))
    run(PROGRAMS / "uv", "pip", "install", "--python", sys.executable, *options, *plugins)
    return site


@pytest.fixture(params=["stdio", "http", "another server"])
def with_skills(
    request: pytest.FixtureRequest,
    site: Path,
    starter_catalog: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Sequence[str]]:
    """Give what a client is told to connect to, to find skills."""
    if request.param == "http":
        with served_process(tmp_path, catalog=starter_catalog, path=site) as found:
            yield [f"{found}/mcp"]
    elif request.param == "another server":
        with served_behind(tmp_path, site, catalog=starter_catalog) as found:
            yield [f"{found}/mcp"]
    else:
        monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
        yield COMMAND


def test_fastmcp_reads_all_files_of_the_skills_and_verifies_them(with_skills: Sequence[str]):
    script = SCRIPTS / "skills_with_fastmcp.py"
    assert json.loads(run_client(python_with(FASTMCP), script, *with_skills)) == FILES


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_verifies_the_skills_and_finds_no_fault(era: str, with_skills: Sequence[str]):
    # The inspector gives a server few variables of its own.
    path = ("-e", f"PYTHONPATH={os.environ['PYTHONPATH']}")
    told = inspected(era, with_skills, *path, "--method", "skills/list", "--verify")
    found = [json.loads(line) for line in told.splitlines()]
    assert {each["uri"]: each["outcome"] for each in found} == dict.fromkeys(FILES, "verified")
    assert [each["conformance"] for each in found] == [[]] * len(FILES)
    if era == "legacy":  # for 2026-07-28, it wants cache hints that the extension does not have
        folder = ("--method", "resources/directory/read", "--uri", "skill://build-progression")
        listed = json.loads(inspected(era, with_skills, *path, *folder))["result"]["resources"]
        assert [each["mimeType"] for each in listed] == ["text/markdown", "inode/directory"]


def over(target: Sequence[str]) -> Sequence[str]:
    is_url = target[0].startswith("http")
    return ("--transport", "http", "--server-url", *target) if is_url else ("--", *target)


def run_client(*command: str | Path) -> str:
    """Return what a client prints."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
