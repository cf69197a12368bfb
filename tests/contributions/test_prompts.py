"""Prompts of plugins, through the SDK's own client, in both protocol generations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Any, Literal

import pytest
from mcp import Client, MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, PromptReference
from pydantic import Field, SecretStr

from standards_mcp import (
    ApiError,
    Message,
    Plugin,
    PluginSettings,
    Prompt,
    Resource,
    Tool,
    hookimpl,
)
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio
MakeHost = Callable[..., Host]
OpenClient = Callable[[Host], AbstractAsyncContextManager[Client]]

TOPICS = ["fractions", "fraction bars", "clocks"]


def align(
    lesson: Annotated[str, Field(description="What students do.")],
    grade: Literal["3", "4"] = "3",
    *,
    tools: Mapping[str, str],
) -> str:
    """Align a lesson."""
    return f"{lesson} in grade {grade}: call {tools['find']}, {sorted(tools)}"


async def debate(topic: str) -> list[str | Message]:
    return [f"Let us talk about {topic}.", Message("Gladly.", role="assistant")]


def wrong(kind: str) -> Any:
    if kind == "crash":
        raise RuntimeError("a secret")
    return {"number": 5, "bytes": b"x", "message": [Message(5)], "half": "\ud800"}[kind]


def topics(typed: str, others: Mapping[str, str]) -> list[str]:
    if typed == "crash":
        raise RuntimeError
    return [topic for topic in TOPICS if topic.startswith(typed) and topic != others.get("not")]


class TalkPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [
            Tool(name=name, description="Find.", function=lambda: "found")
            for name in ("find", "look.up")
        ]

    @hookimpl
    def register_prompts(self):
        return [
            Prompt(name="align", function=align, needs=("find",), uses=("look.up", "absent")),
            Prompt(
                name="talk.debate",
                title="Debate",
                description="Debate a topic.",
                function=debate,
                complete={"topic": topics},
            ),
            Prompt(name="wrong", description="Wrong.", function=wrong),
        ]


def names(host: Host) -> list[str]:
    return [item.published for item in host.visible().prompts if not item.hidden_reason]


async def said(client: Client, name: str, **arguments: str) -> list[tuple[str, str]]:
    result = await client.get_prompt(name, arguments)
    return [(message.role, message.content.text) for message in result.messages]


@pytest.fixture
async def client(open_client: OpenClient, make_host: MakeHost) -> AsyncIterator[Client]:
    async with open_client(make_host({"talk": TalkPlugin})) as client:
        yield client


async def test_prompts_are_listed_with_their_arguments(client: Client):
    first, second, _ = (await client.list_prompts()).prompts
    assert (first.name, first.description) == ("align", "Align a lesson.")
    assert [(each.name, each.description, each.required) for each in first.arguments] == [
        ("lesson", "What students do.", True),
        ("grade", None, False),
    ]
    assert (second.name, second.title) == ("talk_debate", "Debate")
    assert second.meta == {"standards-mcp/plugin": "talk"}


async def test_a_prompt_names_the_tools_that_are_served_as_clients_see_them(
    open_client: OpenClient, make_host: MakeHost
):
    tools = {"overrides": {"find": {"name": "search"}}}
    async with open_client(make_host({"talk": TalkPlugin}, tools=tools)) as client:
        found = await said(client, "align", lesson="Bars", grade="4")
    assert found == [("user", "Bars in grade 4: call search, ['find', 'look.up']")]


async def test_a_prompt_may_say_several_things_in_turn(client: Client):
    things = [("user", "Let us talk about clocks."), ("assistant", "Gladly.")]
    for name in ("talk.debate", "talk_debate"):
        assert await said(client, name, topic="clocks") == things


FAILURE = "failed with an internal error (id "


@pytest.mark.parametrize(
    ("name", "arguments", "code", "message"),
    [
        ("debate", {}, INVALID_PARAMS, "Unknown prompt: debate; did you mean 'talk_debate'?"),
        ("talk.debate", {}, INVALID_PARAMS, "topic: this argument is required"),
        ("talk.debate", {"topik": "x"}, INVALID_PARAMS, "did you mean 'topic'?"),
        ("wrong", {"kind": "crash"}, INTERNAL_ERROR, FAILURE),
        ("wrong", {"kind": "number"}, INTERNAL_ERROR, FAILURE),
        ("align", {}, INVALID_PARAMS, "not served here ([prompts] disable has 'align')"),
    ],
)
async def test_what_goes_wrong_is_a_protocol_error_that_says_what_to_do(
    open_client: OpenClient, make_host: MakeHost, name: str, arguments: Any, code: int, message: str
):
    host = make_host({"talk": TalkPlugin}, prompts={"disable": ["align"]})
    async with open_client(host) as client:
        with pytest.raises(MCPError) as caught:
            await client.get_prompt(name, arguments)
        assert caught.value.error.code == code
        assert message in caught.value.error.message
        assert "secret" not in caught.value.error.message
        assert await said(client, "talk_debate", topic="x")  # the connection lives


async def test_arguments_are_completed_by_the_plugin(client: Client):
    async def completed(typed: str, prompt: str = "talk_debate", **others: str) -> list[str]:
        ref = PromptReference(type="ref/prompt", name=prompt)
        result = await client.complete(ref, {"name": "topic", "value": typed}, others)
        return result.completion.values

    for prompt in ("talk_debate", "talk.debate"):
        assert await completed("fra", prompt) == ["fractions", "fraction bars"]
    assert await completed("fra", **{"not": "fractions"}) == ["fraction bars"]
    assert await completed("crash") == []


@pytest.mark.parametrize(
    ("prompt", "argument", "message"),
    [
        ("talk_debat", "topic", "Unknown prompt: talk_debat; did you mean 'talk_debate'?"),
        ("talk_debate", "topik", "topik: unknown argument; did you mean 'topic'?"),
        ("align", "lesson", "align is not served here ([prompts] disable has 'align')"),
    ],
)
async def test_a_completion_for_what_is_not_there_is_refused(
    open_client: OpenClient, make_host: MakeHost, prompt: str, argument: str, message: str
):
    host = make_host({"talk": TalkPlugin}, prompts={"disable": ["align"]})
    async with open_client(host) as client:
        ref = PromptReference(type="ref/prompt", name=prompt)
        with pytest.raises(MCPError) as caught:
            await client.complete(ref, {"name": argument, "value": "x"})
    assert caught.value.error.code == INVALID_PARAMS
    assert message in caught.value.error.message


def test_a_prompt_is_served_only_while_the_tools_that_it_needs_are(make_host: MakeHost):
    without = {"tools": {"disable": ["find"]}}
    for rules, reason in (
        (without, "it needs the tool 'find', which is not served"),
        (without | {"prompts": {"disable": ["align"]}}, "[prompts] disable has 'align'"),
    ):
        host = make_host({"talk": TalkPlugin}, **rules)
        assert host.visible().prompts[0].hidden_reason == reason
        assert names(host) == ["talk_debate", "wrong"]
    assert names(make_host({"talk": TalkPlugin}, tools={"disable": ["look*"]}))[0] == "align"


class KeyedSettings(PluginSettings):
    key: SecretStr


class KeyedPlugin(Plugin[KeyedSettings]):
    settings_type = KeyedSettings

    def fail(self) -> str:
        raise ApiError(f"The key {self.settings.key.get_secret_value()} is refused.")

    @hookimpl
    def register_prompts(self):
        return [Prompt(name="ask", description="Ask.", function=self.fail)]

    @hookimpl
    def register_resources(self):
        return [Resource(uri="keyed://all", name="all", description="All.", function=self.fail)]


async def test_no_secret_is_in_the_error_of_a_prompt_or_a_resource(
    make_host: MakeHost, open_client: OpenClient
):
    table = {"keyed": {"key": "opensesame-7"}}
    async with open_client(make_host({"keyed": KeyedPlugin}, plugins=table)) as client:
        with pytest.raises(MCPError, match=r"The key \*+ is refused"):
            await client.get_prompt("ask")
        with pytest.raises(MCPError, match=r"The key \*+ is refused"):
            await client.read_resource("keyed://all")


@pytest.mark.parametrize(
    ("settings", "served"),
    [
        ({}, ["align", "talk_debate", "wrong"]),
        ({"prompts": {"disable": ["talk.*"]}}, ["align", "wrong"]),
        ({"prompts": {"enable": ["talk_*"]}}, ["talk_debate"]),
        ({"prompts": {"overrides": {"wrong": {"name": "x"}}}}, ["align", "talk_debate", "x"]),
        ({"prompts": {"overrides": {"align": {"name": "wrong"}}}}, ["talk_debate", "wrong"]),
        ({"profile": "x", "profiles": {"x": {"prompts": {"enable": ["w*"]}}}}, ["wrong"]),
        ({"tool_names": "declared"}, ["align", "talk.debate", "wrong"]),
    ],
)
def test_the_admin_chooses_and_renames_prompts_as_tools(
    make_host: MakeHost, settings: dict[str, Any], served: list[str]
):
    assert names(make_host({"talk": TalkPlugin}, **settings)) == served


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (5, "register_prompts returned a int"),
        (Prompt(name="a b", description="x", function=align), "'a b' is not a valid prompt name"),
        (Prompt(name="a", function=debate), "prompt 'a' has no description"),
        (
            Prompt(name="a", description="x", function=debate, needs=("find",)),
            "prompt 'a': its function has no argument 'tools', which the host gives it",
        ),
        (
            Prompt(name="a", description="x", function=align, needs="find"),  # type: ignore[arg-type]
            "prompt 'a': its needs and uses must be lists of names of tools",
        ),
        (
            Prompt(name="a", description="x", function=debate, complete={"topik": topics}),
            "prompt 'a': it completes an unknown argument 'topik'; did you mean 'topic'?",
        ),
        (
            Prompt(name="talk_debate", description="x", function=debate),
            "prompt 'talk_debate' already belongs to plugin 'talk'",
        ),
    ],
)
def test_a_wrong_prompt_fails_the_whole_plugin_with_the_reason(
    make_host: MakeHost, prompt: object, expected: str
):
    bad = type("BadPlugin", (Plugin,), {"register_prompts": hookimpl(lambda _: [prompt])})
    host = make_host({"talk": TalkPlugin, "wrong": bad})
    assert expected in host.manager.records["wrong"].reason
    assert names(host) == ["align", "talk_debate", "wrong"]
    assert not host.manager.records["wrong"].contributions
