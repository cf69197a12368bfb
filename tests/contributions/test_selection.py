"""What clients are offered: names, texts, arguments and rules, as the configuration makes them."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Annotated, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, Field
from support.marks import WARNING

from standards_mcp import InvalidInputError, Plugin, Tool, hookimpl
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.base import Limits
from standards_mcp.contributions.selection import Contributions, Selection, select
from standards_mcp.contributions.tools import RegisteredTool, read_tool
from standards_mcp.errors import UnknownToolError
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio
MakeHost = Callable[..., Host]

NAMES = ("find", "web.get", "web.put", "memory.all")
GLOBS = ("*", "find", "web.*", "web_*", "*.put", "memory.all", "nothing", "[fw]*")
globs = st.lists(st.sampled_from(GLOBS), max_size=3)
tables = st.fixed_dictionaries(
    {}, optional={"enable": globs, "disable": globs, "read_only": st.booleans()}
)


def find(
    text: Annotated[str, Field(description="What to find.")], top: int = 5, place: str = "here"
) -> dict[str, Any]:
    return {"text": text, "top": top, "place": place}


def registered(plugin: str, name: str, **fields: Any) -> RegisteredTool:
    return read_tool(plugin, Tool(name=name, function=find, description="Find it.", **fields))


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("write an even number")
    return number


def _broken(text: str) -> str:
    raise RuntimeError(f"not today: {text}")


ACME_FIND = Tool(name="acme.find", description="Find it.", function=find)
ACME = type("AcmePlugin", (Plugin,), {"register_tools": hookimpl(lambda _: [ACME_FIND])})


def offered(*items: RegisteredTool, **settings: Any) -> Selection:
    return select(
        Contributions(tuple(items or [registered("acme", "acme.find")])), Settings(**settings)
    )


def overridden(**override: Any) -> Selection:
    return offered(tools={"overrides": {"acme.find": override}})


def hidden_reason(selection: Selection) -> str:
    (item,) = selection.tools
    return item.hidden_reason


# Selection


def model(
    name: str, read_only: bool, plugin: str, tools: dict[str, Any], profile: dict[str, Any] | None
) -> bool:
    """The rules in ten lines: every table must let a tool pass."""

    def matches(names: tuple[str, ...], patterns: list[str]) -> bool:
        return any(fnmatchcase(each, pattern) for each in names for pattern in patterns)

    def passes(table: dict[str, Any]) -> bool:
        names = (name, name.replace(".", "_"))
        if table.get("read_only") and not read_only:
            return False
        return matches(names, table.get("enable", ["*"])) and not matches(
            names, table.get("disable", [])
        )

    of_profile = profile or {}
    return (
        matches((plugin,), of_profile.get("plugins", ["*"]))
        and passes(tools)
        and passes(of_profile)
    )


plugins = st.lists(st.sampled_from(["*", "a*", "b"]))


@given(
    tools=tables,
    profile=st.none()
    | st.builds(dict.__or__, tables, st.fixed_dictionaries({}, optional={"plugins": plugins})),
    read_only=st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_a_tool_is_served_when_every_rule_lets_it_pass(
    tools: dict[str, Any], profile: dict[str, Any] | None, read_only: list[bool]
):
    every = list(zip(("acme", "acme", "b", "b"), NAMES, read_only, strict=True))
    items = [registered(owner, name, read_only=flag) for owner, name, flag in every]
    chosen = {"profile": "p", "profiles": {"p": profile}} if profile is not None else {}
    selection = offered(*items, tools=tools, **chosen)
    assert [item.tool.name for item in selection.visible_tools] == [
        name for owner, name, flag in every if model(name, flag, owner, tools, profile)
    ]


def profile(**rules: Any) -> dict[str, Any]:
    return {"profile": "p", "profiles": {"p": rules}}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"tools": {"disable": ["acme_*"]}}, "[tools] disable has 'acme_*'"),
        ({"tools": {"enable": ["ACME.*"]}}, "[tools] enable has no pattern for it"),
        ({"tools": {"read_only": True}}, "it is not read-only, and [tools] read_only = true"),
        (profile(disable=["*"]), "[profiles.p] disable has '*'"),
        (profile(plugins=["search"]), "[profiles.p] plugins has no pattern for 'acme'"),
        ({"plugins": {"acme": {"enabled": False}}}, "[plugins.acme] enabled = false"),
    ],
)
def test_a_refusal_names_the_key_to_blame(settings: dict[str, Any], reason: str):
    assert hidden_reason(offered(**settings)) == reason


NO_TOOL = "matches no tool; see `standards-mcp tools`"
NEAR = "matches no tool; did you mean 'acme.find'?"


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"tools": {"disable": ["acme.fnd"]}}, f"[tools] disable: 'acme.fnd' {NEAR}"),
        (profile(enable=["acme_find", "zzz"]), f"[profiles.p] enable: 'zzz' {NO_TOOL}"),
        (
            {"strict": True, "profiles": {"p": {"disable": ["zzz"]}}},  # not in force
            f"[profiles.p] disable: 'zzz' {NO_TOOL}",
        ),
        (
            {"prompts": {"disable": ["aling"]}},
            "[prompts] disable: 'aling' matches no prompt; see `standards-mcp prompts`",
        ),
        (
            {"tools": {"overrides": {"acme.fin": {"title": "x"}}}},
            f"[tools.overrides] \"acme.fin\": 'acme.fin' {NEAR}",
        ),
    ],
)
def test_what_names_no_tool_is_told(make_host: MakeHost, settings: dict[str, Any], warning: str):
    assert make_host({"acme": ACME}, **settings).warnings() == [warning]


# Overrides


def test_a_renamed_tool_answers_to_all_its_names():
    selection = overridden(name="search_docs")
    (item,) = selection.visible_tools
    assert item.published == "search_docs"
    for name in ("search_docs", "acme.find", "acme_find"):
        assert selection.find(name) is item
    assert selection.find("other") is None


@pytest.mark.parametrize("pattern", ["acme.find", "acme_find", "docs", "acme_*"])
@pytest.mark.parametrize("settings", [{}, {"tool_names": "declared"}])
def test_rules_apply_to_old_and_new_names(settings: dict[str, Any], pattern: str):
    override = {"overrides": {"acme.find": {"name": "docs"}}}
    assert offered(tools={"disable": [pattern], **override}, **settings).visible_tools == []
    narrow = {"profile": "p", "profiles": {"p": {"disable": [pattern]}}}
    assert offered(tools=override, **narrow, **settings).visible_tools == []


def test_a_tool_that_is_overridden_under_two_names_is_not_served():
    overrides = {"acme.find": {"name": "x"}, "acme_find": {"arguments": {"top": {"fixed": 1}}}}
    selection = offered(tools={"overrides": overrides})
    assert hidden_reason(selection) == (
        "[tools.overrides] \"acme.find\": 'acme_find' overrides the same tool; keep one of the two"
    )


def test_texts_are_replaced():
    (item,) = overridden(
        title="Mine", description="Find mine.", arguments={"text": {"description": "Words."}}
    ).visible_tools
    assert (item.title, item.description) == ("Mine", "Find mine.")
    assert item.arguments.schema["properties"]["text"]["description"] == "Words."


@pytest.mark.parametrize("description", ["Find mine.", f"{WARNING} Find mine."])
def test_the_warning_about_untrusted_text_stays_once_when_an_admin_replaces_the_description(
    description: str,
):
    tool = registered("acme", "find", returns_untrusted_text=True)
    for settings in ({}, {"overrides": {"find": {"description": description}}}):
        contributions = Contributions(tools=(tool,))
        (item,) = select(contributions, Settings(tools=settings)).visible_tools
        assert item.description.count(WARNING) == 1
        assert item.definition["description"] == item.description
    assert "Find mine." in item.description


def test_a_default_is_taken_where_the_client_leaves_an_argument_out():
    (item,) = overridden(
        arguments={"text": {"default": "cats"}, "top": {"default": 3}}
    ).visible_tools
    assert "text" not in item.arguments.schema["required"]
    assert item.arguments.schema["properties"]["top"]["default"] == 3
    assert anyio.run(item.arguments.validate, {}) == {"text": "cats", "top": 3, "place": "here"}
    assert anyio.run(item.arguments.validate, {"text": "dogs", "top": None}) == {
        "text": "dogs",
        "top": 3,
        "place": "here",
    }


def test_a_fixed_argument_is_hidden_and_cannot_be_given():
    (item,) = overridden(arguments={"place": {"fixed": "there"}}).visible_tools
    assert "place" not in item.arguments.schema["properties"]
    assert anyio.run(item.arguments.validate, {"text": "x"})["place"] == "there"
    with pytest.raises(InvalidInputError, match="place: unknown argument"):
        anyio.run(item.arguments.validate, {"text": "x", "place": "elsewhere"})


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        ({"size": {"fixed": 3}}, ".arguments.size] fixed: write an even number"),
        ({"size": {"default": 3}}, ".arguments.size] default: write an even number"),
        ({"size": {"fixed": 4}}, ""),
        ({"name": {"fixed": "x"}}, ".arguments.name] fixed: RuntimeError: not today: x"),
    ],
)
def test_a_value_is_checked_as_the_tool_checks_it(override: dict[str, Any], reason: str):
    def grow(
        text: str,
        more: int,
        size: Annotated[int, AfterValidator(_even)] = 2,
        name: Annotated[str, AfterValidator(_broken)] = "",
    ) -> str:
        return f"{text}{more}{size}{name}"

    item = read_tool("acme", Tool(name="grow", function=grow, description="Grow."))
    found = hidden_reason(offered(item, tools={"overrides": {"grow": {"arguments": override}}}))
    assert found.endswith(reason)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(
    ("override", "reason"),
    [
        (
            {"arguments": {"plaec": {"fixed": "x"}}},
            ".arguments] plaec: the tool has no such argument; did you mean 'place'?",
        ),
        (
            {"arguments": {"top": {"default": "x"}}},
            ".arguments.top] default: 'x' is not of type 'integer'",
        ),
        ({"cache_ttl": 60}, "] cache_ttl: it needs a read-only tool"),
    ],
)
def test_a_tool_whose_override_cannot_be_applied_is_not_served(
    override: dict[str, Any], reason: str
):
    assert hidden_reason(overridden(**override)) == f'[tools.overrides."acme.find"{reason}'


def test_a_new_name_that_another_tool_has_is_refused():
    items = registered("acme", "acme.find"), registered("b", "b.find")
    selection = offered(*items, tools={"overrides": {"acme.find": {"name": "b_find"}}})
    assert [item.hidden_reason for item in selection.tools] == [
        "[tools.overrides.\"acme.find\"] name: 'b_find' belongs to another tool",
        "",
    ]
    same = {"acme.find": {"name": "x"}, "b.find": {"name": "x"}}
    selection = offered(*items, tools={"overrides": same})
    assert [bool(item.hidden_reason) for item in selection.tools] == [False, True]


def test_the_limits_of_a_tool_are_the_admins_then_its_authors_then_those_of_all():
    def limits(**tools: Any) -> tuple[Any, ...]:
        item = registered("acme", "acme.find", timeout=7, read_only=True, cache_ttl=60)
        (found,) = offered(item, tools=tools).tools
        of = found.limits
        return of.timeout, of.rate_limits, of.cache_ttl, of.concurrency

    assert limits(timeout=5, rate_limit="9/hour")[:3] == (7, ("9/hour",), 60)
    override = {"timeout": 2, "rate_limit": "1/day", "cache_ttl": 0, "concurrency": 3}
    assert limits(overrides={"acme.find": override}) == (2, ("1/day",), 0, 3)


def test_an_author_can_make_limits_stricter_and_not_wider():
    def limits(most: int | None, **tools: Any) -> Limits:
        item = registered("acme", "acme.find", rate_limit="5/minute", max_output_tokens=most)
        (found,) = offered(item, tools=tools).tools
        return found.limits

    assert limits(100).max_output_tokens == 100
    assert limits(10**6).max_output_tokens == 20_000
    assert limits(None).max_output_tokens == 20_000
    mine = {"acme.find": {"max_output_tokens": 10**6, "rate_limit": "9/second"}}
    assert limits(100, overrides=mine).max_output_tokens == 10**6
    assert limits(100, overrides=mine).rate_limits == ("9/second",)
    assert limits(100, rate_limit="1/second").rate_limits == ("5/minute", "1/second")
    assert limits(100, rate_limit="5/minute").rate_limits == ("5/minute",)


async def test_a_call_goes_by_what_is_offered(make_host: MakeHost):
    override = {"name": "docs", "arguments": {"place": {"fixed": "there"}}}
    host = make_host({"acme": ACME}, tools={"overrides": {"acme.find": override}})
    for name in ("docs", "acme.find"):
        result = await host.call_tool(name, {"text": "x"})
        assert result.structured == {"text": "x", "top": 5, "place": "there"}
    with pytest.raises(UnknownToolError, match="did you mean 'docs'"):
        await host.call_tool("dosc", {})
