from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from standards_mcp import ConfigError
from standards_mcp.config.loading import FILE_NAME, LoadedSettings, find_config, load_settings
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


def test_without_any_source_the_defaults_hold():
    loaded = load_settings()
    assert loaded.settings == Settings()
    assert loaded.file is None
    assert loaded.settings.tools.timeout == 30


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


def test_tables_are_merged_key_by_key(write: Write, monkeypatch: MonkeyPatch):
    write(
        "[tools]\nread_only = true\ntimeout = 1\n[plugins.acme]\na = 1\n[plugins.acme.deep]\nx = 1"
    )
    _set(monkeypatch, TOOLS__TIMEOUT="2", PLUGINS__ACME__B="2", PLUGINS__ACME__DEEP__Y="2")
    found = load_settings(overrides={"plugins": {"acme": {"c": 3}}}).settings
    assert found.tools == ToolSettings(read_only=True, timeout=2)
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


def test_a_list_is_replaced_and_not_merged(write: Write, monkeypatch: MonkeyPatch):
    write("[tools]\ndisable = ['a', 'b']")
    _set(monkeypatch, TOOLS__DISABLE='["c"]')
    assert load_settings().settings.tools.disable == ("c",)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("123", "123"),
        ("true", "true"),
        ("null", "null"),
        ("", ""),
        ('["a", 1]', ["a", 1]),
        ('{"a": 1}', {"a": 1}),
        (" [1]", [1]),
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


def test_json_stays_text_where_a_key_is_text(monkeypatch: MonkeyPatch):
    credentials = '{"type": "service_account"}'
    _set(monkeypatch, SERVERS__WEB__COMMAND="web", SERVERS__WEB__ENV__KEY=credentials)
    value = load_settings().settings.servers["web"].env["key"]
    assert isinstance(value, SecretStr)
    assert value.get_secret_value() == credentials


def test_a_list_may_stand_where_a_table_may(monkeypatch: MonkeyPatch):
    _set(monkeypatch, SERVER__AUTH__SCOPES__TEACHER='["find_*"]')
    assert load_settings().settings.server.auth.scopes == {"teacher": ("find_*",)}


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


def test_a_folder_called_env_is_no_settings_file(write: Write):
    write("", ".env/bin/python")
    assert load_settings().settings == Settings()


def test_names_of_variables_may_be_in_any_case(monkeypatch: MonkeyPatch):
    monkeypatch.setenv("standards_mcp_strict", "true")
    assert load_settings().settings.strict


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


def test_a_byte_order_mark_is_no_mistake(write: Write):
    write("\ufeffstrict = true")
    assert load_settings().settings.strict


# Mistakes


@pytest.mark.parametrize(
    ("toml", "mistakes"),
    [
        ("strikt = true", ["strikt: unknown key; did you mean 'strict'?"]),
        ("zzz = 1", ["zzz: unknown key; known keys: autoload, plugins, profile,"]),
        ("'' = 1", ['"": unknown key; known keys: autoload,']),
        ("_env_file = 'x'", ["_env_file: unknown key"]),
        ("__pydantic_self__ = 1", ["__pydantic_self__: unknown key"]),
        ("strict = 'perhaps'", ["strict: input should be true or false"]),
        ("tool_names = 'dots'", ["tool_names: input should be 'portable' or 'declared'"]),
        ("tools = 5", ["tools: input should be a table"]),
        ("[[tools]]", ["tools: input should be a table"]),
        (
            "[tools]\nread_onyl = true",
            ["[tools] read_onyl: unknown key; did you mean 'read_only'?"],
        ),
        ("[tools]\ntimeout = 'soon'", ["[tools] timeout: input should be a number"]),
        ("[tools]\ntimeout = 0", ["[tools] timeout: input should be greater than 0"]),
        ("[tools]\ntimeout = nan", ["[tools] timeout: input should be a finite number"]),
        ("[tools]\ntimeout = true", ["[tools] timeout: input should be a number"]),
        ("state_dir = 5", ["state_dir: input should be a path"]),
        ("[tools]\nenable = '*'", ["[tools] enable: input should be a list"]),
        ("[tools]\ndisable = [1]", ["[tools] disable, element 1: input should be text in"]),
        ("plugins = 5", ["plugins: input should be a table"]),
        ("[plugins]\nacme = 5", ["[plugins] acme: input should be a table"]),
        ("[plugins.acme]\nenabled = 3", ["[plugins.acme] enabled: input should be true"]),
        (
            "strikt = true\n[tools]\ntimeout = 0",
            ["[tools] timeout: input should", "strikt: unknown key"],
        ),
        (
            "[tools.overrides.x.arguments.a]\nfixd = 1",
            ["[tools.overrides.x.arguments.a] fixd: unknown key; did you mean 'fixed'?"],
        ),
        (
            "[server.audit]\narguments = 'redactd'",
            [
                (
                    "[server.audit] arguments: input should be 'hash' or 'redacted'; did you "
                    "mean 'redacted'?"
                )
            ],
        ),
        (
            "[tools.overrides.'web.get']\nrate_limit = 'often'",
            [
                (
                    '[tools.overrides."web.get"] rate_limit: input should be a number of calls for '
                    "each second, minute, hour or day, for example '60/minute'"
                )
            ],
        ),
        (
            "[tools.overrides.x]\nname = 'a b'",
            ["[tools.overrides.x] name: input should be a letter and up to 63 letters, digits, "],
        ),
        (
            "[tools.overrides.x.arguments.a]\nfixed = 1\ndefault = 2",
            ["[tools.overrides.x.arguments.a] default: it is fixed to a value; remove fixed or"],
        ),
        ("a = " + "[" * 5000, ["not valid TOML: "]),
        ("[tools]\ntimeout = " + "9" * 5000, ["not valid TOML: "]),
        ("strict =", ["not valid TOML: Invalid value"]),
        (b"\xff", ["line 1 is not UTF-8 text; save the file as UTF-8"]),
    ],
)
def test_a_mistake_in_the_file_is_one_line(
    toml: str | bytes, mistakes: list[str], write: Write, tmp_path: Path
):
    file = write(toml, str(tmp_path / "x.toml"))
    found = _mistakes(config=file)
    assert len(found) == len(mistakes)
    for line, mistake in zip(found, mistakes, strict=True):
        place, _, rest = line.removeprefix(str(file)).partition(" ")
        assert re.fullmatch(r"(:\d+)?:", place)
        assert rest.startswith(mistake)


