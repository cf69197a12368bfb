"""The conformance suite of the protocol, against a server process with every plugin there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.downloads import NODE, node_packages
from support.environments import ROOT, TOOLS, run
from support.http import served_behind, served_process

pytestmark = pytest.mark.processes

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
PLUGINS = ("plugins/filters", "plugins/prompts", "plugins/resources", "tests/conformance/plugin")
SCORED = {"2025-11-25": 30, "2026-07-28": 37}
"""How many scenarios a revision asks of servers."""
NOT_SERVED = {
    # Not scored: an optional extension, and a schema that some clients refuse to take.
    r"tasks-.*",
    r"json-schema-2020-12",
}


@pytest.fixture(scope="session")
def suite() -> Path:
    return node_packages(SUITE) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    options = ("--offline", "--no-deps", "--no-build-isolation", "--target", site)
    plugins = (ROOT / plugin for plugin in PLUGINS)
    run(TOOLS / "uv", "pip", "install", "--python", sys.executable, *options, *plugins)
    return site


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Iterator[str]:
    with served_process(tmp_path_factory.mktemp("conformance"), path=site) as found:
        yield found


@pytest.fixture(scope="module", params=["own", "of another server"])
def url_of_skills(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, site: Path
) -> Iterator[str]:
    if request.param == "own":
        yield request.getfixturevalue("url")
        return
    with served_behind(tmp_path_factory.mktemp("behind"), site) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("revision", SCORED)
def test_every_scored_scenario_of_the_suite_passes(
    suite: Path, url: str, revision: str, tmp_path: Path
):
    out = tmp_path / "out"
    command = (NODE, suite, "server", "--url", f"{url}/mcp", "--requirements", revision, "-o", out)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    failures = {
        f"{scenario}: {check['id']}": check.get("errorMessage")
        for scenario, check in checks(out)
        if check["status"] == "FAILURE"
        and not any(re.fullmatch(each, scenario) for each in NOT_SERVED)
    }
    assert failures == {}
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = {scenario for scenario, _ in checks(out)} - unscored(ran.stdout)
    assert len(passed) == SCORED[revision], passed


CHECKS = {"enumeration": 32, "manifest": 6, "directory": 7}
"""How many checks each scenario of the skills extension has."""


@pytest.mark.slow
@pytest.mark.parametrize("revision", SCORED)
@pytest.mark.parametrize("scenario", CHECKS)
def test_every_check_of_the_skills_extension_runs_and_passes(
    suite: Path, url_of_skills: str, scenario: str, revision: str, tmp_path: Path
):
    out, name = tmp_path / "out", f"sep-2640-skills-{scenario}"
    options = ("--scenario", name, "--spec-version", revision, "--force", "-o", out)
    command = (NODE, suite, "server", "--url", f"{url_of_skills}/mcp", *options)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    statuses = {
        check["id"]: (check["status"], check.get("errorMessage")) for _, check in checks(out)
    }
    # A check is skipped if the extension is not declared, or if nothing is there to look at.
    missing = {
        name: status
        for name, status in statuses.items()
        if status[0] not in {"SUCCESS", "INFO"}
        # Earlier revisions have no cache hints.
        and (revision != "2025-11-25" or "cache-attributes" not in name)
    }
    assert missing == {}, ran.stdout
    assert len(statuses) == CHECKS[scenario], statuses


def checks(out: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each check with the name of its scenario."""
    for file in out.glob("*/checks.json"):
        scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        yield from ((scenario, check) for check in json.loads(file.read_text(encoding="utf-8")))


def unscored(report: str) -> set[str]:
    _, _, told = report.partition("Not scored for")
    return set(re.findall(r"^  \S (\S+) \(", told, re.MULTILINE))
