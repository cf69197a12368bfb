"""Connecting clients to a service over HTTP: each client's own kind of entry, or a bridge."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.command_line import run

from standards_mcp.commands import ServerCommand
from standards_mcp_clients import jsonc
from standards_mcp_clients.checks import check_clients
from standards_mcp_clients.clients import CLIENTS, Client, System

URL = "https://standards.example.org/mcp"
SECRET = "token-of-ann"  # noqa: S105
WITH_TOKEN = ("--url", "https://standards.example.org", "--token-env", "SCHOOL_TOKEN")
WITH_LOGIN = ("--url", URL, "--login")
by_key = {client.key: client for client in CLIENTS}
BEARER = {"Authorization": "Bearer ${env:SCHOOL_TOKEN}"}
PLAIN_BEARER = {"Authorization": "Bearer ${SCHOOL_TOKEN}"}
GOOSE = {"name": "standards", "type": "streamable_http", "enabled": True, "timeout": 300}
OWN_KINDS: dict[str, dict[str, Any]] = {
    "claude-code": {"type": "http", "url": URL, "headers": PLAIN_BEARER},
    "cursor": {"url": URL, "headers": BEARER},
    "windsurf": {"serverUrl": URL, "headers": BEARER},
    "codex": {"url": URL, "bearer_token_env_var": "SCHOOL_TOKEN"},
    "gemini": {"httpUrl": URL, "headers": PLAIN_BEARER},
    "goose": {**GOOSE, "uri": URL, "headers": PLAIN_BEARER, "env_keys": ["SCHOOL_TOKEN"]},
}
BRIDGED = ["claude-desktop", "vscode", "zed", "cline"]
SIGNING_IN = {
    "claude-code": {"type": "http", "url": URL},
    "cursor": {"url": URL},
    "vscode": {"type": "http", "url": URL},
    "windsurf": {"serverUrl": URL},
    "zed": {"url": URL},
    "codex": {"url": URL},
    "gemini": {"httpUrl": URL},
    "cline": {"type": "streamableHttp", "url": URL},
    "goose": {**GOOSE, "uri": URL},
}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHOOL_TOKEN", SECRET)


def file_of(key: str) -> Path:
    return by_key[key].file(System.current())


def entries(key: str) -> dict[str, Any]:
    file = file_of(key)
    text = file.read_text(encoding="utf-8")
    loads = {".toml": tomllib.loads, ".yaml": YAML(typ="safe").load}.get(file.suffix, jsonc.loads)
    table: dict[str, Any] = loads(text) or {}
    for name in by_key[key].table:
        table = table.get(name) or {}
    return table


def test_the_tables_name_every_client():
    assert {*OWN_KINDS, *BRIDGED} == {*by_key} == {*SIGNING_IN, "claude-desktop"}


@pytest.mark.parametrize("key", OWN_KINDS)
def test_a_client_that_takes_tokens_from_variables_gets_its_own_kind_of_entry(key: str):
    added = run("install", key, *WITH_TOKEN)
    assert added.exit_code == 0, added.output
    assert entries(key) == {"standards": OWN_KINDS[key]}
    assert SECRET not in file_of(key).read_text(encoding="utf-8") + added.output
    assert "already has it" in run("install", key, *WITH_TOKEN).output


@pytest.mark.parametrize("key", BRIDGED)
def test_another_client_starts_a_bridge_that_gets_the_token(key: str):
    added = run("install", key, *WITH_TOKEN)
    assert added.exit_code == 0, added.output
    entry = entries(key)["standards"]
    client: Client = by_key[key]
    command, *words = client.command_line(entry)
    assert Path(command).exists()
    assert words[-4:] == ["connect", URL, "--token-env", "SCHOOL_TOKEN"]
    assert entry[client.environment] == {"SCHOOL_TOKEN": SECRET}
    assert SECRET not in added.output
    assert SECRET not in run("install", key, *WITH_TOKEN, "--dry-run", "--name", "two").output


@pytest.mark.parametrize("key", SIGNING_IN)
def test_a_client_that_signs_in_gets_no_token(key: str):
    added = run("install", key, *WITH_LOGIN)
    assert added.exit_code == 0, added.output
    assert by_key[key].sign_in in added.output
    assert entries(key) == {"standards": SIGNING_IN[key]}


def test_claude_desktop_says_where_it_signs_in():
    refused = run("install", "claude-desktop", *WITH_LOGIN)
    assert refused.exit_code == 2
    assert "Connectors, Add custom connector" in refused.output
    assert not file_of("claude-desktop").exists()


@pytest.mark.parametrize("key", by_key)
def test_the_entry_of_a_service_is_removed_by_its_address(key: str):
    run("install", key, *WITH_TOKEN)
    removed = run("uninstall", key, "--url", URL)
    assert removed.exit_code == 0, removed.output
    assert entries(key) == {}


def test_the_entry_of_a_service_stays_without_its_address():
    run("install", "cursor", *WITH_TOKEN)
    refused = run("uninstall", "cursor")
    assert refused.exit_code == 1
    assert "repeat --url" in refused.output
    assert "standards" in entries("cursor")
    assert run("uninstall", "cursor", "--url", "https://other.example.org").exit_code == 1


def test_a_service_takes_the_place_of_a_server_on_this_machine_and_back():
    run("install", "cursor", "--env", "PINECONE_API_KEY=1")
    asked = run("install", "cursor", *WITH_TOKEN)
    assert asked.exit_code != 0
    assert "loses PINECONE_API_KEY" in asked.output
    assert run("install", "cursor", *WITH_TOKEN, "--yes").exit_code == 0
    assert entries("cursor") == {"standards": OWN_KINDS["cursor"]}
    refused = run("install", "cursor")
    assert refused.exit_code == 1
    assert "is a service" in refused.output
    assert "uninstall cursor --name standards --url URL" in refused.output


@pytest.mark.parametrize("entry", [{"command": "npx", "args": ["books"]}, {"url": URL}, "text"])
@pytest.mark.parametrize("key", ["claude-desktop", "vscode"])
def test_a_bridge_takes_the_place_of_no_other_server(key: str, entry: Any):
    file = file_of(key)
    file.parent.mkdir(parents=True)
    text = json.dumps({by_key[key].table[0]: {"standards": entry}})
    file.write_text(text, encoding="utf-8")
    refused = run("install", key, *WITH_TOKEN)
    assert refused.exit_code == 1
    assert ("is not a server" if entry == "text" else "is another server") in refused.output
    assert file.read_text(encoding="utf-8") == text


def test_the_users_own_keys_of_an_entry_stay():
    file = file_of("cursor")
    file.parent.mkdir(parents=True)
    own = {"url": URL, "disabled": True, "headers": {"X-School": "1"}}
    file.write_text(json.dumps({"mcpServers": {"standards": own}}), encoding="utf-8")
    assert run("install", "cursor", *WITH_TOKEN).exit_code == 0
    merged = own | {"headers": {"X-School": "1"} | BEARER}
    assert entries("cursor") == {"standards": merged}
    asked = run("install", "cursor", *WITH_LOGIN)
    assert asked.exit_code != 0
    assert "loses Authorization" in asked.output
    assert run("install", "cursor", *WITH_LOGIN, "--yes").exit_code == 0
    assert entries("cursor") == {"standards": own}


def test_a_bridge_keeps_the_users_own_keys_and_variables():
    run("install", "cline", "--env", "BOOKS=1")
    file = file_of("cline")
    data = json.loads(file.read_text(encoding="utf-8"))
    data["mcpServers"]["standards"]["autoApprove"] = ["search"]
    file.write_text(json.dumps(data), encoding="utf-8")
    assert run("install", "cline", *WITH_TOKEN).exit_code == 0
    entry = entries("cline")["standards"]
    assert entry["autoApprove"] == ["search"]
    assert entry["env"] == {"BOOKS": "1", "SCHOOL_TOKEN": SECRET}
    assert "connect" in entry["args"]


def test_the_list_of_clients_shows_services_without_secrets():
    file = file_of("cursor")
    file.parent.mkdir(parents=True)
    url = "https://ann:secret@books.example.org/mcp?key=secret"
    file.write_text(json.dumps({"mcpServers": {"books": {"url": url}}}), encoding="utf-8")
    run("install", "cursor", *WITH_TOKEN)
    listed = run("clients", "list").output
    assert "'books' connects to https://books.example.org" in listed
    assert "'standards' connects to https://standards.example.org" in listed
    assert "secret" not in listed


def test_a_client_without_a_file_cannot_sign_in():
    refused = run("install", "cherry-studio", *WITH_LOGIN)
    assert refused.exit_code == 2
    assert "cannot sign in with an imported entry" in refused.output


def test_an_entry_of_another_service_is_left_as_it_is():
    file = file_of("cursor")
    file.parent.mkdir(parents=True)
    text = json.dumps({"mcpServers": {"standards": {"url": "https://other.example.org"}}})
    file.write_text(text, encoding="utf-8")
    refused = run("install", "cursor", *WITH_TOKEN)
    assert refused.exit_code == 1
    assert "choose a name with --name" in refused.output
    assert file.read_text(encoding="utf-8") == text


def test_an_entry_is_printed_for_a_client_without_a_file():
    printed = run("install", "cherry-studio", *WITH_TOKEN, "--print")
    assert json.loads(printed.stdout)["mcpServers"]["standards"]["args"][-4] == "connect"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--token-env", "SCHOOL_TOKEN"), "together with --url"),
        (("--login",), "together with --url"),
        ((*WITH_TOKEN, "--login"), "--token-env names a token"),
        ((*WITH_TOKEN, "--env", "KEY=1"), "leave them out"),
        ((*WITH_TOKEN, "--profile", "x"), "leave them out"),
        (("--url", "http://standards.example.org"), "unencrypted"),
        (("--url", URL, "--token-env", "NO_SUCH_TOKEN"), "is not set here"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: tuple[str, ...], reason: str):
    refused = run("install", "claude-desktop", *options)
    assert refused.exit_code == 2
    assert reason in refused.output
    assert not file_of("claude-desktop").exists()


def test_doctor_finds_nothing_wrong_with_a_bridge(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PINECONE_API_KEY", "not-for-the-bridge")
    run("install", "claude-desktop", *WITH_TOKEN)
    server = ServerCommand(variables={"PINECONE_API_KEY": "not-for-the-bridge"})
    (finding,) = check_clients(None, server)
    assert finding.level == "ok", finding


def test_doctor_repeats_the_address_when_the_program_is_gone():
    run("install", "claude-desktop", *WITH_TOKEN)
    file = file_of("claude-desktop")
    data = json.loads(file.read_text(encoding="utf-8"))
    data["mcpServers"]["standards"]["command"] = "/gone/standards-mcp"
    file.write_text(json.dumps(data), encoding="utf-8")
    (finding,) = check_clients(None, ServerCommand())
    assert f"--url {URL} --token-env SCHOOL_TOKEN" in finding.fix
