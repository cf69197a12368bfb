"""``standards-mcp plugins`` and ``tools``: list, show, enable and disable; profiles."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import ACME, FILE, WITH_TOKEN, backups, data, done, run, with_settings
from support.waiting import WAIT

Install = Callable[..., Path]


# plugins and tools enable|disable


@pytest.mark.usefixtures("acme")
def test_switching_a_plugin_keeps_the_rest_of_the_file():
    FILE.write_text("# mine\n" + WITH_TOKEN + "\n[tools] # see below\ntimeout = 5\n")
    before = FILE.read_text()
    preview = done("plugins", "disable", "acme", "--dry-run")
    assert preview == "standards-mcp.toml\n+[plugins.acme] enabled = false\n"
    assert FILE.read_text() == before
    assert "Changed standards-mcp.toml; the old file is" in done("plugins", "disable", "acme")
    assert backups() == [before]
    assert FILE.read_text() == before.replace('sesame"\n', 'sesame"\nenabled = false\n')
    assert "already has this setting" in done("plugins", "disable", "acme")
    assert "[plugins.acme] enabled = false" in done("plugins", "list")
    done("plugins", "enable", "acme", "--yes")
    assert "acme_find" in done("tools")


@pytest.mark.usefixtures("acme")
def test_a_preview_shows_the_changed_keys_alone():
    text = 'plugins = {acme = {token = "opensesame"}}\ntools = {disable = ["a*"], timeout = 5}\n'
    FILE.write_text(text)
    for arguments, keys in {
        ("plugins", "disable", "acme"): ["+[plugins.acme] enabled = false"],
        ("tools", "disable", "find_*"): [
            '-[tools] disable = ["a*"]',
            '+[tools] disable = ["a*", "find_*"]',
        ],
    }.items():
        assert done(*arguments, "--dry-run").splitlines() == ["standards-mcp.toml", *keys]
    assert FILE.read_text() == text
    assert "opensesame" not in done("config", "show")


@pytest.mark.slow
def test_edits_at_one_time_are_all_kept():
    FILE.write_text("# mine\n")
    names = ["find_*", "find_r*", "find_re*", "find_rel*", "find_rele*", "find_relev*"]
    edit = [sys.executable, "-m", "standards_mcp", "tools", "disable"]
    edits = [subprocess.Popen([*edit, name], stdout=subprocess.DEVNULL) for name in names]
    assert [each.wait(WAIT) for each in edits] == [0] * len(edits)
    assert sorted(tomllib.loads(FILE.read_text())["tools"]["disable"]) == names


def test_without_a_file_the_users_own_is_made():
    done("plugins", "disable", "search")
    from platformdirs import user_config_path

    file = user_config_path("standards-mcp", appauthor=False) / FILE
    assert tomllib.loads(file.read_text()) == {"plugins": {"search": {"enabled": False}}}
    done("tools", "disable", "get_*")
    assert tomllib.loads(file.read_text())["tools"] == {"disable": ["get_*"]}
    assert len(backups(file)) == 1
    assert not FILE.exists()


@pytest.mark.parametrize(
    ("command", "text", "told"),
    [
        (("plugins", "disable", "search"), "[tools]\nread_onyl = true\n", "[tools] read_onyl"),
        (("tools", "enable", "x"), "[tools]\nread_onyl = true\n", "toml:2: [tools] read_onyl"),
        (("plugins", "disable", "serach"), "", "no plugin 'serach' is installed; did you mean"),
        (("tools", "enable", "nosuch.*"), "", "'nosuch.*' matches no tool; see `standards-mcp t"),
        (("tools", "disable", "get.fnd"), "", "'get.fnd' matches no tool; "),
    ],
)
def test_a_file_with_mistakes_or_for_a_wrong_name_is_not_edited(
    command: tuple[str, ...], text: str, told: str
):
    FILE.write_text(text)
    result = run(*command)
    assert result.exit_code == 2
    assert told in result.stderr
    assert FILE.read_text() == text
    assert backups() == []


@pytest.mark.usefixtures("acme")
def test_tools_are_switched_by_their_names_and_by_globs():
    done("tools", "disable", "acme.find")
    done("tools", "disable", "get_*")
    tools = data("tools")
    served = {each["name"] for each in tools if each["served"]}
    assert served == {"find_relevant_standards", "acme_write"}
    done("tools", "enable", "get_*", "--yes")
    assert tomllib.loads(FILE.read_text())["tools"]["disable"] == ["acme.find"]
    FILE.write_text(WITH_TOKEN + '[tools]\ndisable = ["gone"]\n')
    assert "Changed" in done("tools", "enable", "gone", "--yes")
    assert "gone" not in FILE.read_text()
    result = run("tools", "disable", "acme.fnd")
    assert "'acme.fnd' matches no tool; did you mean 'acme.find'?" in result.stderr


def test_a_tool_is_switched_also_where_a_required_plugin_fails(install: Install):
    install("broken", "raise RuntimeError('not today')")
    FILE.write_text("[plugins.broken]\nrequired = true\n")
    result = run("tools", "disable", "web.*")
    assert (result.exit_code, result.stderr) == (0, "")
    assert tomllib.loads(FILE.read_text())["tools"] == {"disable": ["web.*"]}


@pytest.mark.usefixtures("acme")
def test_enabling_a_tool_reports_why_it_is_still_not_served():
    FILE.write_text(WITH_TOKEN + '[tools]\ndisable = ["acme.*"]\n')
    result = run("tools", "enable", "acme.find")
    assert result.exit_code == 0
    assert "acme_find is still not served: [tools] disable has 'acme.*'" in result.stderr
    assert "still" not in run("tools", "enable", "acme.*", "--yes").stderr


@pytest.mark.usefixtures("acme")
def test_tools_are_listed_with_their_costs_and_the_total():
    tools = data("tools")
    cost = sum(each["tokens"] for each in tools if each["served"])
    assert all(each["tokens"] > 10 for each in tools)
    assert done("tools").endswith(f"\n4 served, about {cost:,} tokens; 0 not\n")


@pytest.mark.usefixtures("acme")
def test_a_plugin_is_shown_with_its_tools_and_keys():
    shown = data("plugins", "info", "acme")
    assert shown["tools"] == ["acme_find", "acme_write"]
    keys = {key["name"]: key for key in shown["keys"]}
    assert keys["token"]["description"] == "Opens the door."
    assert keys["weights"]["default"] == '{ "a b" = 0.5 }'
    assert set(keys) >= {"enabled", "required", "token", "weights"}
    assert "[plugins.acme]\n" in done("plugins", "info", "acme")
    FILE.unlink()
    assert "field required" in " ".join(done("plugins", "info", "acme").split())


@pytest.mark.parametrize("text", [WITH_TOKEN, ""], ids=["configured", "not configured"])
@pytest.mark.usefixtures("acme")
def test_the_keys_of_a_plugin_that_are_required_or_secret_are_marked(text: str):
    FILE.write_text(text)
    keys = data("plugins", "info", "acme")["keys"]
    assert [key["name"] for key in keys if key["required"]] == ["token"]
    assert [key["name"] for key in keys if key["secret"]] == ["token", "more", "by_place"]
    shown = done("plugins", "info", "acme")
    told = r"Required, secret. Opens the door. Set it by STANDARDS_MCP_PLUGINS__ACME__TOKEN."
    assert re.search(rf"^token = \.\.\. +{told[:35]}", shown, re.MULTILINE)
    assert told in " ".join(shown.split())
    assert re.search(r"^profile\.depth = 1$", shown, re.MULTILINE)


def test_a_secret_that_others_can_read_is_reported_and_accepted(install: Install):
    door = "class Door(BaseModel):\n    key: SecretStr\n    width: int = 1\n"
    fields = ("token: SecretStr", "doors: list[Door] = []", "main: Door | None = None")
    install("safe", with_settings("safe", *fields, "plain: str = ''", before=door))
    Path(".env").write_text("STANDARDS_MCP_PLUGINS__SAFE__TOKEN=opensesame")
    FILE.write_text(
        "strict = true\n[plugins.safe]\nplain = 'x'\ntoken = 'opensesame'\n"
        "doors = [{key = 'opensesame'}]\n[plugins.safe.main]\nwidth = 2\nkey = 'opensesame'\n"
    )
    advice = "a secret does not belong here; set STANDARDS_MCP_PLUGINS__SAFE__{} in the environment"
    places = {
        "command line: [plugins.safe] token": "TOKEN",
        "standards-mcp.toml:4: [plugins.safe] token": "TOKEN",
        "standards-mcp.toml:5: [plugins.safe] doors": "DOORS",
        "standards-mcp.toml:8: [plugins.safe.main] key": "MAIN__KEY",
    }
    expected = [f"{key}: {advice.format(name)} or in .env" for key, name in places.items()]
    pair = "plugins.safe.token=opensesame"
    shown = done("--set", pair, "config", "check").splitlines()
    assert shown == [*expected, "ok: standards-mcp.toml"]
    logged = run("--set", pair, "tools").stderr
    assert all(line in logged for line in expected)
    assert "opensesame" not in logged


def test_a_pattern_without_match_is_reported_with_the_failed_plugins(install: Install):
    install("acme", ACME)
    FILE.write_text('[tools]\ndisable = ["acme.*"]\n[tools.overrides."acme.find"]\nname = "f"\n')
    lines = run("config", "check").stdout.splitlines()
    assert len(lines) == 3
    assert all(
        line.endswith(" (it may belong to a plugin that failed: acme)") for line in lines[1:]
    )
    Path(".env").write_text("STANDARDS_MCP_PLUGINS__ACME__TOKEN=opensesame")
    assert done("config", "check") == "ok: standards-mcp.toml\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("tools", 0),
        ("prompts", 0),
        ("resources", 0),
        ("skills", 0),
        ("plugins list", 0),
        ("plugins info broken", 0),
        ("config show", 0),
        ("plugins check", 1),
        ("config check", 1),
        ('call get_standard_details --args {"standard_id":""}', 2),
        ("plugins info nobody", 2),
        ("--set tools.timeout=0 tools", 2),
        ("--set plugins.broken.required=true tools", 1),
    ],
)
def test_lists_succeed_with_a_failed_plugin_and_checks_fail(
    install: Install, command: str, code: int
):
    install("broken", "raise RuntimeError('not today')")
    assert run(*command.split()).exit_code == code


# Profiles and trust


def test_a_profile_limits_the_tools_and_is_kept_by_install():
    FILE.write_text('[profiles.teacher]\nenable = ["find_*"]\n')
    tools = data("--profile", "teacher", "tools")
    assert [each["name"] for each in tools if each["served"]] == ["find_relevant_standards"]
    install = ["install", "cursor", "--print", "--profile"]
    args = json.loads(done(*install, "teacher"))["mcpServers"]["standards"]["args"]
    assert args[-4:] == ["--config", str(FILE.resolve()), "--profile", "teacher"]
    for arguments in (["--profile", "techer", "tools"], [*install, "techer"]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert "no table [profiles.techer]; did you mean 'teacher'?" in result.stderr


@pytest.mark.parametrize("pattern", ["standards_mcp_*", "Standards.MCP-Acme"])
def test_a_plugin_is_imported_if_its_distribution_is_trusted(install: Install, pattern: str):
    install("acme", "from standards_mcp import Plugin\nclass AcmePlugin(Plugin): ...")
    install("evil", "open('imported', 'w')", distribution="evil")
    FILE.write_text(f'trusted = ["standards-mcp", "{pattern}"]\n')
    done("tools")
    listed = {each["name"]: each for each in data("plugins", "list")}
    states = {name: each["status"] for name, each in listed.items()}
    own = dict.fromkeys(("acme", "catalog", "lookup", "search"), "registered")
    assert states == own | {"evil": "disabled"}
    assert listed["evil"]["reason"] == "trusted has no pattern for 'evil'"
    assert not Path("imported").exists()


def test_enabling_a_plugin_reports_why_it_is_still_not_loaded(install: Install):
    install("acme", ACME)
    FILE.write_text('trusted = ["standards-mcp"]\n')
    assert run("plugins", "enable", "acme", "--dry-run").stderr == ""
    told = run("plugins", "enable", "acme")
    assert told.exit_code == 0
    assert told.stderr == (
        "acme is still not loaded: trusted has no pattern for 'standards-mcp-acme'\n"
    )
    FILE.write_text("")
    assert run("plugins", "enable", "acme").stderr == ""


PATTERNS = {
    'trusted = ["standards_mcp", "standards-mcp-acm"]': "1: trusted: 'standards-mcp-acm' matches",
    '[profiles.teacher]\nplugins = ["serach"]': "2: [profiles.teacher] plugins: 'serach' matches",
    '[server.auth.scopes]\na = ["find_relevent*", "*", "get_*"]': "2: [server.auth.scopes] a: 'fi",
}


@pytest.mark.parametrize("text", PATTERNS)
def test_a_check_reports_patterns_that_match_nothing_with_the_nearest(text: str):
    FILE.write_text(text)
    result = run("config", "check")
    assert (result.exit_code, result.stdout.count("\n")) == (1, 1)
    assert result.stdout.startswith(f"standards-mcp.toml:{PATTERNS[text]}")
    assert "; did you mean '" in result.stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('host = "0.0.0.0"\nallowed_hosts = ["a.example.org"]', "needs no token"),
        ("auth.required = true", "no token exists"),
    ],
)
def test_a_check_reports_a_service_with_too_many_users_or_none(text: str, told: str):
    FILE.write_text(f"[server]\n{text}\n")
    result = run("config", "check")
    assert result.exit_code == 0
    warning, verdict = result.stdout.splitlines()
    assert told in warning
    assert verdict.startswith("ok: ")


# Skills

SKILLED = """
    from standards_mcp import Plugin, Skill, hookimpl

    class SkilledPlugin(Plugin):
        @hookimpl
        def register_skills(self):
            text = "---\\nname: {name}\\ndescription: Does it.\\n---\\n"
            return [Skill(source=text.format(name="plan-it"), needs=("find_relevant_standards",)),
                    Skill(source=text.format(name="check-it"))]
"""


def test_skills_are_listed_with_their_tools_and_the_reason_if_one_is_hidden(install: Install):
    install("skilled", SKILLED)
    FILE.write_text('[skills]\ndisable = ["check-it"]\n')
    plan, check = data("skills")
    assert (plan["name"], plan["plugin"], plan["served"]) == ("plan-it", "skilled", True)
    assert plan["needs"] == ["find_relevant_standards"]
    assert plan["uri"] == "skill://plan-it/SKILL.md"
    assert [each["size"] for each in plan["resources"]] == [44]
    assert (check["served"], check["reason"]) == (False, "[skills] disable has 'check-it'")
    assert "not served: [skills] disable has" in done("skills")
    info = data("plugins", "info", "skilled")
    assert (info["skills"], info["resources"]) == (["plan-it"], [])
    hidden = data("--set", 'tools.disable=["find_*"]', "skills")[0]
    assert hidden["reason"] == "it needs the tool 'find_relevant_standards', which is not served"
    assert (
        "[skills] disable: 'chekc' matches no skill"
        in run("--set", 'skills.disable=["chekc"]', "config", "check").output
    )
