"""Guides for the page of a service: the same entries and commands as `install` has."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from standards_mcp.cli import cli
from standards_mcp_clients.clients import CLIENTS, IMPORTING
from standards_mcp_clients.guides import ServiceGuide, service_guides

URL, VARIABLE = "https://mcp.example.org/mcp", "TOKEN"
TOKEN = "smcp_of_a_person"  # noqa: S105
KEYS = [client.key for client in (*CLIENTS, *IMPORTING)]
"""The ten clients with a file, and the one whose users import an entry."""


def guide_of(key: str, variable: str) -> ServiceGuide:
    (guide,) = [each for each in service_guides(URL, variable) if each.key == key]
    return guide


@pytest.mark.parametrize("variable", [VARIABLE, ""], ids=["token", "login"])
@pytest.mark.parametrize("key", KEYS)
def test_the_command_of_a_guide_prints_its_entry(
    monkeypatch: pytest.MonkeyPatch, key: str, variable: str
):
    monkeypatch.setenv(VARIABLE, TOKEN)
    guide = guide_of(key, variable)
    if not guide.command:
        assert not variable
        assert (key, guide.entry) in {("claude-desktop", ""), ("cherry-studio", "")}
        assert "sign" in guide.step
        return
    program, *arguments = shlex.split(guide.command)
    assert program == "standards-mcp"
    printed = CliRunner().invoke(cli, [*arguments, "--print"])
    assert printed.exit_code == 0, printed.output
    assert URL in printed.output
    if guide.entry:
        assert printed.stdout == guide.entry
    else:
        assert "connect" in printed.stdout  # a bridge, whose program only this machine knows


@pytest.mark.parametrize("key", KEYS)
def test_a_guide_names_the_file_that_the_command_writes(monkeypatch: pytest.MonkeyPatch, key: str):
    monkeypatch.setenv(VARIABLE, TOKEN)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    guide = guide_of(key, VARIABLE)
    _, *arguments = shlex.split(guide.command)
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    for systems, file in guide.files.items():
        assert Path(file).expanduser().is_file() == ("Linux" in systems), file
    assert bool(guide.files) == (key != "cherry-studio")


def test_no_guide_has_a_token(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, TOKEN)
    for variable in (VARIABLE, ""):
        assert TOKEN not in repr(service_guides(URL, variable))
