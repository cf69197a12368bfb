from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from standards_mcp import ConfigError
from standards_mcp.config.loading import FILE_NAME, find_config, load_settings
from standards_mcp.config.models.settings import PluginSection, Settings
from standards_mcp.config.models.tools import ToolSettings

Write = Callable[..., Path]
MonkeyPatch = pytest.MonkeyPatch


@pytest.fixture
def write() -> Write:
    """Return a function that writes a file into the working directory."""

    def write_file(content: str | bytes, name: str = FILE_NAME) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def _set(monkeypatch: MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"STANDARDS_MCP_{name}", value)


def _mistakes(**arguments: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_settings(**arguments)
    return str(caught.value).splitlines()


# Precedence


@pytest.mark.parametrize(
    ("key", "toml", "variable", "values"),
    [
        ("strict", "strict = {}", "STRICT", [False, True]),
        ("tool_names", "tool_names = '{}'", "TOOL_NAMES", ["portable", "declared"]),
        ("tools.timeout", "[tools]\ntimeout = {}", "TOOLS__TIMEOUT", [1.5, 2.5, 3.5, 4.5]),
        (
            "server.audit.arguments",
            "[server.audit]\narguments='{}'",
            "SERVER__AUDIT__ARGUMENTS",
            ["hash", "redacted"],
        ),
        ("plugins.acme.enabled", "[plugins.acme]\nenabled={}", "PLUGINS__ACME__ENABLED", [True]),
        ("plugins.acme.limit", "[plugins.acme]\nlimit='{}'", "PLUGINS__ACME__LIMIT", "1234"),
    ],
)
def test_command_line_over_environment_over_env_file_over_file_over_default(
    key: str, toml: str, variable: str, values: Any, write: Write, monkeypatch: MonkeyPatch
):
    def value_of(overrides: dict[str, Any] | None = None) -> Any:
        found: Any = load_settings(overrides=overrides).settings
        for part in key.split("."):
            if isinstance(found, PluginSection) and part not in PluginSection.model_fields:
                found = found.options.get(part)
            else:
                found = found.get(part) if isinstance(found, dict) else getattr(found, part)
        return found

    in_file, in_env_file, in_environment, on_command_line = [*values, *values, *values, *values][:4]
    write(toml.format(str(in_file).lower()))
    assert value_of() == in_file
    write(f"STANDARDS_MCP_{variable}={in_env_file}\n", ".env")
    assert value_of() == in_env_file
    _set(monkeypatch, **{variable: str(in_environment)})
    assert value_of() == in_environment
    overrides: Any = on_command_line
    for part in reversed(key.split(".")):
        overrides = {part: overrides}
    assert value_of(overrides) == on_command_line


def test_tables_are_merged_key_by_key_and_lists_replaced(write: Write, monkeypatch: MonkeyPatch):
    write("[tools]\ndisable = ['a', 'b']\ntimeout = 1\n[plugins.acme]\na = 1\ndeep.x = 1")
    _set(monkeypatch, TOOLS__TIMEOUT="2", PLUGINS__ACME__B="2", PLUGINS__ACME__DEEP__Y="2")
    _set(monkeypatch, TOOLS__DISABLE='["c"]')
    found = load_settings(overrides={"plugins": {"acme": {"c": 3}}}).settings
    assert found.tools == ToolSettings(disable=("c",), timeout=2)
    assert found.section("acme").options == {"a": 1, "b": "2", "c": 3, "deep": {"x": 1, "y": "2"}}


@pytest.mark.parametrize("nothing", ["", " ", "${user_config.key}"])
@pytest.mark.parametrize("source", ["environment", ".env"])
def test_an_empty_field_of_a_bundle_is_not_set(
    nothing: str, source: str, write: Write, monkeypatch: MonkeyPatch
):
    names = ["STANDARDS_MCP_STATE_DIR", "STANDARDS_MCP_TOOLS__READ_ONLY", "PINECONE_API_KEY"]
    if source == "environment":
        for name in [*names, "STANDARDS_MCP_CONFIG"]:
            monkeypatch.setenv(name, nothing)
    else:
        write("".join(f"{name}='{nothing}'\n" for name in names), ".env")
    assert load_settings().settings == Settings()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("123", "123"),
        ("", ""),
        ('["a", 1]', ["a", 1]),
        ('{"a": 1}', {"a": 1}),
        ("[broken", "[broken"),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda value: str(value)[:12],
)
@pytest.mark.parametrize("source", ["environment", ".env"])
def test_variables_are_text_but_for_lists_and_tables(
    text: str, value: object, source: str, write: Write, monkeypatch: MonkeyPatch
):
    if source == "environment":
        _set(monkeypatch, PLUGINS__ACME__KEY=text)
    else:
        write(f"STANDARDS_MCP_PLUGINS__ACME__KEY='{text}'\n", ".env")
    assert load_settings().settings.section("acme").options == {"key": value}


