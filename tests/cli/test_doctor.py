"""What `doctor` finds, and how it says it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command_line import ACME, FILE, run, with_settings

from standards_mcp.config.timing import DEFAULT_TIMING, Timing

Install = Callable[..., Path]
TOKEN = ("--set", "plugins.acme.token=opensesame")
FIX = re.compile(r"(Compile|Correct|Disable|Install|Put|Run|Set|Update)\b.+\.")


pytestmark = [pytest.mark.usefixtures("starter_catalog"), pytest.mark.processes]


def findings(*arguments: str, code: int, timing: Timing = DEFAULT_TIMING) -> dict[str, list[Any]]:
    result = run(*arguments, "doctor", "--json", timing=timing)
    assert result.exit_code == code, result.output
    found: dict[str, list[Any]] = {}
    for each in json.loads(result.stdout):
        assert bool(each["fix"]) == (each["level"] != "ok")
        assert not each["fix"] or FIX.fullmatch(each["fix"]), each["fix"]
        found.setdefault(each["subject"], []).append(each)
    return found


@pytest.mark.smoke
def test_a_good_installation_has_no_error_whatever_its_plugins_print(install: Install):
    source = """
        import os
        from standards_mcp import Health, Plugin, hookimpl

        os.write(1, b"raw at import\\n")
        print("printed at import")

        class LoudPlugin(Plugin):
            @hookimpl
            async def check_health(self):
                os.write(1, b"raw in a check\\n")
                return Health(status="degraded", message="hoarse")
    """
    install("loud", source)
    command = [sys.executable, "-m", "standards_mcp", "doctor", "--json"]
    ran = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    found = {each["subject"]: each for each in json.loads(ran.stdout)}
    assert "tokens of a model's context" in found["tools"]["message"]
    assert "stdout is clean" in found["start"]["message"]
    assert "records in the local catalog" in found["service Catalog"]["message"]
    assert "PINECONE_API_KEY is not set" in found["service Catalog"]["message"]
    assert "stdout" not in found
    assert (found["plugin loud"]["level"], found["plugin loud"]["message"]) == ("warning", "hoarse")
    assert {each["level"] for each in found.values()} <= {"ok", "warning"}


def test_a_list_of_more_than_one_page_and_many_tools_are_warned_about(install: Install):
    source = """
        from standards_mcp import Plugin, Tool, hookimpl

        class ManyPlugin(Plugin):
            @hookimpl
            def register_tools(self):
                texts = ["x" * 40_000] * 50
                return [
                    Tool(name=f"many_{n}", description=text, function=lambda: "", read_only=True)
                    for n, text in enumerate(texts)
                ]
    """
    install("many", source)
    Path("standards-mcp.toml").write_text("autoload = false\nplugins.many.enabled = true\n")
    messages = [each["message"] for each in findings(code=0)["tools"]]
    assert any("many clients read only the first 1,048,576" in each for each in messages)
    assert any("50 served, 50 listed" in each for each in messages)
    Path("standards-mcp.toml").write_text(
        'autoload = false\nplugins.many.enabled = true\ntools.discovery = "search"\n'
    )
    (found,) = findings(code=0)["tools"]
    assert found["level"] == "ok"
    assert found["message"].startswith("50 served, 2 listed")


KEYED = with_settings("keyed", "token: SecretStr", "size: int")
VARIABLE = "set STANDARDS_MCP_PLUGINS__KEYED__TOKEN in the environment or in .env"
PROGRAM = "set [servers.clock] command to the whole path of a program that exists"


@pytest.mark.parametrize(
    ("text", "plugin", "reason", "fix"),
    [
        ("[plugins.keyed]\nsize = 3", "keyed", f"token: field required; {VARIABLE}", VARIABLE),
        ("[plugins.keyed]\nisolate = true", "keyed",
         "standards-mcp.toml:1: [plugins.keyed] size: field required",
         f"{VARIABLE}; set [plugins.keyed] size"),
        ("[plugins.keyed]\nsize = 'big'\ntoken = 'opensesame'", "keyed",
         "standards-mcp.toml:2: [plugins.keyed] size: input should be",
         "correct [plugins.keyed] size"),
        ("[plugins.keyed]\npython = '/nowhere/python'", "keyed",
         "'/nowhere/python' cannot be started",
         "set [plugins.keyed] python to the whole path of an interpreter that exists"),
        ("[servers.clock]\ncommand = 'x'\nargs = ['a', '${NOPE_TOKEN}']", "clock",
         "standards-mcp.toml:3: [servers.clock] args, element 2: ${NOPE_TOKEN} is not set",
         f"set NOPE_TOKEN in the environment; {PROGRAM}"),
    ],
)  # fmt: skip
def test_the_fix_for_a_failed_plugin_depends_on_the_reason(
    install: Install, text: str, plugin: str, reason: str, fix: str
):
    install("keyed", KEYED)
    FILE.write_text(text)
    (finding,) = findings(code=1)[f"plugin {plugin}"]
    assert reason in finding["message"]
    command = f"disable it: `standards-mcp plugins disable {plugin}`."
    assert finding["fix"] == f"{fix[:1].upper()}{fix[1:]}, or {command}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[plugins.broken]\nrequired = true\n", "not today"),
        ("[tools]\nread_onyl = true\n", "standards-mcp.toml:2: [tools] read_onyl: unknown key"),
    ],
)
def test_what_stops_a_start_does_not_hide_other_findings(install: Install, text: str, message: str):
    install("broken", "raise RuntimeError('not today')")
    FILE.write_text(text)
    found = findings(code=1)
    assert found["configuration"][0]["level"] == "error"
    assert message in found["configuration"][0]["message"]
    assert "Python" in found["versions"][0]["message"]


def test_a_required_plugin_that_fails_is_not_to_be_disabled(install: Install):
    install("broken", "raise RuntimeError('not today')")
    FILE.write_text("[plugins.broken]\nrequired = true\nisolate = true\n")
    assert "plugins disable broken" not in str(findings(code=1))


def test_a_secret_in_the_file_is_a_warning_and_so_is_a_service_for_everybody(install: Install):
    install("keyed", KEYED)
    FILE.write_text("server.host = '0.0.0.0'\n[plugins.keyed]\nsize = 3\ntoken = 'opensesame'")
    found = findings(code=0)
    (service,), (_, secret) = found["service"], found["configuration"]
    assert service["level"] == secret["level"] == "warning"
    assert "auth token new NAME" in service["message"]
    assert f"token: a secret does not belong here; {VARIABLE}" in secret["message"]
    assert secret["fix"] == "Set the variable, and remove the key."


def test_a_service_that_cannot_be_used_is_an_error(monkeypatch: pytest.MonkeyPatch):
    folder = Path("broken").resolve()
    folder.mkdir()
    (folder / "catalog.sqlite3").write_bytes(b"this is no database" * 1000)
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__CATALOG__PATH", str(folder))
    found = findings(code=1)
    (service,), (plugin,) = found["service Catalog"], found["plugin catalog"]
    assert service["level"] == "error"
    assert "catalog.sqlite3" in service["message"]
    fix = "Correct the reported problem, in the settings of the plugin that provides it."
    assert service["fix"] == fix
    assert "`standards-mcp data status` says more" in plugin["message"]


def test_nothing_served_is_an_error_and_a_pattern_without_effect_a_warning():
    found = findings("--set", "tools.disable=['*', 'x.*']", code=1)
    assert found["tools"][0]["message"] == "no tool is served"
    warnings = [each["message"] for each in found["configuration"] if each["level"] == "warning"]
    assert any("'x.*' matches no tool" in message for message in warnings)


def test_names_that_some_clients_refuse_are_a_warning(install: Install):
    install("acme", ACME)
    options = ("--set", "tool_names=declared", "--set", "tools.disable=['acme.write']")
    first, *rest = findings(*options, *TOKEN, code=0)["tools"]
    refused = "some clients refuse the whole server because of the name 'acme.find'"
    assert refused in first["message"]
    assert [each["level"] for each in rest] == ["ok"]


SLOW = """
    import time
    from contextlib import asynccontextmanager
    import anyio
    from standards_mcp import Health, Plugin, hookimpl

    time.sleep({at_import})

    class SlowPlugin(Plugin):
        @hookimpl
        @asynccontextmanager
        async def lifespan(self):
            await anyio.sleep({in_lifespan})
            yield

        @hookimpl
        async def check_health(self):
            return Health(status="failed")
