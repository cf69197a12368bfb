"""The guides: each command of their texts runs, in its order, on a real installation."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from support.environments import TOOLS
from support.peer import COMMAND
from support.skills import skill_text

from standards_mcp.testing import Connect, check_plugin
from standards_mcp_guides import GuidesPlugin

NAMES = ("write-a-plugin", "operate-this-service")


def text_of(connect: Connect, name: str) -> str:
    async def read() -> str:
        async with connect(GuidesPlugin, name="guides") as client:
            return await skill_text(client, name)

    return anyio.run(read)


def commands(text: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


class Shell:
    """Runs the commands of a text as its reader would, with plugins in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.cwd = folder
        self._site = folder / "site"
        path = os.pathsep.join((str(self._site), os.environ["PYTHONPATH"]))
        self._environment = {**os.environ, "PYTHONPATH": path}

    def __call__(self, line: str) -> str:
        program, *arguments = shlex.split(line)
        if program == "cd":
            self.cwd /= arguments[0]
            return ""
        command = {"standards-mcp": COMMAND, "python": [sys.executable], "ruff": [TOOLS / "ruff"]}
        whole = [*command[program], *arguments]
        if arguments[:3] == ["-m", "pip", "install"]:
            assert arguments[3:] == ["--editable", ".", "--group", "dev"]
            options = ("--offline", "--no-deps", "--no-build-isolation", "--target", self._site)
            whole = [TOOLS / "uv", "pip", "install", "--python", sys.executable, *options, "."]
        elif arguments[:2] == ["-m", "pytest"]:
            whole += ["-q", "-pno:cacheprovider", "-pno:xdist"]
        ran = subprocess.run(
            whole,
            cwd=self.cwd,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
        return ran.stdout


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.usefixtures("starter_catalog")
def test_the_commands_of_write_a_plugin_make_one_that_is_served(connect: Connect, tmp_path: Path):
    (folder := tmp_path / "work").mkdir()
    shell = Shell(folder)
    told = {line: shell(line) for line in commands(text_of(connect, "write-a-plugin"))}
    assert [line.split()[0] for line in told][:3] == ["standards-mcp", "cd", "python"]
    assert "acme_outline" in told["standards-mcp tools"]
    assert "acme" in told["standards-mcp plugins info acme"]
    assert "3.NF.A.1" in next(out for line, out in told.items() if " call acme" in line)
    for kind in ("filters", "prompts", "resources", "routes", "skills"):
        assert f"`{kind}`" in text_of(connect, "write-a-plugin")


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.usefixtures("starter_catalog")
def test_the_commands_of_operate_this_service_run_and_change_nothing(
    connect: Connect, tmp_path: Path
):
    (folder := tmp_path / "work").mkdir()
    shell, home = Shell(folder), Path(os.environ["HOME"])
    lines = commands(text_of(connect, "operate-this-service"))
    told = {line: shell(line) for line in lines}
    assert "find_relevant_standards" in told["standards-mcp tools"]
    dry = [line for line in lines if "disable" in line]
    assert len(dry) == 2
    assert all("--dry-run" in line and told[line].strip() for line in dry)
    assert not list(home.rglob("standards-mcp.toml"))
    assert not list(folder.rglob("*.toml"))


def test_each_command_and_each_key_of_the_guides_exists(connect: Connect):
    for name in NAMES:
        text = text_of(connect, name)
        for found in set(re.findall(r"`standards-mcp ([a-z]+(?: [a-z]+)*)", text)):
            words = [word for word in found.split() if word not in {"library", "http"}]
            ran = subprocess.run(
                [*COMMAND, *words[:2], "--help"], capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, found
        assert len(text.splitlines()) < 500


def test_the_plugin_keeps_the_rules():
    check_plugin(GuidesPlugin, name="guides", reads=[f"skill://{name}/SKILL.md" for name in NAMES])