def test_json_is_what_its_key_takes(monkeypatch: MonkeyPatch):
    credentials = '{"type": "service_account"}'
    _set(monkeypatch, SERVERS__WEB__COMMAND="web", SERVERS__WEB__ENV__KEY=credentials)
    _set(monkeypatch, SERVER__AUTH__SCOPES__TEACHER='["find_*"]')
    settings = load_settings().settings
    value = settings.servers["web"].env["key"]
    assert isinstance(value, SecretStr)
    assert value.get_secret_value() == credentials
    assert settings.server.auth.scopes == {"teacher": ("find_*",)}


def test_a_variable_for_a_table_and_one_for_a_key_in_it_add_up(monkeypatch: MonkeyPatch):
    _set(monkeypatch, TOOLS='{"timeout": 1, "read_only": true}', TOOLS__TIMEOUT="2")
    _set(monkeypatch, TOOLS__OVERRIDES="x", TOOLS__OVERRIDES__WORK__TITLE="Work")
    (line,) = _mistakes()
    assert line == "environment: STANDARDS_MCP_TOOLS__OVERRIDES: input should be a table"
    monkeypatch.delenv("STANDARDS_MCP_TOOLS__OVERRIDES")
    found = load_settings().settings.tools
    assert (found.timeout, found.read_only) == (2, True)
    assert found.overrides["work"].title == "Work"


def test_the_env_file_may_hold_the_variables_of_others(write: Write):
    write("# a comment\nOTHER=x\nPINECONE_API_KEY=x\nexport STANDARDS_MCP_STRICT=true\n", ".env")
    assert load_settings().settings.strict
    Path(".env").unlink()
    write("", ".env/bin/python")  # an environment of Python
    assert load_settings().settings == Settings()


# The file


def test_the_files_are_tried_in_order(tmp_path: Path, write: Write, monkeypatch: MonkeyPatch):
    from platformdirs import user_config_path

    assert find_config() is None
    users = write("", str(user_config_path("standards-mcp", appauthor=False) / FILE_NAME))
    assert find_config() == users
    here = write("")
    assert find_config() == here
    named = write("", str(tmp_path / "named.toml"))
    _set(monkeypatch, CONFIG=str(named))
    assert find_config() == named
    given_file = write("", str(tmp_path / "given.toml"))
    assert find_config(given_file) == given_file


def test_a_file_that_is_named_must_be_there(tmp_path: Path, write: Write, monkeypatch: MonkeyPatch):
    write("strict = true")
    missing = tmp_path / "missing.toml"
    expected = [f"{missing}: no such file; check --config or STANDARDS_MCP_CONFIG"]
    assert _mistakes(config=missing) == expected
    _set(monkeypatch, CONFIG=str(missing))
    assert _mistakes() == expected
    assert _mistakes(config=tmp_path)[0].startswith(f"{tmp_path}: it is a folder")


# Mistakes


@pytest.mark.parametrize(
    ("toml", "mistakes"),
    [
        ("strikt = true", ["strikt: unknown key; did you mean 'strict'?"]),
        ("zzz = 1", ["zzz: unknown key; known keys: autoload, plugins, profile,"]),
        ("strict = 'perhaps'", ["strict: input should be true or false"]),
        ("tool_names = 'dots'", ["tool_names: input should be 'portable' or 'declared'"]),
        ("[[tools]]", ["tools: input should be a table"]),
        ("[tools]\ntimeout = 0", ["[tools] timeout: input should be greater than 0"]),
        ("[tools]\ntimeout = nan", ["[tools] timeout: input should be a finite number"]),
        ("[tools]\ntimeout = true", ["[tools] timeout: input should be a number"]),
        ("[tools]\nenable = '*'", ["[tools] enable: input should be a list"]),
        ("[tools]\ndisable = [1]", ["[tools] disable, element 1: input should be text in"]),
        ("[plugins.acme]\nenabled = 3", ["[plugins.acme] enabled: input should be true"]),
        (
            "strikt = true\n[tools]\ntimeout = 0",
            ["[tools] timeout: input should", "strikt: unknown key"],
        ),
        (
            "[server.audit]\narguments = 'redactd'",
            ["[server.audit] arguments: input should be 'hash' or 'redacted'; did you mean 'red"],
        ),
        (
            "[tools.overrides.'web.get']\nrate_limit = 'often'",
            ['[tools.overrides."web.get"] rate_limit: input should be a number of calls for each'],
        ),
        (
            "[tools.overrides.x]\nname = 'a b'",
            ["[tools.overrides.x] name: input should be a letter and up to 63 letters, digits, "],
        ),
        (
            "[tools.overrides.x.arguments.a]\nfixed = 1\ndefault = 2",
            ["[tools.overrides.x.arguments.a] default: it is fixed to a value; remove fixed or"],
        ),
        ("[tools]\ntimeout = " + "9" * 5000, ["not valid TOML: "]),
        ("strict =", ["not valid TOML: Invalid value"]),
    ],
)
def test_a_mistake_in_the_file_is_one_line(
    toml: str, mistakes: list[str], write: Write, tmp_path: Path
):
    file = write(toml, str(tmp_path / "x.toml"))
    found = _mistakes(config=file)
    assert len(found) == len(mistakes)
    for line, mistake in zip(found, mistakes, strict=True):
        place, _, rest = line.removeprefix(str(file)).partition(" ")
        assert re.fullmatch(r"(:\d+)?:", place)
        assert rest.startswith(mistake)


