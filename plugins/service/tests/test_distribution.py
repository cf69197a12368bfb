"""The service is a distribution of its own: what the program says and does without it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.conversations import INITIALIZE
from support.hosts import Install
from support.peer import COMMAND
from support.waiting import WAIT

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp._utils.installation import install_command
from standards_mcp.cli import cli
from standards_mcp.cli.transports import load_transport
from standards_mcp.config.models.settings import Settings

SERVICE = "standards-mcp-service"
AUDIT = ("--set", "server.audit.path=audit.jsonl")
CALL = {"name": "get_standard_details", "arguments": {"identifiers": ["3.NF.A.1"]}}


@pytest.fixture
def without_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Hide the service as `conftest.py` hides plugins; return the command that installs it."""
    info = tmp_path / "hidden" / f"{SERVICE.replace('-', '_')}-0.dist-info"
    info.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {SERVICE}\nVersion: 0\n"
    (info / "METADATA").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(info.parent), os.environ["PYTHONPATH"]]))
    return install_command(SERVICE)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments], prog_name="standards-mcp")


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--transport", "http"),
        ("auth", "token", "new", "ann"),
        ("audit", "verify"),
    ],
    ids=" ".join,
)
def test_what_needs_the_service_names_the_package_and_the_command_that_installs_it(
    without_service: str, arguments: tuple[str, ...]
):
    refused = run(*arguments)
    assert refused.exit_code == 1
    assert SERVICE in refused.stderr
    assert f"run `{without_service}`" in refused.stderr
    assert "plugins/service" in without_service


def test_keys_of_the_service_stay_valid_and_are_reported(without_service: str):
    keys = ("--set", "server.rest=true", "--set", "server.auth.required=true")
    checked = run(*keys, "config", "check")
    assert checked.exit_code == 0
    assert checked.stdout.startswith(f"[server] auth, rest: {SERVICE} is not installed")
    assert without_service in checked.stdout
    found = json.loads(run(*keys, "doctor", "--json").stdout)
    (warning,) = [each for each in found if each["subject"] == "service"]
    assert warning["level"] == "warning"
    assert without_service in warning["message"]


def test_keys_that_count_over_stdio_are_not_reported(without_service: str):
    del without_service
    checked = run("--set", "server.snapshot=false", "config", "check")
    assert checked.exit_code == 0
    assert checked.stdout.startswith("ok: ")


def test_an_audit_log_without_the_service_is_an_error_of_the_configuration(without_service: str):
    checked = run(*AUDIT, "config", "check")
    assert checked.exit_code == 1
    assert checked.stdout.startswith(f"[server] audit: {SERVICE} is not installed")
    assert without_service in checked.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("service",),
        ("plugins", "info", "service"),
        ("--set", "plugins.service.x=1", "plugins", "list"),
    ],
    ids=" ".join,
)
def test_the_service_is_no_plugin_and_is_offered_only_while_it_is_missing(
    arguments: tuple[str, ...], request: pytest.FixtureRequest
):
    command = install_command(SERVICE)
    refused = run(*arguments)
    assert refused.exit_code != 0
    assert command not in refused.stderr
    request.getfixturevalue("without_service")
    assert f"run `{command}`" in run(*arguments).stderr


@pytest.mark.processes
@pytest.mark.parametrize("required", ["true", "false"])
def test_a_server_over_stdio_answers_no_call_if_nothing_writes_the_audit_log(
    without_service: str, required: str, starter_catalog: Path
):
    del starter_catalog
    settings = ("--set", f"server.audit.required={required}", *AUDIT)
    messages = [
        {"id": 0, "method": "initialize", "params": INITIALIZE},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": CALL},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in messages]
    for _ in range(2):  # the second start could answer from a snapshot
        served = subprocess.run(
            [*COMMAND, *settings, "serve"],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT,
        )
        assert served.returncode == 1
        assert without_service in served.stderr
        assert '"id":1' not in served.stdout.replace(" ", "")
    assert not Path("audit.jsonl").exists()


def test_the_service_needs_no_pattern_in_trusted():
    settings = Settings(trusted=("acme-*",))
    assert load_transport("http", settings).serve
    assert run("--set", "trusted=['acme-*']", "auth", "token", "list").exit_code == 0


@pytest.mark.parametrize("group", ["standards_mcp.audit", "standards_mcp.commands"])
def test_no_other_distribution_takes_the_audit_log_or_adds_commands(install: Install, group: str):
    before = own_entry_points(group)
    for name in (*before, "acme"):
        source = f"class {name.capitalize()}Plugin: ..."
        install(name, source, distribution=f"{SERVICE}-{name}", group=group)
    assert own_entry_points(group) == before
