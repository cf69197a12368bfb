"""Run the command line in this process, with a plugin to configure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from standards_mcp.cli import Process, cli
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.start.launch import Launch

FILE = Path("standards-mcp.toml")

ACME = """
    from pydantic import BaseModel, SecretStr
    from standards_mcp import Plugin, PluginSettings, Tool, hookimpl

    class Profile(BaseModel):  # a name that the host has too
        depth: int = 1

    class AcmeSettings(PluginSettings):
        '''Settings.

        Attributes:
            token: Opens the door.
        '''

        token: SecretStr
        weights: dict[str, float] = {"a b": 0.5}
        profile: Profile = Profile()
        by_name: dict[str, Profile] = {}
        more: tuple[SecretStr, ...] = ()
        by_place: dict[str, SecretStr] = {}

    class AcmePlugin(Plugin):
        settings_type = AcmeSettings

        @hookimpl
        def register_tools(self):
            def find(text: str) -> str:
                return text

            return [
                Tool(name="acme.find", description="Find.", function=find, read_only=True),
                Tool(name="acme.write", description="Write.", function=find),
            ]
"""
WITH_TOKEN = '[plugins.acme]\ntoken = "opensesame"\n'  # noqa: S105


def with_settings(name: str, *fields: str, before: str = "") -> str:
    """Return the source of a plugin with settings, and with what comes before them."""
    title = name.capitalize()
    lines = ["from pydantic import BaseModel, SecretStr"]
    lines += ["from standards_mcp import Plugin, PluginSettings", before]
    lines += [f"class {title}Settings(PluginSettings):", *(f"    {field}" for field in fields)]
    lines += [f"class {title}Plugin(Plugin):", f"    settings_type = {title}Settings"]
    return "\n".join(lines)


def run(*arguments: str, timing: Timing = DEFAULT_TIMING) -> Result:
    """Run a command."""
    process = Process(timing, Launch(arguments))
    return CliRunner().invoke(cli, list(arguments), prog_name="standards-mcp", obj=process)


def done(*arguments: str) -> str:
    """Run a command that succeeds, and return its stdout."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def data(*arguments: str) -> Any:
    """Run a command that succeeds and prints JSON, and return what it prints."""
    return json.loads(done(*arguments, "--json"))


def backups(file: Path = FILE) -> list[str]:
    """Return the texts of the copies of a file."""
    return [path.read_text() for path in sorted(file.parent.glob(f"{file.name}.*.bak"))]
