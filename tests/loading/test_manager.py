from __future__ import annotations

import functools
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from pydantic import AfterValidator, Field, SecretStr, field_validator
from support.hosts import Install, MakeHost, served

from standards_mcp import (
    ApiError,
    ConfigError,
    Filter,
    InvalidInputError,
    Plugin,
    PluginContext,
    PluginError,
    PluginSettings,
    Tool,
    hookimpl,
)
from standards_mcp.commands import install_command
from standards_mcp.config.loading import LoadedSettings, load_settings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.selection import Contributions
from standards_mcp.host import Host
from standards_mcp.loading.discovery import incompatibility, installed_plugins
from standards_mcp.loading.records import PluginInfo, PluginRecord, Status

PluginType = type[Plugin[Any]]

GOOD = """
    from standards_mcp import Plugin, Tool, hookimpl

    def work() -> str:
        "Do the work."
        return "done"

    class {name}Plugin(Plugin):
        @hookimpl
        def register_tools(self):
            return [Tool(name="{tool}", function=work)]
"""


def work() -> str:
    """Do the work."""
    return "done"


def tool(name: str = "work", **fields: Any) -> Tool:
    return Tool(**{"name": name, "function": work} | fields)


def with_tools(*tools: object) -> PluginType:
    return with_hook("register_tools", lambda: tools)


def with_hook(name: str, function: Callable[[], object]) -> PluginType:
    def hook(self: object) -> object:
        del self
        return function()

    return type("Made", (Plugin,), {name: hookimpl(hook)})


def good_source(name: str, tool_name: str = "work") -> str:
    return GOOD.format(name=name.capitalize(), tool=tool_name)


def statuses(host: Host) -> dict[str, str]:
    return {record.name: record.status for record in host.manager.records.values()}


def reason(host: Host, name: str = "acme") -> str:
    record = host.manager.records[name]
    assert record.status is Status.FAILED
    assert record.contributions == Contributions()
    assert "\n" not in record.reason
    return record.reason


def installed_host(**settings: Any) -> Host:
    """Return a host of the plugins that tests installed, and not of those of this environment."""
    plugins = [item for item in installed_plugins() if item.distribution != "standards-mcp"]
    host = Host(
        LoadedSettings(Settings(state_dir=Path("state"), **settings), None), installed=plugins
    )
    host.load()
    return host


# Discovery


def test_installed_plugins_are_known_by_their_metadata_alone(install: Install):
    install("acme", "raise SystemExit('imported')", version="2.5", requires=["standards-mcp>=0.1"])
    (info,) = (item for item in installed_plugins() if item.name == "acme")
    assert info.distribution == "standards-mcp-acme"
    assert info.version == "2.5"
    assert info.requires == ("standards-mcp>=0.1",)
    assert PluginRecord(info).status is Status.DISCOVERED


def test_plugins_load_in_the_order_of_their_names(make_host: MakeHost):
    host = make_host({name: with_tools(tool(name)) for name in ("zeta", "alpha", "mid")})
    assert list(host.manager.records) == ["alpha", "mid", "zeta"]
    assert served(host) == ["alpha", "mid", "zeta"]


def test_the_hosts_own_plugins_come_first():
    records = [
        PluginInfo(name=name, load=lambda: Plugin, distribution=distribution)
        for name, distribution in [("alpha", "other"), ("zeta", "Standards_MCP")]
    ]
    host = Host(LoadedSettings(Settings(), None), installed=records)
    assert list(host.manager.records) == ["zeta", "alpha"]


@pytest.mark.parametrize(
    "name", ["Acme", "acme-x", "_acme", "acme_", "a__b", "1a", "a b", "a\n", ""]
)
def test_a_name_that_is_not_lower_snake_case_fails(make_host: MakeHost, name: str):
    host = make_host({name: pytest.fail})
    assert reason(host, name) == "its entry-point name is not lower_snake_case"


def test_of_two_distributions_with_one_name_neither_is_imported(install: Install):
    for distribution in ("first", "second"):
        install("acme", "raise SystemExit('imported')", distribution=distribution)
    install("good", good_source("good"))
    host = installed_host()
    assert reason(host) == "first and second share the name 'acme'"
    assert served(host) == ["work"]