"""


@pytest.mark.parametrize(("at_import", "in_lifespan"), [(0.6, 0), (0, 60)])
def test_a_slow_start_is_put_down_to_the_plugin_that_takes_long(
    install: Install, at_import: float, in_lifespan: float
):
    install("slow", SLOW.format(at_import=at_import, in_lifespan=in_lifespan))
    timing = Timing(start=0.7, slow_server=0.1, slow_plugin=0.6, trial=2.0)
    (start,) = findings(code=1, timing=timing)["start"]
    assert re.search(r"when it was loaded here, .*plugin 'slow' took \d+\.\d s", start["message"])
    assert "bytecode" not in start["fix"]


def test_a_slow_start_without_a_slow_plugin_is_put_down_to_bytecode(install: Install):
    install("slow", SLOW.format(at_import=0, in_lifespan=0))
    found = findings(code=1, timing=Timing(slow_server=0.1, slow_plugin=60.0))
    (start,), (slow,) = found["start"], found["plugin slow"]
    assert start["fix"].startswith(f'Compile the bytecode: `"{sys.executable}" -m compileall ')
    assert slow["message"] == "it reports the status failed"
    command = "`standards-mcp plugins disable slow`"
    assert slow["fix"] == f"Correct the reported problem, or disable it: {command}."
