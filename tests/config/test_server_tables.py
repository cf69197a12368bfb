from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from standards_mcp._utils.secrets import secrets_of
from standards_mcp.config.loading import FILE_NAME, load_settings
from standards_mcp.config.models.settings import Expansion, ServerSection, VariableError
from standards_mcp.errors import ConfigError
from standards_mcp.host import Host
from standards_mcp.server.reload import apply_settings


def loaded(text: str):
    Path(FILE_NAME).write_text(text, encoding="utf-8")
    return load_settings()


def test_servers_come_from_tables_of_either_name_and_from_a_file():
    both = {"command": "one", "args": ["x"], "autoApprove": ["a"], "timeout": 6000}
    off = {"url": "https://example.org/mcp", "disabled": True, "type": "http"}
    Path("clients.json").write_text(json.dumps({"mcpServers": {"both": both, "off": off}}))
    servers = loaded(
        'servers_file = "clients.json"\n[servers.both]\ncommand = "two"\n'
        '[mcpServers.pasted]\ncommand = "three"\nalwaysAllow = []\n'
    ).settings.servers
    assert servers["both"] == ServerSection(command="two", args=("x",))
    assert servers["off"] == ServerSection(
        url="https://example.org/mcp", enabled=False, type="http"
    )
    assert servers["pasted"].command == "three"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("[servers.a]\ncomand = 'x'", "standards-mcp.toml:2: [servers.a] comand: unknown key; did"),
        ("[servers.a]", "[servers] a: needs either command (a program) or url (an address)"),
        ("[servers.a]\ncommand = 'x'\nurl = 'https://y'", "toml:1: [servers] a: has both command"),
        ("[servers.'a b']\ncommand = 'x'", "'a b' is not a valid server name"),
        ("[mcpServers]\na = 5", "input should be a table"),
        ("servers_file = 'none.json'", "none.json: cannot be read: No such file"),
        ("servers_file = 'bad.json'", "bad.json: not valid JSON"),
        ("servers_file = 'odd.json'", "odd.json: [servers.x] command: input should be text in"),
    ],
)
def test_a_mistake_in_them_is_named_with_its_place(text: str, mistake: str):
    Path("bad.json").write_text("{")
    Path("other.json").write_text('{"servers": []}')
    Path("odd.json").write_text('{"mcpServers": {"x": {"command": 5}}}')
    with pytest.raises(ConfigError) as caught:
        loaded(text)
    assert mistake in str(caught.value)


def test_folders_of_servers_start_where_the_file_is():
    Path("below").mkdir()
    Path("below/clients.json").write_text('{"mcpServers": {"b": {"command": "x", "cwd": "two"}}}')
    text = "servers_file = 'below/clients.json'\n[servers.a]\ncommand = 'x'\ncwd = 'one'"
    servers = loaded(text).settings.servers
    assert servers["a"].cwd == Path.cwd() / "one"
    assert servers["b"].cwd == Path.cwd() / "below" / "two"


def test_rules_for_tools_of_a_server_that_is_not_known_yet_are_no_mistake(make_host):
    host = make_host(servers={"x": {"command": "x"}}, tools={"disable": ["x.*"]}, strict=True)
    assert host.warnings() == []
    assert make_host(tools={"disable": ["x.*"]}).warnings()


@pytest.mark.parametrize(
    ("args", "secrets"),
    [
        (["--token", "abc123"], {"abc123"}),
        (["--api-key=abc123"], {"--api-key=abc123", "abc123"}),
        (["--header", "Authorization: Bearer abc"], {"Authorization: Bearer abc", "Bearer abc"}),
        (["--token", "${API_TOKEN}", "--root", "/token", "run:all", "https://a.b/c"], set()),
    ],
)
def test_arguments_that_are_named_like_secrets_are_hidden(args: list[str], secrets: set[str]):
    section = ServerSection.model_validate({"command": "x", "args": args})
    expansion = Expansion()
    plain = [expansion.text(arg) for arg in section.args if "${" not in str(arg)]
    assert secrets_of(section) | expansion.secrets == secrets
    assert plain == [arg for arg in args if "${" not in arg]
    assert not any(secret in repr(section) for secret in secrets)


def test_values_that_may_be_secret_are_hidden_and_plain_ones_are_not():
    env = {"KEY": "abcdef", "LEVEL": "debug", "HOME": "/home/x", "TOKEN": "${TOKEN}"}
    section = ServerSection(command="x", env=env, headers={"Authorization": "Bearer abc"})
    assert secrets_of(section) == {"abcdef", "Bearer abc"}
    assert "abcdef" not in repr(section)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${FIRST}", "one"),
        ("${NONE:-two}", "two"),
        ("${NONE:-}", ""),
        ("$FIRST ${FIRST", "$FIRST ${FIRST"),
    ],
)
def test_variables_are_put_in_place(text: str, value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FIRST", "one")
    assert Expansion().text(text) == value
    assert Expansion().text(SecretStr(text)) == value


@given(st.text().filter(lambda text: "${" not in text))
def test_text_without_variables_stays_as_it_is(text: str):
    assert Expansion().text(text) == text
    with pytest.raises(VariableError, match=r"\$\{NONE\} is not set; set NONE"):
        Expansion().text(text + "${NONE}")


def test_a_server_can_be_disabled_while_the_host_runs_and_a_new_one_needs_a_restart(make_host):
    host = make_host(servers={"x": {"command": "x"}})
    state = json.dumps(str(host.settings.state_dir))
    done = apply_settings(host, loaded(f"state_dir = {state}\n[servers.y]\ncommand = 'y'"))
    assert done.needs_restart == ("servers.y",)
    assert not host.settings.servers["x"].enabled
    text = f"state_dir = {state}\n[servers.x]\ncommand = 'z'"
    assert apply_settings(host, loaded(text)).needs_restart == ("servers.x",)
    assert host.settings.servers["x"].command == "x"


def test_a_server_and_a_plugin_have_not_the_same_name(make_host):
    Path("standards-mcp.toml").write_text('[servers.search]\ncommand = "x"\n')
    with pytest.raises(ConfigError, match=r"toml:1: .*search: a plugin has this name; give"):
        Host(load_settings())
    with pytest.raises(ConfigError, match=r"it is a server; write its keys in \[servers.x\]"):
        make_host(servers={"x": {"command": "x"}}, plugins={"x": {"enabled": False}})