@pytest.mark.parametrize(
    ("name", "value", "mistake"),
    [
        ("", "1", ": unknown setting"),
        ("STRICT__X", "1", "STRICT: input should be true or false"),
        ("STRICT", "perhaps", "STRICT: input should be true or false"),
        ("TOOLS", "x", "TOOLS: input should be a table"),
        ("TOOLS", "{x", "TOOLS: input should be a table"),
        ("TOOLS__READ_ONYL", "1", "TOOLS__READ_ONYL: unknown key; did you mean 'read_only'?"),
        ("TOOLS__TIMEOUT", "soon", "TOOLS__TIMEOUT: input should be a number"),
        ("TOOLS__TIMEOUT", "inf", "TOOLS__TIMEOUT: input should be a finite number"),
        (
            "TOOLS__DISABLE",
            "web.*",
            """TOOLS__DISABLE: input should be a list, for example '["a", "b"]'""",
        ),
        ("PLUGINS", "5", "PLUGINS: input should be a table"),
        ("PLUGINS__ACME", "5", "PLUGINS__ACME: input should be a table"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    name: str, value: str, mistake: str, monkeypatch: MonkeyPatch
):
    _set(monkeypatch, **{name: value})
    (line,) = _mistakes()
    assert line.startswith(f"environment: STANDARDS_MCP_{mistake}")


@pytest.mark.parametrize(
    ("content", "mistake"),
    [
        (
            "STANDARDS_MCP_TOLS__X=1",
            "STANDARDS_MCP_TOLS__X: unknown setting; did you mean 'STANDARDS_MCP_TOOLS__X'?",
        ),
        (
            "STANDARDS_MCP_TOOLS__TIMEOUT=x",
            "STANDARDS_MCP_TOOLS__TIMEOUT: input should be a number",
        ),
        (
            "STANDARDS_MCP_CONFIG=x.toml",
            "STANDARDS_MCP_CONFIG: it is read from the environment only",
        ),
        (b"X=\xff", "line 1 is not UTF-8 text; save"),
    ],
)
def test_a_mistake_in_the_env_file_is_one_line(content: str | bytes, mistake: str, write: Write):
    write(content, ".env")
    (line,) = _mistakes()
    assert line.startswith(f".env: {mistake}")


@pytest.mark.parametrize(
    ("overrides", "mistake"),
    [
        ({"strikt": True}, "strikt: unknown key; did you mean 'strict'?"),
        ({"tools": 5}, "tools: input should be a table"),
        ({"tools": {"timeout": "x"}}, "[tools] timeout: input should be a number"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(
    overrides: dict[str, Any], mistake: str, write: Write
):
    write("[tools]\ntimeout = 5")
    (line,) = _mistakes(overrides=overrides)
    assert line.startswith(f"command line: {mistake}")


def test_the_source_in_force_is_named(write: Write, monkeypatch: MonkeyPatch):
    write("[tools]\ntimeout = 5\nenable = 5")
    _set(monkeypatch, TOOLS__TIMEOUT="x")
    assert [line.split(": ")[0] for line in _mistakes()] == [f"{FILE_NAME}:3", "environment"]


def test_the_key_of_the_file_is_blamed_although_a_variable_sets_another_of_its_table(
    write: Write, monkeypatch: MonkeyPatch
):
    _set(
        monkeypatch, SERVER__AUDIT__FILES="5", TOOLS__OVERRIDES__WORK__ARGUMENTS__A__DESCRIPTION="A"
    )
    write("[server.audit]\nrequired = true")
    (line,) = _mistakes()
    assert line.startswith(f"{FILE_NAME}:2: [server.audit] required: it needs the path of")
    write("[tools.overrides.work.arguments.a]\nfixed = 1\ndefault = 2")
    (line,) = _mistakes()
    assert line.startswith(f"{FILE_NAME}:3: [tools.overrides.work.arguments.a] default: it is")


@pytest.mark.parametrize(
    ("text", "variable", "place"),
    [
        ("tools = 5", "TOOLS__READ_ONLY", "1: tools"),
        ("[plugins]\nsearch = false", "PLUGINS__SEARCH__MAX_RESULTS", "2: [plugins] search"),
        ("[tools]\noverrides = 5", "TOOLS__OVERRIDES__X__TITLE", "2: [tools] overrides"),
        ("profiles = 5", "PROFILES__X__READ_ONLY", "1: profiles"),
    ],
)
def test_a_variable_does_not_hide_a_plain_value_in_place_of_its_table(
    text: str, variable: str, place: str, write: Write, monkeypatch: MonkeyPatch
):
    write(text)
    _set(monkeypatch, **{variable: "1"})
    assert _mistakes() == [f"{FILE_NAME}:{place}: input should be a table"]


def test_every_source_of_a_merged_table_is_named(write: Write, monkeypatch: MonkeyPatch):
    write("[plugins.acme]\nlow = 1")
    _set(monkeypatch, PLUGINS__ACME__HIGH="0")
    where = load_settings().layers.where
    assert where(("plugins", "acme")) == (
        f"{FILE_NAME}:1: [plugins] acme and environment: STANDARDS_MCP_PLUGINS__ACME"
    )
    assert where(("plugins", "acme", "low")) == f"{FILE_NAME}:2: [plugins.acme] low"
    assert where(("plugins", "acme", "missing")) == f"{FILE_NAME}:1: [plugins.acme] missing"
    assert where(("plugins", "beta", "missing")) == "[plugins.beta] missing"


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


def test_settings_do_not_change():
    with pytest.raises(ValidationError):
        Settings().strict = True


def test_a_plugin_without_a_table_has_the_defaults():
    assert Settings().section("acme") == PluginSection(enabled=None, required=False)


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        (("tools", "timeout"), "environment"),
        (("tools", "disable", 0), f"{FILE_NAME}:3"),
        (("tools", "enable"), ""),
        (("nothing",), ""),
    ],
)
def test_the_origin_of_a_value_is_the_highest_source_that_sets_it(
    path: tuple[str | int, ...], origin: str, write: Write, monkeypatch: MonkeyPatch
):
    write("[tools]\ntimeout = 5\ndisable = ['a']")
    _set(monkeypatch, TOOLS__TIMEOUT="6")
    assert load_settings().layers.origin(path) == origin


def test_settings_made_by_hand_have_no_origin():
    assert LoadedSettings(Settings(), None).layers.origin(("strict",)) == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("STANDARDS_MCP_TOOL__READ_ONLY", "STANDARDS_MCP_TOOLS__READ_ONLY"),
        ("STANDARDS_MCP_PLUGIN__ACME__KEY", "STANDARDS_MCP_PLUGINS__ACME__KEY"),
        ("STANDARDS_MCP_AUTOLAOD", "STANDARDS_MCP_AUTOLOAD"),
        ("STANDARDS_MCP_CONFG", "STANDARDS_MCP_CONFIG"),
        ("STANDARDS_MCP_PINECONE_API_KEY", ""),
        ("STANDARDS_MCP_XYZZY", ""),
    ],
)
def test_an_unknown_variable_is_reported_with_the_closest_one(
    monkeypatch: pytest.MonkeyPatch, name: str, meant: str
):
    monkeypatch.setenv(name, "true")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    hint = f"; did you mean {meant!r}?" if meant else ""
    assert str(caught.value) == f"environment: {name}: unknown setting{hint}"
