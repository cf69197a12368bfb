"""Plugins that contribute more or less while the server runs, and resources that are updated."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus
from mcp import Client, MCPError
from mcp_types import (
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ToolListChangedNotification,
)
from support.hosts import Install, MakeHost, OpenClient, entry_of, served, started
from support.waiting import WAIT, until

from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.discovery import installed_plugins
from standards_mcp.loading.records import PluginKind

pytestmark = [
    pytest.mark.anyio,
    # The SDK's client warns of requests that only earlier generations have.
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]

LISTS = {
    PromptListChangedNotification: "prompts",
    ResourceListChangedNotification: "resources",
    ToolListChangedNotification: "tools",
}

PLUGIN = '''
    import threading
    from standards_mcp import Filter, Plugin, Prompt, Resource, Tool, hookimpl, tool

    class ShelfPlugin(Plugin):
        def __init__(self, settings, context):
            super().__init__(settings, context)
            self.books = {"emma": "Emma"}
            self.broken = ""
            context.contributions_changed()
            context.resource_updated("books://emma")

        @tool(read_only=True)
        def put(self, name: str, text: str, by: str = "") -> str:
            """Put a book on the shelf."""
            is_new = name not in self.books
            self.books[name] = text
            if is_new:
                self.context.contributions_changed()
            self.context.resource_updated(by or f"books://{name}")
            return "done"

        @tool(read_only=True)
        async def remove(self, name: str) -> str:
            """Remove a book."""
            del self.books[name]
            for _ in range(3):
                self.context.contributions_changed()
            return "done"

        @tool(read_only=True)
        def break_it(self, how: str) -> str:
            """Let the hooks fail."""
            self.broken = how
            self.context.contributions_changed()
            return "done"

        def read(self, name):
            return lambda: self.books[name]

        @hookimpl
        def register_resources(self):
            self.context.contributions_changed()  # no hook may let itself be read for ever
            if self.broken == "raises":
                raise RuntimeError("no shelf")
            if self.broken == "exits":
                raise SystemExit(3)
            if self.broken == "twice":
                return [Resource(uri="books://x", name="x", description="X", function=str)] * 2
            return [
                Resource(uri=f"books://{name}", name=name, description="A book.",
                         function=self.read(name), mime_type="text/plain")
                for name in self.books
            ]

        @hookimpl
        def register_prompts(self):
            if "dune" in self.books:
                return [Prompt(name="discuss", description="Discuss.", function=lambda: "Dune?")]
            return []

        @hookimpl
        def register_filters(self):
            if "dune" in self.books:
                return [Filter(name="planet", annotation=str, description="Where it is.",
                               to_expression=lambda value: None)]
            return []
'''


@pytest.fixture
def make_shelf(install: Install, tmp_path: Path) -> MakeHost:
    install("shelf", PLUGIN)

    def make(**tables: Any) -> Host:
        settings = Settings(state_dir=tmp_path / "state", **tables)
        plugins = [info for info in installed_plugins() if info.name == "shelf"]
        host = Host(LoadedSettings(settings, None), installed=plugins)
        host.load()
        return host

    return make


@pytest.fixture(params=["local", "isolated"])
def host(request: pytest.FixtureRequest, make_shelf: MakeHost) -> Host:
    return make_shelf(plugins={"shelf": {"isolate": request.param == "isolated"}})


class Ears:
    """What a client hears, in either generation."""

    def __init__(self) -> None:
        self.lists: list[str] = []
        self.updated: list[str] = []

    async def __call__(self, message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.updated.append(message.params.uri)
        elif kind := LISTS.get(type(message)):  # type: ignore[arg-type]
            self.lists.append(kind)

    async def listen(
        self, client: Client, *uris: str, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Ask for what clients of earlier generations are told unasked; all comes the same way."""
        wanted: dict[str, Any] = {f"{kind}_list_changed": True for kind in LISTS.values()}
        async with client.listen(**wanted, resource_subscriptions=uris):
            task_status.started()
            await anyio.sleep_forever()


async def uris(client: Client) -> list[str]:
    return [each.uri for each in (await client.list_resources()).resources]


