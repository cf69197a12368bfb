"""Entries of clients keep the limits of a configuration, and `doctor` checks them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import FILE, done, run

pytestmark = pytest.mark.usefixtures("starter_catalog")
CURSOR = Path(".cursor", "mcp.json")


def findings(subject: str, code: int) -> list[dict[str, Any]]:
    """Return the findings of doctor about a client."""
    result = run("doctor", "--json")
    assert result.exit_code == code, result.output
    return [each for each in json.loads(result.stdout) if each["subject"] == subject]


def test_a_client_is_given_the_file_in_force(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    FILE.write_text("")
    named = tmp_path / "named.toml"
    named.write_text("")
    monkeypatch.setenv("STANDARDS_MCP_CONFIG", str(named))
    entry = json.loads(done("install", "cursor", "--print"))
    assert entry["mcpServers"]["standards"]["args"][-2:] == ["--config", str(named)]


def test_an_entry_loses_its_limits_only_after_confirmation():
    FILE.write_text("[profiles.class]\nread_only = true\n")
    narrow = ["--set", "tools.read_only=true", "install", "cursor", "--profile", "class"]
    assert run(*narrow).exit_code == 0
    file = Path.home() / CURSOR
    before = file.read_text()
    FILE.unlink()
    refused = run("install", "cursor")
    assert refused.exit_code == 1
    for option in ("--config", "--profile class", "--set tools.read_only=true"):
        assert option in refused.stderr
    assert file.read_text() == before
    assert run("install", "cursor", "--dry-run").exit_code == 0
    assert run("install", "cursor", "--name", "other").exit_code == 0
    assert run("install", "cursor", "--yes").exit_code == 0
    assert json.loads(file.read_text())["mcpServers"]["standards"]["args"] == []


def test_a_configuration_that_an_entry_names_by_a_variable_is_not_replaced_unasked(tmp_path: Path):
    locked = tmp_path / "locked.toml"
    assert run("install", "cursor", "--env", f"STANDARDS_MCP_CONFIG={locked}").exit_code == 0
    FILE.write_text("")
    refused = run("install", "cursor")
    assert (refused.exit_code, f"loses --config {locked}" in refused.stderr) == (1, True)
    FILE.unlink()
    assert run("install", "cursor").exit_code == 0, "the variable stays, and so does the file"


@pytest.mark.slow
def test_the_command_that_doctor_suggests_keeps_the_limits_of_an_entry():
    school = Path("the school.toml")
    school.write_text("[profiles.class]\nread_only = true\n")
    options = ["--config", str(school), "--set", 'tools.disable=["a", "b"]']
    install = ["install", "cursor", "--profile", "class", "--env", "STANDARDS_MCP_STRICT=true"]
    assert run(*options, *install).exit_code == 0
    file = Path.home() / CURSOR
    data: dict[str, Any] = json.loads(file.read_text())
    whole = dict(data["mcpServers"]["standards"])
    data["mcpServers"]["standards"]["command"] = "/nowhere/standards-mcp"
    file.write_text(json.dumps(data))
    parts = findings("Cursor", 1)[0]["fix"].split("`")
    (command,) = (part for part in parts if part.startswith("standards-mcp"))
    assert run(*shlex.split(command)[1:]).exit_code == 0
    mended = json.loads(file.read_text())["mcpServers"]["standards"]
    assert mended["env"] == whole["env"]
    assert sorted(mended["args"]) == sorted(whole["args"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry",
    [
        {"args": ["--config=gone.toml", "--profile", "class"]},
        {"args": [], "env": {"STANDARDS_MCP_CONFIG": "/nowhere/gone.toml"}},
    ],
)
def test_doctor_has_no_command_for_an_entry_whose_file_is_gone(entry: dict[str, Any]):
    assert run("install", "cursor").exit_code == 0
    file = Path.home() / CURSOR
    data = json.loads(file.read_text())
    data["mcpServers"]["standards"] |= entry
    file.write_text(json.dumps(data))
    finding = findings("Cursor", 1)[0]
    assert "gone.toml, which does not exist" in finding["message"]
    assert finding["fix"].startswith("Put the file back")
    assert "install" not in finding["fix"]


def edit_entries(edit: Callable[[dict[str, Any]], object]) -> None:
    """Change the entries in the file of the client Cursor."""
    file = Path.home() / CURSOR
    data = json.loads(file.read_text())
    edit(data["mcpServers"])
    file.write_text(json.dumps(data))


@pytest.mark.processes
def test_an_entry_with_a_missing_program_is_an_error():
    FILE.write_text("[plugins.search]\nenabled = false\n")
    assert run("install", "cursor", "--env", "STANDARDS_MCP_PLUGINS__CATALOG__PATH").exit_code == 0
    assert run("install", "windsurf").exit_code == 0
    lost = ["--config", "/nowhere/school.toml", "--profile", "teacher"]
    edit_entries(
        lambda servers: servers.update(
            gone={"command": "/nowhere/standards-mcp"},
            loose={"command": "uvx", "args": ["standards-mcp"]},
            lost=servers["standards"] | {"args": lost},
            another={"command": "/nowhere/another"},
        )
    )
    (Path.home() / ".codeium" / "windsurf" / "mcp_config.json").write_text("{")
    cursor, windsurf = findings("Cursor", 1), findings("Windsurf", 1)
    assert [(each["level"], each["message"]) for each in cursor[1:]] == [
        ("error", "'gone' starts /nowhere/standards-mcp, which does not exist"),
        ("warning", "'loose' starts 'uvx', which the client may not find"),
        ("error", "'lost' names the configuration /nowhere/school.toml, which does not exist"),
    ]
    fine, gone, _, astray = cursor
    assert fine["level"] == "ok"
    assert gone["fix"] == "Run `standards-mcp install cursor --name gone` again."
    assert "install" not in astray["fix"]
    assert "cannot be edited as JSON" in windsurf[0]["message"]
    assert windsurf[0]["level"] == "error"


@pytest.mark.processes
def test_an_entry_that_lacks_settings_of_this_folder_is_a_warning():
    FILE.write_text("[profiles.class]")
    Path(".env").write_text("PINECONE_NAMESPACE=opensesame\n")
    path = "STANDARDS_MCP_PLUGINS__CATALOG__PATH"
    assert run("install", "cursor", "--profile", "class", "--env", path).exit_code == 0

    def add(servers: dict[str, Any]) -> None:
        entry = servers["standards"]
        servers["elsewhere"] = {"command": entry["command"]}
        servers["whole"] = entry | {"env": entry["env"] | {"PINECONE_NAMESPACE": "n"}}

    edit_entries(add)
    lacking, elsewhere, whole = findings("Cursor", 0)
    assert lacking["level"] == "warning"
    assert lacking["message"] == (
        "'standards' starts a server without these variables of .env or the environment: "
        "PINECONE_NAMESPACE"
    )
    fix = f"Run `standards-mcp --config {FILE.resolve()} --profile class install cursor "
    assert lacking["fix"].startswith(f"{fix}--name standards --env PINECONE_NAMESPACE` here")
    assert (elsewhere["level"], whole["level"]) == ("ok", "ok")