def test_nobody_takes_the_name_of_one_of_the_hosts_own_plugins(install: Install):
    install("search", "raise SystemExit('imported')", distribution="acme-tools")
    host = Host(LoadedSettings(Settings(state_dir=Path("state")), None))
    host.load()
    assert reason(host, "search of acme-tools") == (
        "standards-mcp and acme-tools share the name 'search'"
    )
    assert host.manager.records["search"].status is Status.REGISTERED
    assert "find_relevant_standards" in served(host)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("METADATA", None),
        ("METADATA", "Metadata-Version: 2.1\n"),
        ("entry_points.txt", "[other]\nthis is not one\n"),
        ("entry_points.txt", b"[standards_mcp.plugins]\nx = \xff\n"),
        ("entry_points.txt", "[[[\nno ini"),
    ],
)
def test_a_distribution_with_broken_metadata_leaves_the_others_alone(
    install: Install, caplog: pytest.LogCaptureFixture, file: str, content: str | bytes | None
):
    install("good", good_source("good"))
    broken = install("acme", "").with_name("standards_mcp_acme-1.0.dist-info") / file
    broken.unlink()
    if content is not None:
        broken.write_bytes(content if isinstance(content, bytes) else content.encode())
    host = installed_host()
    assert served(host) == ["work"]
    if file == "METADATA":
        assert reason(host).startswith("its metadata cannot be read: ")
    elif isinstance(content, bytes):
        assert "standards_mcp_acme-1.0.dist-info is ignored" in caplog.text


@pytest.mark.parametrize(
    ("requires", "why"),
    [
        ([], ""),
        (["standards-mcp"], ""),
        (["standards-mcp>=0.1,<1"], ""),
        (["other>=99", "not a requirement!!"], ""),
        (["standards-mcp>=99"], "it needs standards-mcp>=99, this is 0.1.0"),
        (["Standards_MCP <0.1"], "it needs standards-mcp<0.1, this is 0.1.0"),
        (["standards-mcp[all]==7"], "it needs standards-mcp==7, this is 0.1.0"),
        (["standards-mcp>=99; python_version < '3'"], ""),
        (["standards-mcp>=99; extra == 'later'"], ""),
        (["standards-mcp>=99; python_version > '3'"], "it needs standards-mcp>=99, this is 0.1.0"),
    ],
)
def test_what_a_plugin_requires_of_the_host_is_read(requires: list[str], why: str):
    assert incompatibility(requires, "0.1.0") == why


_RELEASES = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(
    lambda parts: ".".join(map(str, parts))
)
_BOUNDS = st.tuples(st.sampled_from(["<", ">=", ">", "==", "~="]), _RELEASES).map("".join)


@given(
    host=_RELEASES | _RELEASES.map("{}rc1".format),
    extra=st.sampled_from(["", "[all]", "[all,http]"]),
    bounds=st.lists(_BOUNDS, max_size=3),
)
def test_requirements_are_read_as_packaging_reads_them(host: str, extra: str, bounds: list[str]):
    text = f"standards-mcp{extra}{','.join(bounds)}"
    try:
        is_met = Requirement(text).specifier.contains(host, prereleases=True)
    except InvalidRequirement:
        is_met = True
    assert bool(incompatibility([text], host)) is not is_met