@pytest.mark.slow
async def test_added_and_removed_items_are_listed_and_clients_are_notified_of_the_changed_lists(
    host: Host, open_client: OpenClient
):
    ears = Ears()
    async with (
        open_client(host, message_handler=ears) as client,
        anyio.create_task_group() as group,
    ):
        await until_listed(client)
        if client.protocol_version >= "2026":
            await group.start(ears.listen, client, "books://emma")
        ears.lists.clear()
        await client.call_tool("put", {"name": "peace", "text": "War"})
        await until(lambda: ears.lists)
        assert ears.lists == ["resources"]
        assert await uris(client) == ["books://emma", "books://peace"]
        assert (await client.read_resource("books://peace")).contents[0].text == "War"
        await client.call_tool("put", {"name": "dune", "text": "Sand"})
        await until(lambda: len(ears.lists) == 3)
        assert sorted(ears.lists[1:]) == ["prompts", "resources"]
        assert [each.name for each in (await client.list_prompts()).prompts] == ["discuss"]
        # The filter counts in the host's process only.
        is_here = host.manager.records["shelf"].info.kind is PluginKind.IMPORTED
        filters = [each.name for each in host.manager.contributions.filters]
        assert filters == (["planet"] if is_here else [])
        await client.call_tool("remove", {"name": "dune"})
        await until(lambda: len(ears.lists) == 5)
        assert (await client.list_prompts()).prompts == []
        assert await uris(client) == ["books://emma", "books://peace"]
        assert ears.updated == []
        group.cancel_scope.cancel()


async def until_listed(client: Client) -> None:
    await client.list_tools()
    with anyio.fail_after(WAIT):
        while await uris(client) != ["books://emma"]:  # noqa: ASYNC110  - nothing tells of it
            await anyio.sleep(0.01)
    await anyio.sleep(0.3)  # what the start has changed is about to be told by now
    await anyio.wait_all_tasks_blocked()


@pytest.mark.slow
async def test_only_subscribers_are_notified_of_an_updated_resource(
    host: Host, open_client: OpenClient
):
    ears = Ears()
    async with (
        open_client(host, message_handler=ears) as client,
        anyio.create_task_group() as group,
    ):
        assert client.server_capabilities.resources.subscribe
        await until_listed(client)
        await client.call_tool("put", {"name": "emma", "text": "before"})
        if client.protocol_version >= "2026":
            await group.start(ears.listen, client, "books://emma")
        else:
            await client.subscribe_resource("books://emma")
        await client.call_tool("put", {"name": "emma", "text": "after"})
        await until(lambda: ears.updated)
        assert ears.updated == ["books://emma"]
        if client.protocol_version < "2026":
            await client.unsubscribe_resource("books://emma")
            await client.call_tool("put", {"name": "emma", "text": "later"})
            with pytest.raises(MCPError, match="Unknown resource"):
                await client.subscribe_resource("books://none")
        group.cancel_scope.cancel()
    await anyio.sleep(0.1)
    assert ears.updated == ["books://emma"]


@pytest.mark.parametrize("how", ["raises", "exits", "twice"])
async def test_a_change_with_a_mistake_is_refused_and_the_old_items_stay(
    make_shelf: MakeHost, caplog: pytest.LogCaptureFixture, how: str
):
    logging.getLogger("standards_mcp").propagate = True
    async with started(make_shelf()) as host:
        await host.call_tool("break_it", {"how": how})
        await until(lambda: any("are invalid" in each.getMessage() for each in caplog.records))
        assert [each.resource.uri for each in host.visible().resources] == ["books://emma"]
        assert "put" in served(host)
        await host.call_tool("put", {"name": "emma", "text": "x", "by": "books://none"})
        wanted = "a resource that it does not have"
        await until(lambda: any(wanted in each.getMessage() for each in caplog.records))
        await host.call_tool("break_it", {"how": ""})
        await host.call_tool("put", {"name": "peace", "text": "x"})
        await until(lambda: len(host.visible().resources) == 2)


async def test_a_name_that_a_server_had_first_is_the_plugins_once_it_wants_it(
    make_shelf: MakeHost, tmp_path: Path
):
    peer = tmp_path / "peer"
    server = entry_of("content_server.py")(peer, prefix="")
    (peer / "lists.json").write_text(
        '{"tools": [], "prompts": [{"name": "discuss"}], "resources": [{"uri": "books://dune"}]}'
    )
    host = make_shelf(servers={"peer": server})

    def owners() -> list[str]:
        found = host.visible()
        items = (*found.prompts, *(each for each in found.resources if each.is_listed))
        return [each.plugin for each in items if not each.hidden_reason]

    async with started(host):
        assert owners() == ["peer", "shelf", "peer"]
        await host.call_tool("put", {"name": "dune", "text": "Sand"})
        await until(lambda: owners() == ["shelf", "shelf", "shelf"])
        await host.call_tool("remove", {"name": "dune"})
        await until(lambda: owners() == ["peer", "shelf", "peer"])
