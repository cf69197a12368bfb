"""Adding this server to clients, on a temporary home of each system's layout."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from support.command_line import run

from standards_mcp.cli.invocation import this_program
from standards_mcp.config.layers import toml_value
from standards_mcp_clients import jsonc
from standards_mcp_clients.clients import CLIENTS, Client, Launch, System
from standards_mcp_clients.entries import ClientFileError, is_ours, with_server, without_server

Install = Callable[..., Path]
LAUNCH = Launch("/opt/bin/standards-mcp", ("--config", "/etc/s.toml"), {"KEY": "value"})
by_key = {client.key: client for client in CLIENTS}
each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.key)

PLACES = {
    "darwin": {
        "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
        "claude-code": ".claude.json",
        "cursor": ".cursor/mcp.json",
        "vscode": "Library/Application Support/Code/User/mcp.json",
        "windsurf": ".codeium/windsurf/mcp_config.json",
        "zed": ".config/zed/settings.json",
        "codex": ".codex/config.toml",
        "gemini": ".gemini/settings.json",
        "goose": ".config/goose/config.yaml",
    },
    "win32": {
        "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
        "vscode": "AppData/Roaming/Code/User/mcp.json",
        "zed": "AppData/Roaming/Zed/settings.json",
        "goose": "AppData/Roaming/Block/goose/config/config.yaml",
        "cursor": ".cursor/mcp.json",
    },
    "linux": {
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
        "vscode": ".config/Code/User/mcp.json",
        "cline": ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
        "cline_mcp_settings.json",
        "zed": ".config/zed/settings.json",
    },
}


def read(file: Path) -> Any:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".toml":
        return tomllib.loads(text)
    return YAML(typ="safe").load(text) if file.suffix == ".yaml" else jsonc.loads(text)


def entry(client: Client, file: Path, name: str = "standards") -> dict[str, Any]:
    found = read(file)
    for key in (*client.table, name):
        found = found[key]
    return found


@pytest.mark.parametrize(
    ("platform", "key", "place"),
    [(system, key, place) for system, places in PLACES.items() for key, place in places.items()],
)
def test_each_system_has_its_own_places(tmp_path: Path, platform: str, key: str, place: str):
    assert by_key[key].file(System(platform, tmp_path, {}, tmp_path)) == tmp_path / place


def test_variables_move_the_places(tmp_path: Path):
    variables = {"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d"}
    system = System("linux", tmp_path, variables, tmp_path)
    assert by_key["zed"].file(system) == Path("/x/zed/settings.json")
    assert by_key["codex"].file(system) == Path("/c/config.toml")
    assert by_key["claude-code"].file(system) == Path("/d/.claude.json")


@each_client
def test_a_server_is_added_to_an_empty_home_and_taken_out_again(client: Client):
    file = client.file(System.current())
    added = run("install", client.key, "--env", "KEY=value")
    assert added.exit_code == 0, added.output
    assert client.after in added.output
    found = entry(client, file)
    command = client.command_line(found)[0]
    assert Path(command).is_absolute()
    assert Path(command).exists()
    assert found[client.environment] == {"KEY": "value"}
    removed = run("uninstall", client.key)
    assert removed.exit_code == 0, removed.output
    assert f"from {client.title}. Start it again if it is open." in removed.output
    assert "standards" not in (read(file).get(client.table[0]) or {})


@each_client
def test_adding_it_twice_changes_nothing(client: Client):
    run("install", client.key)
    again = run("install", client.key)
    assert "already has it" in again.output
    assert not list(client.file(System.current()).parent.glob("*.bak"))


def test_the_rest_of_the_file_is_unchanged(tmp_path: Path):
    text = '{\n  // mine\n  "mcpServers": {"other": {"command": "o"}},\n  "theme": "dark"\n}\n'
    edited = with_server(by_key["cursor"], tmp_path / "mcp.json", text, "standards", LAUNCH)
    assert "// mine" in edited
    data = jsonc.loads(edited)
    assert data["theme"] == "dark"
    assert data["mcpServers"]["other"] == {"command": "o"}
    back = without_server(by_key["cursor"], tmp_path / "mcp.json", edited, "standards")
    assert jsonc.loads(back) == jsonc.loads(text)


def test_comments_of_toml_and_yaml_stay(tmp_path: Path):
    toml = '# mine\nmodel = "m"\n\n[mcp_servers.other] # o\ncommand = "o"\n'
    edited = with_server(by_key["codex"], tmp_path / "config.toml", toml, "standards", LAUNCH)
    assert edited.startswith(toml)
    assert tomllib.loads(edited)["mcp_servers"]["standards"]["command"] == LAUNCH.command
    yaml = "# mine\nmodel: m # m\nitems:\n  - a\nextensions:\n  dev:\n    enabled: true\n"
    edited = with_server(by_key["goose"], tmp_path / "config.yaml", yaml, "standards", LAUNCH)
    assert edited.startswith(yaml)
    assert "cmd: /opt/bin/standards-mcp" in edited


def test_an_entry_keeps_the_keys_of_its_user(tmp_path: Path):
    file = tmp_path / "cline_mcp_settings.json"
    old = {
        "command": "/old/standards-mcp",
        "args": ["serve"],
        "env": {"KEY": "old", "MINE": "1"},
        "disabled": True,
    }
    text = json.dumps({"mcpServers": {"standards": old}})
    edited = with_server(by_key["cline"], file, text, "standards", LAUNCH)
    assert jsonc.loads(edited)["mcpServers"]["standards"] == {
        "command": LAUNCH.command,
        "args": list(LAUNCH.args),
        "env": {"KEY": "value", "MINE": "1"},
        "disabled": True,
    }


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        (["/opt/bin/standards-mcp"], True),
        (["C:\\Python\\Scripts\\standards-mcp.exe", "serve"], True),
        (["/usr/bin/python3", "-m", "standards_mcp"], True),
        (["uvx", "standards-mcp@0.1.0"], True),
        (["uvx", "--from", "standards-mcp[redis]", "standards-mcp"], True),
        (["node", "/home/me/iso-standards-mcp/server.js"], False),
        (["python", "/srv/my_standards_mcp.py"], False),
        (["npx", "standards-mcp-iso"], False),
        ([""], False),
    ],
)
def test_only_entries_that_start_this_program_are_ours(command: list[str], ours: bool):
    first, *rest = command
    assert is_ours(by_key["cursor"], {"command": first, "args": rest}) is ours


def test_another_server_of_that_name_is_left_alone(tmp_path: Path):
    file = tmp_path / "mcp.json"
    text = json.dumps({"mcpServers": {"standards": {"command": "npx", "args": ["other"]}}})
    with pytest.raises(ClientFileError, match=r"another server \(npx\).*--name"):
        with_server(by_key["cursor"], file, text, "standards", LAUNCH)
    with pytest.raises(ClientFileError, match="does not start standards-mcp"):
        without_server(by_key["cursor"], file, text, "standards")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("cursor", '{"mcpServers": {'),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": {"standards": "x"}}'),
        ("codex", "mcp_servers = [}"),
        ("codex", "mcp_servers = 1"),
        ("goose", "a: [1"),
        ("goose", "extensions: text"),
        ("goose", "- a"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_and_left_as_it_was(key: str, text: str):
    file = by_key[key].file(System.current())
    file.parent.mkdir(parents=True)
    file.write_text(text)
    refused = run("install", key)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"standards-mcp: {file}")
    assert file.read_text() == text
    listed = run("clients", "list")
    assert "correct it" in listed.output or "not added" in listed.output


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("cursor", '{\n  "a": 1\n}\n'),
        ("codex", "# one\na = 1\n"),
        ("goose", "# one\na: 1\nextensions:\n  b:\n    cmd: c\n"),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_of_windows_and_a_byte_order_mark_stay(key: str, text: str, mark: str):
    file = by_key[key].file(System.current())
    file.parent.mkdir(parents=True)
    before = mark + text.replace("\n", "\r\n")
    file.write_bytes(before.encode())
    assert run("install", key).exit_code == 0
    after = file.read_bytes().decode()
    assert "standards" in after
    assert after.count("\n") == after.count("\r\n")
    assert after.startswith(before[:7])
    assert run("uninstall", key).exit_code == 0
    assert before.rstrip("}\r\n") in file.read_bytes().decode()


def test_the_old_file_is_kept_with_its_mode_and_behind_its_link():
    file = by_key["cursor"].file(System.current())
    real = file.parent.parent / "dotfiles" / "mcp.json"
    for folder in (file.parent, real.parent):
        folder.mkdir()
    real.write_text("{}")
    real.chmod(0o640)
    file.symlink_to(real)
    assert run("install", "cursor").exit_code == 0
    assert file.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    (backup,) = real.parent.glob("*.bak")
    assert backup.read_text() == "{}"


def test_a_new_file_is_for_its_owner_alone():
    run("install", "cursor", "--env", "PINECONE_API_KEY=k")
    file = by_key["cursor"].file(System.current())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_dry_run_shows_the_change_without_the_values_and_writes_nothing():
    shown = run("install", "vscode", "--env", "PINECONE_API_KEY=very-secret", "--dry-run")
    assert '+    "standards": {' in shown.output
    assert "very-secret" not in shown.output
    file = by_key["vscode"].file(System.current())
    assert not file.exists()
    run("install", "vscode")
    assert '-    "standards": {' in run("uninstall", "vscode", "--dry-run").output
    assert entry(by_key["vscode"], file)


@pytest.mark.parametrize("key", ["cursor", "codex", "goose"])
def test_a_preview_shows_no_secret_of_anybody(key: str):
    client = by_key[key]
    file = client.file(System.current())
    file.parent.mkdir(parents=True)
    env = client.environment
    other = {client.command: "npx", "args": ["--token", "hush1"], env: {"A": "hush2"}}
    ours = {client.command: "/old/standards-mcp", env: {"KEY": "hush3", "N": 1}}
    login = {"accessToken": "hush4"}
    values = {client.table[0]: {"other": other, "standards": ours}, "login": login}
    if key == "codex":
        file.write_text(f"mcp_servers = {toml_value(values['mcp_servers'])}")
    else:
        file.write_text(json.dumps(values))  # one line, for YAML too
    before = file.read_text()
    for command in ("install", "uninstall"):
        shown = run(command, key, "--dry-run")
        assert shown.exit_code == 0, shown.output
        assert "standards" in shown.output
        assert "hush" not in shown.output
    assert file.read_text() == before


def test_the_entry_can_be_printed_for_pasting():
    printed = run("install", "zed", "--print", "--name", "mine")
    assert json.loads(printed.output)["context_servers"]["mine"]["command"]
    assert not by_key["zed"].file(System.current()).exists()


def test_a_project_gets_a_file_of_its_own():
    assert run("install", "vscode", "--project").exit_code == 0
    assert entry(by_key["vscode"], Path(".vscode/mcp.json"))["type"] == "stdio"
    refused = run("install", "claude-desktop", "--project")
    assert refused.exit_code == 2
    assert "no project configuration" in refused.output


def test_the_configuration_in_force_here_goes_along():
    Path("standards-mcp.toml").write_text("")
    run("install", "cursor")
    found = entry(by_key["cursor"], by_key["cursor"].file(System.current()))
    assert found["args"] == ["--config", str(Path("standards-mcp.toml").resolve())]


TOKEN = "STANDARDS_MCP_PLUGINS__SEARCH__TOKEN"  # noqa: S105  - its name alone


def test_settings_that_the_server_would_lack_are_named_and_handed_over_on_demand(
    monkeypatch: pytest.MonkeyPatch,
):
    Path("standards-mcp.toml").write_text("")
    Path(".env").write_text(f"{TOKEN}=opensesame\nSTANDARDS_MCP_STRICT=true\nOTHER=x\n")
    monkeypatch.setenv("PINECONE_API_KEY", "sesame-too")
    monkeypatch.setenv("STANDARDS_MCP_PROFILE", "")
    missing = ["PINECONE_API_KEY", TOKEN, "STANDARDS_MCP_STRICT"]
    options = [f"--env={name}" for name in missing]
    for arguments in ([], ["--dry-run"], ["--print"]):
        result = run("install", "cursor", *arguments)
        assert result.exit_code == 0
        assert f"environment: {', '.join(missing)}. To pass" in result.stderr
        assert " ".join(options).replace("=", " ") in result.stderr
        assert "sesame" not in result.output
    result = run("--set", "strict=false", "install", "cursor", *options[:2])
    assert result.exit_code == 0
    assert result.stderr == ""
    found = entry(by_key["cursor"], by_key["cursor"].file(System.current()))
    assert found["env"] == {"PINECONE_API_KEY": "sesame-too", TOKEN: "opensesame"}
    again = run("install", "cursor", "--yes")  # its entry has the others
    assert f": {missing[2]}. To pass" in again.stderr


def test_a_variable_of_the_shell_can_be_handed_over_that_is_no_setting(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PEER_TOKEN", "opensesame")
    printed = run("install", "zed", "--print", "--env", "PEER_TOKEN")
    servers = json.loads(printed.output)["context_servers"]
    assert servers["standards"]["env"] == {"PEER_TOKEN": "opensesame"}


def test_clients_are_listed_with_their_state():
    run("install", "gemini", "--name", "school")
    listed = {each["client"]: each for each in json.loads(run("clients", "list", "--json").output)}
    assert listed["gemini"]["names"] == ["school"]
    assert not listed["zed"]["present"]
    text = run("clients", "list").output
    assert "added as 'school'" in text
    assert "not found on this machine" in text


def test_removing_a_missing_server_is_reported():
    absent = run("uninstall", "cursor")
    assert absent.exit_code == 1
    assert "has no server 'standards'" in absent.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["codx"], "not one of 'claude-desktop', "),
        (["cursor", "--name", "a b"], "letters, digits"),
        (["cursor", "--env", "KEY"], "write KEY=VALUE"),
    ],
)
def test_a_mistake_on_the_command_line_is_named(arguments: list[str], message: str):
    refused = run("install", *arguments)
    assert refused.exit_code == 2
    assert message in refused.output


@pytest.mark.parametrize(
    ("pair", "variable"),
    [
        ("plugins.acme.token=opensesame", "STANDARDS_MCP_PLUGINS__ACME__TOKEN"),
        ("plugins.acme.door=opensesame", "STANDARDS_MCP_PLUGINS__ACME__DOOR"),
        ("tools.storage=redis://:opensesame@h/0", "STANDARDS_MCP_TOOLS__STORAGE"),
    ],
)
def test_a_secret_does_not_get_into_the_command_line(install: Install, pair: str, variable: str):
    source = """
        from pydantic import SecretStr
        from standards_mcp import Plugin, PluginSettings

        class AcmeSettings(PluginSettings):
            token: str = ""
            door: SecretStr | None = None

        class AcmePlugin(Plugin):
            settings_type = AcmeSettings
    """
    install("acme", source)
    for option in ("--print", "--dry-run"):
        refused = run("--set", pair, "install", "cursor", option)
        assert refused.exit_code == 2
        assert f"use --env {variable}=..." in refused.output
        assert "opensesame" not in refused.output
    allowed = run("--set", "tools.timeout=5", "install", "cursor", "--print")
    assert json.loads(allowed.output)["mcpServers"]["standards"]["args"][-1] == "tools.timeout=5"


def test_a_folder_that_cannot_be_written_is_named():
    by_key["cursor"].file(System.current()).parent.write_text("not a folder")
    refused = run("install", "cursor")
    assert refused.exit_code == 1
    assert "cannot be changed" in refused.stderr


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (None, "standards-mcp"),
        ({"url": "file:///a%20b/clone", "dir_info": {"editable": True}}, "'/a b/clone'"),
        (
            {"url": "ssh://git@host/s.git", "vcs_info": {"vcs": "git", "commit_id": "0a1"}},
            "git+ssh://git@host/s.git",
        ),
        (
            {"url": "file:///clone", "vcs_info": {"vcs": "git", "requested_revision": "v1"}},
            "git+file:///clone@v1",
        ),
        ({"url": "https://host/s.whl", "archive_info": {}}, "https://host/s.whl"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths and quotes of a shell")
def test_an_installation_in_a_cache_is_not_written_into_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: object, source: str
):
    info = tmp_path / "site" / "standards_mcp-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: standards-mcp\nVersion: 1\n")
    commands = distribution("standards-mcp").read_text("entry_points.txt") or ""
    (info / "entry_points.txt").write_text(commands)
    if origin:
        (info / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.setattr(sys, "executable", "/home/u/.cache/uv/archive-v0/abc/bin/python")
    refused = run("install", "cursor")
    assert refused.exit_code == 1
    assert f"install it with `uv tool install {source}` and run it from there" in refused.output


def test_without_a_script_the_interpreter_starts_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert this_program() == (str(tmp_path / "python"), "-m", "standards_mcp")


def test_a_client_that_imports_json_gets_it_printed_and_no_file_changed(tmp_path: Path):
    command, *args = this_program()
    printed = run("install", "cherry-studio", "--name", "school", "--env", "A=b", "--print")
    assert json.loads(printed.stdout) == {
        "mcpServers": {"school": {"command": command, "args": args, "env": {"A": "b"}}}
    }
    assert printed.stderr == ""
    explained = run("install", "cherry-studio", "--name", "school", "--env", "A=b")
    assert explained.stdout == printed.stdout
    assert "Nothing was changed. Its servers are in its own settings: " in explained.stderr
    assert not list(tmp_path.rglob("*servers*"))
    for words in (["install", "cherry-studio", "--project"], ["uninstall", "cherry-studio"]):
        refused = run(*words)
        assert refused.exit_code == 2
        assert "Cherry Studio has no file of servers. Its servers are in" in refused.stderr
    listed = run("clients", "list").stdout
    assert "Cherry Studio  unknown: its servers are in its own settings" in listed
    (found,) = (
        each
        for each in json.loads(run("clients", "list", "--json").stdout)
        if each["client"] == "cherry-studio"
    )
    assert found["file"] is None


def test_mistakes_in_the_configuration_do_not_keep_the_server_in_a_client():
    run("install", "cursor")
    Path("standards-mcp.toml").write_text("[tools]\nread_onyl = true\n")
    assert "added as 'standards'" in run("clients", "list").output
    assert run("install", "cursor").exit_code == 2
    assert run("uninstall", "cursor").exit_code == 0