UNKNOWN = "unknown setting"


@pytest.mark.parametrize("source", ["environment", ".env"])
@pytest.mark.parametrize(
    ("name", "value", "mistake"),
    [
        ("XYZZY", "1", f"XYZZY: {UNKNOWN}"),
        ("AUTOLAOD", "1", f"AUTOLAOD: {UNKNOWN}; did you mean 'STANDARDS_MCP_AUTOLOAD'?"),
        ("TOOL__X", "1", f"TOOL__X: {UNKNOWN}; did you mean 'STANDARDS_MCP_TOOLS__X'?"),
        ("STRICT", "perhaps", "STRICT: input should be true or false"),
        ("TOOLS", "{x", "TOOLS: input should be a table"),
        ("TOOLS__READ_ONYL", "1", "TOOLS__READ_ONYL: unknown key; did you mean 'read_only'?"),
        ("TOOLS__TIMEOUT", "soon", "TOOLS__TIMEOUT: input should be a number"),
        ("TOOLS__DISABLE", "web.*", "TOOLS__DISABLE: input should be a list, for example "),
        ("PLUGINS__ACME", "5", "PLUGINS__ACME: input should be a table"),
    ],
)
def test_a_mistake_in_a_variable_names_it(
    source: str, name: str, value: str, mistake: str, write: Write, monkeypatch: MonkeyPatch
):
    if source == "environment":
        _set(monkeypatch, **{name: value})
    else:
        write(f"STANDARDS_MCP_{name}={value}", ".env")
    (line,) = _mistakes()
    assert line.startswith(f"{source}: STANDARDS_MCP_{mistake}")


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        (b"STANDARDS_MCP_CONFIG=x.toml", "STANDARDS_MCP_CONFIG: it is read from the environment"),
        (b"X=\xff", "line 1 is not UTF-8 text; save"),
    ],
)
def test_what_the_env_file_cannot_hold_is_told(content: bytes, mistake: str, write: Write):
    write(content, ".env")
    (line,) = _mistakes()
    assert line.startswith(f".env: {mistake}")


def test_the_source_in_force_is_named(write: Write, monkeypatch: MonkeyPatch):
    write("[tools]\ntimeout = 5\nenable = 5")
    _set(monkeypatch, TOOLS__TIMEOUT="x")
    assert [line.split(": ")[0] for line in _mistakes()] == [f"{FILE_NAME}:3", "environment"]
    overrides = {"tools": {"timeout": "x", "enable": ["*"]}}
    (line,) = _mistakes(overrides=overrides)
    assert line.startswith("command line: [tools] timeout: input should be a number")


@pytest.mark.parametrize(
    ("text", "variable", "place"),
    [
        ("tools = 5", "TOOLS__READ_ONLY", "1: tools"),
        ("[plugins]\nsearch = false", "PLUGINS__SEARCH__MAX_RESULTS", "2: [plugins] search"),
        ("[tools]\noverrides = 5", "TOOLS__OVERRIDES__X__TITLE", "2: [tools] overrides"),
    ],
)
def test_a_variable_does_not_hide_a_plain_value_in_place_of_its_table(
    text: str, variable: str, place: str, write: Write, monkeypatch: MonkeyPatch
):
    write(text)
    _set(monkeypatch, **{variable: "1"})
    assert _mistakes() == [f"{FILE_NAME}:{place}: input should be a table"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.text(max_size=8) | st.sampled_from([*Settings.model_fields, "_secrets_dir"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.text(max_size=5), inner, max_size=2)
            ),
        ),
        max_size=3,
    )
)
@example({"servers_file": "0"})
def test_any_mistake_is_one_line(overrides: dict[str, Any]):
    told = "command line: "
    try:
        load_settings(overrides=overrides)
    except ConfigError as exc:
        told = str(exc)
    assert told.startswith("command line: ")


# Objects


def test_constructing_settings_reads_neither_files_nor_variables(
    write: Write, monkeypatch: MonkeyPatch
):
    write("strict = true")
    write("STANDARDS_MCP_STRICT=true", ".env")
    _set(monkeypatch, STRICT="true")
    assert not Settings().strict
