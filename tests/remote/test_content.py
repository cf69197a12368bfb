"""Prompts, resources, completions and subscriptions of other MCP servers behind the host."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp_types import (
    PromptListChangedNotification,
    PromptReference,
    ResourceListChangedNotification,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    ToolListChangedNotification,
)
from support.hosts import MODERN, MakeHost, OpenClient, entry_of, names_of, served, started
from support.waiting import WAIT, until

from standards_mcp import Message, Plugin, Prompt, Resource, hookimpl
from standards_mcp.calls.context import Principal
from standards_mcp.contributions.selection import Access
from standards_mcp.errors import NotServedError
from standards_mcp.host import Host
from standards_mcp.loading.health import check_health
from standards_mcp.server.server import build_server

pytestmark = [
    pytest.mark.processes,
    pytest.mark.anyio,
    # The SDK's client warns of requests that only earlier generations have.
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]
entry = entry_of("content_server.py")


class Ears:
    """Note the resources that a client hears to be updated."""

    def __init__(self, uris: list[str]) -> None:
        self.uris = uris

    async def __call__(self, message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.uris.append(message.params.uri)


def subscribed(folder: Path) -> list[str]:
    file = folder / "subscribed.json"
    return json.loads(file.read_text()) if file.exists() else []


async def test_prompts_of_a_server_are_served_under_its_name_with_all_that_it_says(
    host: Host, open_newest: OpenClient
):
    async with open_newest(host) as client:
        prompt, refusing = (await client.list_prompts()).prompts
        assert (prompt.name, refusing.name) == ("peer_greet_me", "peer_refuse")
        assert (prompt.title, prompt.description) == ("Greet", " Say hello. ")
        assert prompt.icons[0].mime_type == "image/png"
        assert prompt.meta["acme/kind"] == "short"
        who, words = prompt.arguments
        assert (who.name, who.title, who.required) == ("who", "Who", True)
        assert who.description == "A person"
        assert (words.name, words.required) == ("in-words", False)
        given = {"who": "Ada", "in-words": "5", "unknown": "x"}
        answer = await client.get_prompt("peer_greet_me", given)
        assert answer.description == "A greeting"
        assert answer.meta["acme/cost"] == 1
        kinds = [(each.role, each.content.type) for each in answer.messages]
        assert kinds[:3] == [("user", "text"), ("assistant", "image"), ("user", "resource")]
        assert json.loads(answer.messages[3].content.text) == given


async def test_resources_of_a_server_keep_their_uris_and_all_their_contents(
    host: Host, open_newest: OpenClient
):
    async with open_newest(host) as client:
        one, two, _ = (await client.list_resources()).resources
        assert (one.uri, one.title, one.mime_type) == ("demo://one", "read me.md", "text/markdown")
        assert (one.size, one.annotations.priority) == (7, 0.5)
        assert one.icons[0].src == "https://example.org/icon.png"
        assert one.meta["acme/kind"] == "page"
        assert (two.uri, two.title, two.description) == ("demo://two", "read me.md", None)
        assert one.name != two.name
        assert one.name.startswith("peer_read_me_md_")
        (template,) = (await client.list_resource_templates()).resource_templates
        assert (template.uri_template, template.name) == ("demo://pages/{id}", "peer_page")
        for uri in ("demo://one", "demo://pages/7", "demo://pages/a%2Fb"):
            text, image = (await client.read_resource(uri)).contents
            assert (text.uri, text.text, text.meta) == (uri, "# One", {"acme/part": 1})
            assert (image.uri, image.blob) == (f"{uri}/image", "aGk=")


async def test_errors_of_a_server_keep_their_code_their_text_and_their_data(
    host: Host, open_client: OpenClient
):
    async with open_client(host) as client:
        with pytest.raises(MCPError, match=r"^not today$") as refused:
            await client.get_prompt("peer_refuse", {})
        assert (refused.value.code, refused.value.error.data) == (-32042, {"day": "Monday"})
        with pytest.raises(MCPError, match=r"^Resource not found$") as missing:
            await client.read_resource("demo://pages/none")
        assert missing.value.error.data == {"uri": "demo://pages/none"}
        assert missing.value.code in (-32002, -32602)  # the SDK spells it for each generation
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.read_resource("demo://elsewhere")


async def test_a_server_completes_arguments_and_says_how_many_values_there_are(
    host: Host, open_newest: OpenClient
):
    async with open_newest(host) as client:
        prompt = PromptReference(type="ref/prompt", name="peer_greet_me")
        given = {"name": "who", "value": "A"}
        found = (await client.complete(prompt, given, {"in-words": "5"})).completion
        assert (found.values, found.total, found.has_more) == (["A-0", "A-1", "5"], 500, True)
        template = ResourceTemplateReference(type="ref/resource", uri="demo://pages/{id}")
        found = (await client.complete(template, {"name": "id", "value": "1"})).completion
        assert found.values == ["1-0", "1-1"]
        found = (await client.complete(template, {"name": "id", "value": "many"})).completion
        assert (len(found.values), found.has_more) == (100, True), "a cut list does not end there"


async def test_what_an_answer_links_to_can_be_read_though_no_list_has_it(
    host: Host, open_newest: OpenClient
):
    async with open_newest(host) as client:
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.read_resource("demo://found/1")
        await client.call_tool("peer_link", {"value": "demo://found/1"})
        text, _ = (await client.read_resource("demo://found/1")).contents
        assert (text.uri, text.text) == ("demo://found/1", "# One")
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.read_resource("demo://found/2")
        listed = [each.uri for each in (await client.list_resources()).resources]
        assert listed == ["demo://one", "demo://two", "demo://refused"]
        assert len((await client.list_resource_templates()).resource_templates) == 1


async def test_resources_that_cannot_be_served_stand_in_the_list_with_the_reason(
    make_host: MakeHost, folder: Path
):
    servers = {"peer": entry(folder)}
    templates = [
        {"uriTemplate": "demo://{", "name": "open"},
        {"uriTemplate": "demo://x{?many*}", "name": "exploded"},
        {"uriTemplate": "demo://x", "name": "plain"},
    ]
    lists = {"resources": [{"name": "nowhere"}], "resourceTemplates": templates}
    (folder / "lists.json").write_text(json.dumps(lists))
    async with started(make_host(servers=servers)) as host:
        reasons = {each.published: each.hidden_reason for each in host.visible().resources}
    assert reasons.pop("peer_linked") == ""
    assert [*reasons] == ["peer_nowhere", "peer_open", "peer_exploded", "peer_plain"]
    assert reasons["peer_nowhere"] == "its server lists it without a URI"
    assert reasons["peer_exploded"].startswith(
        "its uriTemplate cannot be matched: Explode modifier"
    )
    assert reasons["peer_plain"] == "its uriTemplate has no variable"


async def test_limits_of_rate_and_length_hold_for_prompts_and_resources_of_a_server(
    make_host: MakeHost, folder: Path, open_newest: OpenClient
):
    prompts = {"max_output_tokens": 5}
    of_page = {"rate_limit": "1/hour", "max_output_tokens": 1}
    resources = {"rate_limit": "2/hour", "overrides": {"peer.page": of_page}}
    host = make_host(servers={"peer": entry(folder)}, prompts=prompts, resources=resources)
    async with open_newest(host) as client:
        for _ in range(2):
            with pytest.raises(MCPError, match="more than the 5 allowed here"):
                await client.get_prompt("peer_greet_me", {"who": "Ada"})
        for _ in range(2):
            assert (await client.read_resource("demo://one")).contents
        with pytest.raises(MCPError, match="is limited to 2/hour"):
            await client.read_resource("demo://one")
        assert (await client.read_resource("demo://two")).contents, "each has a rate of its own"
        with pytest.raises(MCPError, match="more than the 1 allowed here"):
            await client.read_resource("demo://pages/1")
        with pytest.raises(MCPError, match="peer_page is limited to 1/hour"):
            await client.read_resource("demo://pages/2")


async def test_a_server_is_asked_only_for_what_it_announces(make_host: MakeHost, folder: Path):
    servers = {"peer": entry(folder)}
    (folder / "lists.json").write_text(json.dumps({"prompts": [{"name": "only"}]}))
    async with started(make_host(servers=servers)) as host:
        assert [item.published for item in host.visible().prompts] == ["peer_only"]
    asked = (folder / "asked.txt").read_text().split()
    assert [each for each in asked if each.endswith("/list")] == ["prompts/list"]


async def test_lists_that_cannot_be_had_or_are_nonsense_keep_nothing_else_from_being_served(
    make_host: MakeHost, folder: Path
):
    servers = {"peer": entry(folder)}
    lists = {
        "tools": [{"name": "touch", "inputSchema": {"type": "object"}}],
        "prompts": "nonsense",
        "resources": [
            5,
            {},
            {"uri": 7, "name": 7},
            {"uri": "demo://{odd}", "name": "n" * 200, "icons": 5, "size": "big", "_meta": []},
            {"uri": "demo://twice", "name": "a"},
            {"uri": "demo://twice", "name": "b"},
            {"uri": "demo://x", "name": "é/../"},
        ],
    }
    (folder / "lists.json").write_text(json.dumps(lists))
    async with Client(build_server(make_host(servers=servers), "1")) as client:
        assert await names_of(client) == ["peer_touch"]
        assert (await client.list_prompts()).prompts == []
        uris = [each.uri for each in (await client.list_resources()).resources]
        assert uris == ["7", "demo://{odd}", "demo://twice", "demo://x"]
        assert (await client.read_resource("demo://{odd}")).contents


async def test_what_is_known_of_the_last_run_is_served_before_the_server_runs(
    make_host: MakeHost, folder: Path
):
    servers = {"peer": entry(folder)}
    async with started(make_host(servers=servers)):
        pass
    (folder / "asked.txt").unlink()
    again = make_host(servers=servers)
    assert len(again.visible().prompts) == 2
    assert sum(item.is_listed for item in again.visible().resources) == 4
    async with started(again) as host:
        assert not (folder / "asked.txt").exists()
        contents = await host.content.read_resource("demo://one")
        assert len(contents.parts) == 2
        health = (await check_health(host.manager))["peer"]
        assert health.message == "4 tools, 2 prompts, 4 resources"


async def test_rules_overrides_and_profiles_hold_for_prompts_and_resources_of_servers(
    make_host: MakeHost, folder: Path, open_newest: OpenClient
):
    host = make_host(
        servers={"peer": entry(folder)},
        prompts={"disable": ["peer.refuse"], "overrides": {"peer.greet_me": {"name": "hello"}}},
        resources={"disable": ["peer.page"]},
    )
    async with open_newest(host) as client:
        assert [each.name for each in (await client.list_prompts()).prompts] == ["hello"]
        assert (await client.get_prompt("hello", {"who": "Ada"})).messages
        assert (await client.list_resource_templates()).resource_templates == []
        await client.call_tool("peer_link", {"value": "demo://pages/7"})
        with pytest.raises(MCPError, match=r"is not served here .*\[resources\] disable has 'peer"):
            await client.read_resource("demo://pages/7")


async def test_a_name_or_a_uri_that_is_taken_is_told_and_a_name_can_be_changed(
    make_host: MakeHost, folder: Path, tmp_path: Path
):
    class Mine(Plugin):
        @hookimpl
        def register_prompts(self):
            return [Prompt(name="refuse", description="Mine", function=lambda: "mine")]

        @hookimpl
        def register_resources(self):
            def read() -> str:
                return "mine"

            return [Resource(uri="demo://one", name="own", description="Mine", function=read)]

    servers = {"peer": entry(folder, prefix=""), "second": entry(tmp_path / "second")}
    overrides = {"peer.refuse": {"name": "also"}}
    for prompts in ({}, {"overrides": overrides}):
        host = make_host({"mine": Mine}, servers=servers, prompts=prompts)
        async with started(host):
            reasons = {item.declared: item.hidden_reason for item in host.visible().prompts}
            resources = {
                (item.plugin, item.resource.uri): item.hidden_reason
                for item in host.visible().resources
            }
            assert (await host.content.read_resource("demo://one")).data == "mine"
            both = {item.published for item in host.visible().prompts if not item.hidden_reason}
        taken = "its URI 'demo://one' already belongs to plugin 'mine'"
        assert resources["peer", "demo://one"] == resources["second", "demo://one"] == taken
        assert "belongs to plugin 'peer'" in resources["second", "demo://two"]
        assert resources["peer", "demo://two"] == ""
        if prompts:
            assert both >= {"refuse", "also"}
        else:
            expected = 'set name in [prompts.overrides."peer.refuse"]'
            assert reasons["peer.refuse"].endswith(expected)


async def test_clients_hear_of_the_changed_list_alone(make_host: MakeHost, folder: Path):
    host = make_host(servers={"peer": entry(folder, approve="always")})
    told: list[type] = []

    async def hear(message: object) -> None:
        told.append(type(message))

    async def change(kind: str, *items: dict[str, str]) -> None:
        told.clear()
        await client.call_tool("peer_change", {"value": {"kind": kind, "items": list(items)}})
        await until(lambda: told)

    async with Client(build_server(host, "1"), mode="legacy", message_handler=hear) as client:
        await until(lambda: len(told) == 3)  # it has just been started
        await change("prompts", {"name": "other"})
        assert told == [PromptListChangedNotification]
        assert [each.name for each in (await client.list_prompts()).prompts] == ["peer_other"]
        await change("resources", {"uri": "demo://new", "name": "new"})
        assert told == [ResourceListChangedNotification]
        uris = [each.uri for each in (await client.list_resources()).resources]
        assert uris == ["demo://new"]
        await change("tools", {"name": "more", "inputSchema": {"type": "object"}})
        assert told == [ToolListChangedNotification]


async def test_a_server_is_subscribed_to_while_a_client_is_and_tells_those_alone(
    host: Host, folder: Path
):
    told: dict[str, list[str]] = {"first": [], "second": []}
    async with started(host):
        server = build_server(host, "1", runs_plugins=False)
        async with Client(server, mode="legacy", message_handler=Ears(told["first"])) as first:
            assert first.server_capabilities.resources.subscribe
            async with Client(
                server, mode="legacy", message_handler=Ears(told["second"])
            ) as second:
                for _ in range(2):
                    await first.subscribe_resource("demo://one")
                    await second.subscribe_resource("demo://one")
                await second.subscribe_resource("demo://two")
                assert subscribed(folder) == ["demo://one", "demo://two"]
                await second.call_tool("peer_touch", {"value": "demo://two"})
                await second.call_tool("peer_touch", {"value": "demo://one/part"})
                await until(lambda: told["first"] and len(told["second"]) == 2)
                assert told["first"] == ["demo://one"]
                assert sorted(told["second"]) == ["demo://one", "demo://two"]
                await second.unsubscribe_resource("demo://one")
                await second.unsubscribe_resource("demo://never")
            await until(lambda: subscribed(folder) == ["demo://one"])
            await first.unsubscribe_resource("demo://one")
            await until(lambda: subscribed(folder) == [])
            await first.subscribe_resource("demo://one")
            await until(lambda: subscribed(folder) == ["demo://one"])
        await until(lambda: subscribed(folder) == [])


async def test_a_client_of_the_newest_generation_hears_of_the_uris_that_it_names(
    host: Host, folder: Path
):
    uris = ["demo://one", "demo://refused", "demo://pages/7", "demo://unknown"]
    async with Client(build_server(host, "1")) as client:
        async with client.listen(resource_subscriptions=uris) as events:
            assert events.honored.resource_subscriptions == ["demo://one", "demo://pages/7"]
            assert sorted(subscribed(folder)) == ["demo://one", "demo://pages/7"]
            await client.call_tool("peer_touch", {"value": "demo://two"})
            await client.call_tool("peer_touch", {"value": "demo://pages/7"})
            with anyio.fail_after(WAIT):
                assert (await anext(events)).uri == "demo://pages/7"
        await until(lambda: subscribed(folder) == [])


async def test_a_subscription_that_a_server_refuses_is_refused_with_its_error(host: Host):
    async with Client(build_server(host, "1"), mode="legacy") as client:
        with pytest.raises(MCPError, match="Resource not found") as refused:
            await client.subscribe_resource("demo://refused")
        assert refused.value.code == -32002
        with pytest.raises(MCPError, match="Unknown resource"):
            await client.subscribe_resource("demo://elsewhere")


async def test_who_does_not_see_a_resource_cannot_subscribe_to_it_nor_hears_of_it_later(
    host: Host, folder: Path
):
    guest = Principal("guest", Access(names=("peer.page", "peer.touch")))
    async with started(host):
        server = build_server(host, "1", lambda _: guest, runs_plugins=False)
        async with Client(server, mode="legacy") as client:
            await client.subscribe_resource("demo://pages/7")
            with pytest.raises(MCPError, match=r"^Unknown resource: demo://one$"):
                await client.subscribe_resource("demo://one")
        async with (
            Client(server) as client,
            client.listen(resource_subscriptions=["demo://one", "demo://pages/1"]) as events,
        ):
            assert events.honored.resource_subscriptions == ["demo://pages/1"]
        with pytest.raises(NotServedError):
            await host.subscribe("demo://one", guest)
    assert "demo://one" not in subscribed(folder)


async def test_a_server_that_ends_is_subscribed_to_again_and_clients_are_told_to_look(
    host: Host, folder: Path
):
    told: list[str] = []
    hear = Ears(told)
    async with Client(build_server(host, "1"), mode="legacy", message_handler=hear) as client:
        await client.subscribe_resource("demo://one")
        (folder / "subscribed.json").unlink()
        await client.call_tool("peer_end", {})
        await until(lambda: told == ["demo://one"])
        assert subscribed(folder) == ["demo://one"]


async def test_a_server_of_the_newest_generation_is_listened_to(
    make_host: MakeHost, open_client: OpenClient
):
    told: list[str] = []
    table = {"command": sys.executable, "args": MODERN, "approve": "always"}
    host = make_host(servers={"modern": table})
    async with open_client(host, message_handler=Ears(told)) as client:
        answer = await client.get_prompt("modern_greet", {"who": "Ada"})
        assert answer.messages[0].content.text == "Hello, Ada"
        assert (await client.read_resource("demo://one")).contents[0].text == "one"
        if client.protocol_version >= "2026":
            async with client.listen(resource_subscriptions=["demo://one"]) as events:
                await client.call_tool("modern_touch", {"value": "demo://one"})
                with anyio.fail_after(WAIT):
                    assert (await anext(events)).uri == "demo://one"
        else:
            await client.subscribe_resource("demo://one")
            await client.call_tool("modern_touch", {"value": "demo://one"})
            await until(lambda: told == ["demo://one"])
        await client.call_tool("modern_grow", {})
        await until(lambda: len(host.visible().resources) == 2)
        await until(lambda: "modern_more" in served(host))


async def test_a_message_of_a_plugin_may_be_an_image_and_nonsense_is_told(
    make_host: MakeHost, open_client: OpenClient
):
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    contents: dict[str, Any] = {"show": image, "odd": {"type": "nothing"}, "wrong": 5}

    class Pictures(Plugin):
        @hookimpl
        def register_prompts(self):
            for name, content in contents.items():
                yield Prompt(name=name, description="Show.", function=_shows(content))

    async with open_client(make_host({"pictures": Pictures})) as client:
        (message,) = (await client.get_prompt("show", {})).messages
        assert message.content.data == "aGk="
        with pytest.raises(MCPError, match="holds content that clients cannot read"):
            await client.get_prompt("odd", {})
        with pytest.raises(MCPError, match="internal error"):
            await client.get_prompt("wrong", {})


def _shows(content: Any) -> Callable[[], Message]:
    def show() -> Message:
        return Message(content=content)

    return show