def test_a_start_reads_common_requirements_without_packaging():
    code = """
import sys
from standards_mcp.loading.discovery import incompatibility
assert incompatibility(["standards-mcp[all]<0.2,>=0.1"], "0.1.0") == ""
print("packaging" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


# Which plugins are enabled


def test_what_variables_set_is_masked_also_where_the_import_quotes_it(
    install: Install, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__ACME__ANSWER", "opensesame")
    install(
        "acme",
        "import os; raise RuntimeError(os.environ['STANDARDS_MCP_PLUGINS__ACME__ANSWER'])",
    )
    host = Host(load_settings())
    host.load()
    assert reason(host) == "RuntimeError: ***"


def test_a_disabled_plugin_is_never_imported(install: Install, capfd: pytest.CaptureFixture[str]):
    path = install("acme", "print('imported')")
    host = installed_host(plugins={"acme": {"enabled": False}})
    record = host.manager.records["acme"]
    assert (record.status, record.reason) == (Status.DISABLED, "[plugins.acme] enabled = false")
    assert path.stem not in sys.modules
    assert capfd.readouterr() == ("", "")


def test_without_autoload_only_what_is_enabled_loads(make_host: MakeHost):
    plugins = {"a": with_tools(tool("a")), "b": with_tools(tool("b")), "c": with_tools(tool("c"))}
    table = {"b": {"enabled": True}, "c": {"enabled": False}}
    host = make_host(plugins, autoload=False, plugins=table)
    assert statuses(host) == {"a": "disabled", "b": "registered", "c": "disabled"}
    assert host.manager.records["a"].reason == "autoload = false; set [plugins.a] enabled = true"
    assert host.manager.records["c"].reason == "[plugins.c] enabled = false"


@pytest.mark.parametrize("problem", ["twins", "name", "requirement"])
def test_disabling_a_plugin_with_a_problem_is_enough_under_strict(problem: str):
    name = "Bad-Name" if problem == "name" else "acme"
    requires = ("standards-mcp>=99",) if problem == "requirement" else ()
    installed = [
        PluginInfo(name=name, load=pytest.fail, distribution=distribution, requires=requires)
        for distribution in (("x", "y") if problem == "twins" else ("x",))
    ]
    loaded = LoadedSettings(Settings(strict=True, plugins={name: {"enabled": False}}), None)
    assert statuses(Host(loaded, installed=installed)) == {name: "disabled"}


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("serch", "no such plugin is installed; did you mean 'search'?"),
        ("zzz", "no such plugin is installed; installed: lookup, search"),
    ],
)
def test_a_table_of_a_plugin_that_is_not_installed_is_a_mistake(name: str, ending: str):
    Path("standards-mcp.toml").write_text(f"[plugins.{name}]\nenabled = false\n", encoding="utf-8")
    installed = [PluginInfo(name=item, load=pytest.fail) for item in ("search", "lookup")]
    with pytest.raises(ConfigError) as caught:
        Host(load_settings(), installed=installed)
    assert str(caught.value) == f"standards-mcp.toml:1: [plugins.{name}]: {ending}"


def test_a_table_of_a_plugin_of_this_project_tells_how_to_install_it():
    Path("standards-mcp.toml").write_text("[plugins.memory]\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        Host(load_settings(), installed=[])
    how = install_command("standards-mcp-memory")
    assert str(caught.value).endswith(f"[plugins.memory]: no such plugin is installed; run `{how}`")


# Import and construction

BROKEN = {
    "raises": ("1 / 0", "ZeroDivisionError: division by zero"),
    "syntax": ("def", "SyntaxError: invalid syntax"),
    "exits": ("import sys; sys.exit(3)", "it called sys.exit(3)"),
    "exits_with_text": ("raise SystemExit('bye')", "it called sys.exit('bye')"),
    "cancels": ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
    "panics": ("class Panic(BaseException): pass\nraise Panic('native')", "Panic: native"),
    "mute": (
        "class Mute(Exception):\n    def __str__(self): raise ValueError\nraise Mute",
        "Mute",
    ),
    "lacks": ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
    "empty": ("", "has no attribute 'EmptyPlugin'"),
    "function": ("def FunctionPlugin(*args): ...", "not a subclass of Plugin"),
    "other": ("class OtherPlugin: ...", "not a subclass of Plugin"),
    "instance": (
        "from standards_mcp import Plugin\nInstancePlugin = object.__new__(Plugin)",
        "not a subclass of Plugin",
    ),
    "drops": ("import sys; sys.stdout = None\nraise OSError('x')", "OSError: x"),
}


def test_a_dozen_plugins_that_break_at_import_leave_the_good_one_serving(install: Install):
    for name, (source, _) in BROKEN.items():
        install(name, source)
    install("good", good_source("good"))
    host = installed_host()
    assert served(host) == ["work"]
    for name, (_, expected) in BROKEN.items():
        assert expected in reason(host, name)


def test_ctrl_c_during_an_import_ends_the_host(install: Install):
    install("acme", "import signal; signal.default_int_handler(signal.SIGINT, None)")
    with pytest.raises(KeyboardInterrupt):
        installed_host()


class AcmeSettings(PluginSettings):
    limit: int = Field(5, ge=1)
    key: SecretStr | None = None
    nested: dict[str, int] = Field(default_factory=dict)

    @field_validator("nested")
    @classmethod
    def _small(cls, value: dict[str, int]) -> dict[str, int]:
        if len(value) > 2:
            raise ValueError("Too\nmany")
        return value


class Acme(Plugin[AcmeSettings]):
    settings_type = AcmeSettings


def test_a_plugin_gets_its_validated_settings_and_its_place(make_host: MakeHost, tmp_path: Path):
    host = make_host({"acme": Acme}, plugins={"acme": {"limit": "7", "required": True}})
    plugin = host.manager.records["acme"].plugin
    assert plugin is not None
    assert plugin.settings == AcmeSettings(limit=7)
    assert plugin.context == PluginContext(
        name="acme", state_dir=tmp_path / "state" / "plugins" / "acme"
    )
    assert not plugin.context.state_dir.exists()


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("limti = 3", "[plugins.acme] limti: unknown key; did you mean 'limit'?"),
        ("enabeld = true", "[plugins.acme] enabeld: unknown key; did you mean 'enabled'?"),
        (
            "zzz = true",
            "[plugins.acme] zzz: unknown key; known keys: enabled, env, isolate, key, limit,",
        ),
        ("limit = 0", "[plugins.acme] limit: input should be greater than or equal to 1"),
        ("nested = {a=1,b=2,c=3}", "[plugins.acme] nested: too many"),
        ("nested = {a='x'}", "[plugins.acme.nested] a: input should be a whole number"),
        ("nested = 5", "[plugins.acme] nested: input should be a table"),
    ],
)
def test_a_mistake_in_its_table_fails_the_plugin_and_names_the_file(table: str, expected: str):
    Path("standards-mcp.toml").write_text(f"[plugins.acme]\n{table}\n", encoding="utf-8")
    host = Host(load_settings(), installed=[PluginInfo(name="acme", load=lambda: Acme)])
    host.load()
    assert reason(host).startswith(f"standards-mcp.toml:2: {expected}")


@pytest.mark.parametrize("key", ["enabled", "required"])
def test_a_plugin_cannot_have_a_setting_that_is_the_hosts(make_host: MakeHost, key: str):
    model = type("S", (PluginSettings,), {"__annotations__": {key: bool}, key: False})
    host = make_host({"acme": type("P", (Plugin,), {"settings_type": model})})
    assert reason(host) == f"its setting '{key}' is reserved for the host"


class Raises(Acme):
    def __init__(self, settings: AcmeSettings, context: PluginContext) -> None:
        super().__init__(settings, context)
        secret = settings.key.get_secret_value() if settings.key else ""
        raise RuntimeError(f"refused\nfor {secret!r}")


class NoSettings(Plugin[Any]):
    settings_type = None  # type: ignore[assignment]


class TooManyArguments(Plugin[Any]):
    def __init__(self, settings: Any, context: Any, more: Any) -> None: ...


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (Raises, "RuntimeError: refused for ''"),
        (NoSettings, "its settings_type is not a subclass of PluginSettings"),
        (TooManyArguments, "TypeError: "),
    ],
)
def test_a_plugin_that_cannot_be_built_fails_alone(
    make_host: MakeHost, plugin: PluginType, expected: str
):
    host = make_host({"acme": plugin, "good": with_tools(tool())})
    assert reason(host).startswith(expected)
    assert served(host) == ["work"]


def test_no_secret_is_in_a_reason_or_in_the_log(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    host = make_host({"acme": Raises}, plugins={"acme": {"key": "hush"}})
    assert reason(host) == "RuntimeError: refused for '***'"
    make_host({"acme": Acme}, plugins={"acme": {"key": "hush", "limit": 0}})
    told = [str(vars(record)) for record in caplog.records]
    assert "Raises" in str(told) or "refused" in str(told)
    assert not [line for line in told if "hush" in line]


class Quoting(PluginSettings):
    key: SecretStr

    @field_validator("key", mode="before")
    @classmethod
    def _check(cls, value: str) -> str:
        raise ValueError(f"{value} is too short")


class Crashing(Quoting):
    @field_validator("key", mode="before")
    @classmethod
    def _check(cls, value: str) -> str:
        raise LookupError(f"no {value} here")


@pytest.mark.parametrize(
    ("model", "told"), [(Quoting, "key: *** is too short"), (Crashing, "LookupError: no *** here")]
)
@pytest.mark.parametrize("secret", ["Hush", "hu sh\nhush", 424242])
def test_a_secret_that_a_validator_quotes_is_masked_everywhere(
    make_host: MakeHost,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    model: type[PluginSettings],
    told: str,
    secret: object,
):
    class Careful(Plugin[Any]):
        settings_type = model

    caplog.set_level(logging.DEBUG)
    host = make_host({"acme": Careful}, plugins={"acme": {"key": secret}})
    assert reason(host).endswith(told)
    (remembered,) = (tmp_path / "state").glob("*.json")
    line = " ".join(str(secret).split()).lower()
    for text in (remembered.read_text(), *(str(vars(record)) for record in caplog.records)):
        assert line not in " ".join(text.split()).lower()
    with pytest.raises(PluginError) as caught:
        make_host({"acme": Careful}, plugins={"acme": {"key": secret, "required": True}})
    assert told in str(caught.value)


# Hooks


def test_an_unknown_hook_fails_with_the_nearest_name(make_host: MakeHost):
    plugins = {
        "acme": with_hook("register_tool", list),
        "beta": with_hook("register_tool", list),
        "zzz": with_hook("zzzzzz", list),
        "good": with_tools(tool()),
    }
    host = make_host(plugins)
    hint = "it implements an unknown hook 'register_tool'; did you mean 'register_tools'?"
    assert reason(host) == reason(host, "beta") == hint
    assert reason(host, "zzz") == "it implements an unknown hook 'zzzzzz'"
    assert served(host) == ["work"]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: sys.exit(1), "it called sys.exit(1)"),
        (lambda: 5, "register_tools returned a int; return a list"),
        (lambda: [5], "register_tools returned a int"),
        (lambda: "text", "register_tools returned a str"),
        (lambda: [work], "register_tools returned a function"),
        (lambda: (tool(f"t{1 // number}") for number in (1, 0)), "ZeroDivisionError"),
    ],
)
def test_register_tools_that_misbehaves_fails_the_whole_plugin(
    make_host: MakeHost, returned: Callable[[], object], expected: str
):
    host = make_host({"acme": with_hook("register_tools", returned), "good": with_tools(tool())})
    assert reason(host).startswith(expected)
    assert served(host) == ["work"]


# Tools


def _no_docstring() -> str: ...


def _untyped(a) -> str:
    """Do it."""


class _Tree(PluginSettings):
    children: list[_Tree]


def _makes_tree() -> _Tree:
    """Do it."""


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"name": ""}, "'' is not a valid tool name; use letters, digits, '_', '-' and '.'"),
        ({"name": "two words"}, "'two words' is not a valid tool name"),
        ({"name": "line\n"}, "'line\\n' is not a valid tool name"),
        ({"name": "naïve"}, "'naïve' is not a valid tool name"),
        ({"name": "a..b"}, "'a..b' is not a valid tool name"),
        ({"name": "a" * 65}, "is not a valid tool name; use letters, digits"),
        ({"name": 5}, "5 is not a valid tool name"),
        ({"function": _no_docstring}, "tool 'bad' has no description"),
        ({"function": _no_docstring, "description": " \n"}, "tool 'bad' has no description"),
        ({"description": 5}, "tool 'bad': its title and its description must be text"),
        ({"title": 5}, "tool 'bad': its title and its description must be text"),
        ({"read_only": "no"}, "tool 'bad': its read_only must be true or false"),
        ({"timeout": 0}, "tool 'bad': its timeout must be a positive number of seconds"),
        ({"timeout": float("nan")}, "tool 'bad': its timeout must be a positive number"),
        ({"timeout": True}, "tool 'bad': its timeout must be a positive number of seconds"),
        ({"timeout": "5"}, "tool 'bad': its timeout must be a positive number of seconds"),
        ({"cache_ttl": True}, "tool 'bad': its cache_ttl must be a number of seconds"),
        ({"cache_ttl": 5}, "tool 'bad': its cache_ttl needs read_only = True"),
        ({"cache_scope": "all"}, "tool 'bad': its cache_scope must be 'private' or 'public'"),
        ({"rate_limit": "60 a minute"}, "tool 'bad': its rate_limit must be a text such as"),
        ({"max_output_tokens": 0}, "tool 'bad': its max_output_tokens must be a positive whole"),
        ({"meta": {"a": object()}}, "tool 'bad': its meta is not a JSON object"),
        ({"meta": None}, "tool 'bad': its meta is not a JSON object"),
        ({"function": 5, "description": "x"}, "tool 'bad': its function is not a function"),
        ({"function": _untyped}, "tool 'bad': its argument 'a' has no annotation"),
        ({"function": _makes_tree}, "tool 'bad': its schema refers to itself"),
    ],
)
def test_a_wrong_tool_fails_the_whole_plugin_with_the_reason(
    make_host: MakeHost, wrong: dict[str, Any], expected: str
):
    plugins = {"acme": with_tools(tool("fine"), tool(**{"name": "bad"} | wrong))}
    host = make_host(plugins | {"good": with_tools(tool())})
    assert expected in reason(host)
    assert served(host) == ["work"]


@pytest.mark.parametrize("name", ["a", "A-b_c.d-e", "a.1", "a" * 64])
def test_a_tool_may_have_any_portable_name(make_host: MakeHost, name: str):
    host = make_host({"acme": with_tools(tool(name))})
    assert served(host) == [name.replace(".", "_")]


@pytest.mark.parametrize(
    ("first", "second", "settings", "clash"),
    [
        ("work", "work", {}, True),
        ("a.b", "a_b", {}, True),
        ("a.b_c", "a_b.c", {}, True),
        ("a.b", "a_b", {"tool_names": "declared"}, True),  # portable names may be asked for later
        ("work", "Work", {}, False),
        ("work", "work", {"tools": {"disable": ["work"]}}, True),
    ],
)
def test_of_two_plugins_with_one_tool_name_the_later_fails(
    make_host: MakeHost, first: str, second: str, settings: dict[str, Any], clash: bool
):
    host = make_host(
        {"b": with_tools(tool("own"), tool(second)), "a": with_tools(tool(first))}, **settings
    )
    if clash:
        assert reason(host, "b") == f"tool '{second}' already belongs to plugin 'a'"
        assert [item.tool.name for item in host.manager.contributions.tools] == [first]
    else:
        assert statuses(host) == {"a": "registered", "b": "registered"}


@pytest.mark.parametrize("names", [("x", "x"), ("a.b", "a_b")])
def test_a_plugin_with_one_tool_name_twice_fails(make_host: MakeHost, names: tuple[str, str]):
    host = make_host({"acme": with_tools(*map(tool, names))})
    assert reason(host) == f"it declares tool '{names[1]}' twice"


def test_the_description_is_the_authors_or_the_docstring_without_its_indentation(
    make_host: MakeHost,
):
    def documented(a: int) -> str:
        """Do it.

        More of it:
            indented
        """

    tools = [
        tool("own", function=documented, description="  Mine. "),
        tool("doc", function=documented),
        tool("partial", function=functools.partial(documented, 1)),
    ]
    host = make_host({"acme": with_tools(*tools)})
    text = "Do it.\n\nMore of it:\n    indented"
    assert [item.description for item in host.visible().visible_tools] == ["Mine.", text, text]


# Filters


def search(text: str, state: str = "", filter: Any = None) -> str:  # noqa: A002
    """Search."""
    return f"{text} {state} {filter}"


SEARCH = tool("search", function=search, accepts_filters=True)


def a_filter(name: str = "region", **fields: Any) -> Filter:
    usual = {"name": name, "annotation": str, "description": "Where"}
    return Filter(**usual | {"to_expression": lambda value: {name: value}} | fields)


def with_filters(*filters: object) -> PluginType:
    return with_hook("register_filters", lambda: filters)


def arguments_of(host: Host, name: str = "search") -> list[str]:
    (item,) = (item for item in host.manager.contributions.tools if item.tool.name == name)
    return list(item.arguments.schema["properties"])


def test_filters_of_all_plugins_reach_every_tool_that_accepts_them(make_host: MakeHost):
    plugins = {
        "a": with_filters(a_filter("one"), a_filter("two")),
        "m": with_tools(SEARCH, tool("work")),
        "z": with_filters(a_filter("three")),
    }
    host = make_host(plugins)
    assert arguments_of(host) == ["text", "state", "one", "two", "three"]
    assert arguments_of(host, "work") == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((5,), "register_filters returned a int"),
        ((a_filter("Region"),), "'Region' is not a valid filter name"),
        ((a_filter("a\n"),), "'a\\n' is not a valid filter name"),
        ((a_filter(description=" "),), "filter 'region' has no description"),
        ((a_filter(description=None),), "AttributeError"),
        ((a_filter(to_expression=5),), "filter 'region': its to_expression is not a function"),
        ((a_filter(), a_filter()), "it declares filter 'region' twice"),
        ((a_filter("state"),), "filter 'state' has the name of one of its arguments"),
        ((a_filter(annotation=object()),), "filter 'region': its annotation is not a type"),
        ((a_filter(annotation=_Tree),), "refers to itself"),
        ((a_filter(annotation=tuple[int, int]),), "an array without 'items'"),
        ((a_filter(description="x" * 40_000),), "larger than 32 KiB"),
    ],
)
def test_a_wrong_filter_fails_its_own_plugin_and_not_the_tools_that_take_it(
    make_host: MakeHost, filters: tuple[object, ...], expected: str
):
    host = make_host({"acme": with_filters(*filters), "main": with_tools(SEARCH)})
    assert expected in reason(host)
    assert arguments_of(host) == ["text", "state"]


async def called_with_region(make_host: MakeHost, **fields: Any) -> Any:
    host = make_host({"acme": with_filters(a_filter(**fields)), "main": with_tools(SEARCH)})
    return await host.call_tool("search", {"text": "x", "region": "north"})


def _refuse(_: object) -> None:
    raise InvalidInputError("no such region; use south")


def _crash(_: object) -> None:
    raise ValueError("a typo in the filter")


async def _look_up(value: str) -> Any:
    await anyio.lowlevel.checkpoint()
    return {"state": f"{value} 2"}


async def _look_up_in_vain(_: object) -> None:
    raise ApiError("the table of regions is gone")


@pytest.mark.anyio
async def test_a_filter_may_look_up_what_its_value_means(make_host: MakeHost):
    result = await called_with_region(make_host, to_expression=_look_up)
    assert result.text == "x  {'state': 'north 2'}"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("to_expression", "error_type", "message"),
    [
        (_refuse, "invalid_input", "region: no such region; use south (plugin 'acme')"),
        (_look_up_in_vain, "api_error", "the table of regions is gone"),
        (lambda _: anyio.sleep(60), "timeout", "search did not answer within 0.05 s. Try again"),
    ],
    ids=["refuses a value", "fails to look it up", "never ends"],
)
async def test_the_error_of_a_filter_is_that_of_the_call(
    make_host: MakeHost, to_expression: Any, error_type: str, message: str
):
    tools = {"timeout": 0.05} if error_type == "timeout" else {}
    plugins = {"acme": with_filters(a_filter(to_expression=to_expression))}
    host = make_host(plugins | {"main": with_tools(SEARCH)}, tools=tools)
    result = await host.call_tool("search", {"text": "x", "region": "north"})
    assert result.structured["error_type"] == error_type
    assert result.structured["message"].startswith(message)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fields", "logged"),
    [
        ({"to_expression": _crash}, "filter 'region': ValueError: a typo in the filter"),
        ({"to_expression": lambda _: 5}, "filter 'region': FilterError"),
        ({"to_expression": lambda _: {"subject": {"$is": 1}}}, "filter 'region': FilterError"),
        ({"annotation": Annotated[str, AfterValidator({}.__getitem__)]}, "KeyError: 'north'"),
    ],
)
async def test_a_filter_that_crashes_is_its_own_plugins_fault(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture, fields: dict[str, Any], logged: str
):
    result = await called_with_region(make_host, **fields)
    assert result.structured["error_type"] == "internal_error"
    assert "search (in plugin 'acme') failed with an internal error (id " in result.text
    (crash,) = (record for record in caplog.records if record.getMessage() == "tool crashed")
    assert vars(crash)["plugin"] == "acme"
    assert crash.exc_info is not None
    assert logged in str(crash.exc_info[1])


def test_of_two_plugins_with_one_filter_name_the_later_fails(make_host: MakeHost):
    host = make_host({"a": with_filters(a_filter()), "b": with_filters(a_filter())})
    assert reason(host, "b") == "filter 'region' already belongs to plugin 'a'"
    assert len(host.manager.contributions.filters) == 1


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_a_plugin_that_fails_takes_its_filters_along(make_host: MakeHost, name: str):
    class Both(Plugin[Any]):
        @hookimpl
        def register_filters(self) -> list[Filter]:
            return [a_filter()]

        @hookimpl
        def register_commands(self) -> list[int]:
            return [5]

    host = make_host({name: Both, "main": with_tools(SEARCH)})
    assert arguments_of(host) == ["text", "state", "region"]
    host.manager.commands()
    assert reason(host, name) == "register_commands returned a int"
    assert arguments_of(host) == ["text", "state"]
    assert host.manager.contributions.filters == ()


# Commands


def with_commands(*commands: object) -> PluginType:
    return with_hook("register_commands", lambda: commands)


def test_a_single_command_with_the_plugins_name_is_the_command(make_host: MakeHost):
    command = click.Command("acme")
    assert make_host({"acme": with_commands(command)}).manager.commands() == {"acme": command}


@pytest.mark.parametrize("names", [("load",), ("acme", "load"), ("load", "save")])
def test_other_commands_stand_below_the_plugins_name(make_host: MakeHost, names: tuple[str, ...]):
    host = make_host({"acme": with_commands(*map(click.Command, names))})
    group = host.manager.commands()["acme"]
    assert isinstance(group, click.Group)
    assert tuple(group.commands) == names


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ((work,), "register_commands returned a function"),
        ((click.Command("x"), click.Command("x")), "it declares command 'x' twice"),
    ],
)
def test_a_wrong_command_fails_the_whole_plugin(
    make_host: MakeHost, commands: tuple[object, ...], expected: str
):
    host = make_host({"acme": with_commands(*commands), "b": with_commands(click.Command("b"))})
    assert list(host.manager.commands()) == ["b"]
    assert reason(host) == expected


def test_a_plugin_adds_no_commands_under_the_name_of_one_of_the_hosts_own(make_host: MakeHost):
    host = make_host({"serve": with_commands(click.Command("serve"))})
    assert host.manager.commands(taken={"serve"}) == {}
    assert reason(host, "serve").startswith("`standards-mcp serve` is the host's own")


# Failures that matter


@pytest.mark.parametrize(
    "settings", [{"strict": True}, {"plugins": {"acme": {"required": True}}}], ids=str
)
@pytest.mark.parametrize(
    "broken",
    [
        5,
        with_tools(5),
        with_hook("unknown", list),
        with_filters(5),
        with_hook("register_tools", lambda: sys.exit(1)),
        Raises,
    ],
)
def test_a_failure_that_matters_is_fatal_with_the_same_line(
    make_host: MakeHost, broken: object, settings: dict[str, Any]
):
    told = reason(make_host({"acme": broken}))
    with pytest.raises(PluginError) as caught:
        make_host({"acme": broken}, **settings)
    assert (caught.value.plugin, caught.value.reason) == ("acme", told)
    assert str(caught.value) == f"plugin 'acme' failed: {told}"


def test_a_failed_plugin_is_logged_once_with_its_reason(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    make_host({"acme": 5})
    (record,) = caplog.records
    why = "its entry point is not a subclass of Plugin"
    assert record.getMessage() == f"plugin 'acme' failed: {why}"
    assert vars(record)["plugin"] == "acme"
    assert record.exc_info is None


def test_a_hook_without_its_mark_is_noticed(make_host: MakeHost):
    class Forgetful(Plugin[Any]):
        def register_tools(self) -> list[Tool]:
            return []

    record = make_host({"forgetful": Forgetful}).manager.records["forgetful"]
    assert record.reason == "its method 'register_tools' is not marked with @hookimpl"
