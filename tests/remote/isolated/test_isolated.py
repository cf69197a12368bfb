"""Plugins in processes of their own: they look as if they were local, and cost only their calls."""
# ruff: noqa: ASYNC110, ASYNC240  nothing tells of what other processes do

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    Root,
    TextContent,
)
from support.hosts import Install, MakeHost, OpenClient, message_of, started, until_answered
from support.waiting import WAIT, until

from standards_mcp import ApiError, ToolResult
from standards_mcp._utils.logs import configure_logging
from standards_mcp.calls.context import HostContext, Principal
from standards_mcp.config.loading import LoadedSettings, load_settings
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.errors import ConfigError, InvalidInputError, NotFoundError, PluginError
from standards_mcp.host import Host
from standards_mcp.loading.discovery import installed_plugins
from standards_mcp.loading.health import check_health
from standards_mcp.loading.records import PluginRecord, Status
from standards_mcp.remote.isolated import isolate
from standards_mcp.remote.processes import processes_of
from standards_mcp.remote.worker import Described, Description
from standards_mcp.server.server import build_server
from standards_mcp.testing.serving import route_client

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
TOOL_FACTS = ("read_only", "idempotent", "open_world", "returns_untrusted_text", "meta")
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of the Linux kernel")

PLUGIN = '''
    import asyncio, os, signal, subprocess, sys, time
    from contextlib import asynccontextmanager
    from typing import Annotated
    from pydantic import BaseModel, Field, SecretStr
    from standards_mcp import (
        ApiError, CallContext, Health, InvalidInputError, Message, NotFoundError, Plugin,
        PluginSettings, Prompt,
        Resource, Tool, ToolResult, hookimpl
    )

    print("at import")

    class AcmeSettings(PluginSettings):
        limit: int = 3
        key: SecretStr = SecretStr("none")

    class Total(BaseModel):
        """A total."""
        total: int
        parts: list[int]

    class Name(BaseModel):
        name: str

    class AcmePlugin(Plugin[AcmeSettings]):
        settings_type = AcmeSettings
        started, runs = False, 0

        @hookimpl
        @asynccontextmanager
        async def lifespan(self):
            self.started = True
            yield

        @hookimpl
        async def check_health(self):
            return Health(status="degraded", message="so so")

        def add(
            self,
            a: Annotated[int, Field(description="The first.", le=100)],
            b: int | None = None,
        ) -> Total:
            """Add two numbers."""
            print("in a call")
            return Total(total=a + (b or 0), parts=[a])

        async def state(self) -> dict:
            return {
                "pid": os.getpid(), "started": self.started, "limit": self.settings.limit,
                "state_dir": str(self.context.state_dir), "session": os.getsid(0),
            }

        def filtered(self, query: str, filter: dict | None) -> dict:
            """Show the filter."""
            return {"filter": filter}

        def be_busy(self):
            details = {"key": self.settings.key.get_secret_value()}
            raise ApiError("Busy.", retry_after=12.5, status=503, details=details)

        def fail(self, how: str) -> str:
            """Fail in some way."""
            if how == "input":
                raise InvalidInputError("wrong: " + self.settings.key.get_secret_value())
            if how == "crash":
                raise RuntimeError("inside")
            if how == "busy":
                self.be_busy()
            if how == "tell":
                os.write(2, self.settings.key.get_secret_value().encode() + b" is wrong\\n")
                os._exit(7)
            if how == "print":
                print("the key is", self.settings.key.get_secret_value(), "of", self.settings.limit)
            if how == "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            if how == "close":
                os.closerange(0, 100)
            if how == "stdout":
                os.write(1, b"garbage")
                print("more", flush=True)
                os.close(1)
            if how == "memory":
                return str(len(bytearray(8 << 30)))
            if how == "many":
                command = [sys.executable, "-c", "import time; time.sleep(600)"]
                for _ in range(12):
                    subprocess.Popen(command)
                time.sleep(20)
            return "done"

        async def block(self) -> str:
            """Block the loop."""
            while True:
                pass

        def spin(self, seconds: float = 600) -> str:
            """Loop in a thread."""
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pass
            return "spun"

        async def rest(self, seconds: float) -> str:
            """Rest."""
            await asyncio.sleep(seconds)
            return "rested"

        async def greet(self, call: CallContext) -> str:
            """Ask two names, and tell of progress."""
            await call.report_progress(1, 2, "first")
            mine = await call.ask("Your name?", Name)
            if mine is None:
                return "declined"
            await call.report_progress(2, 2, "second")
            other = await call.ask("And your friend's?", Name)
            return f"{mine.name} and {other.name}"

        async def confer(self, call: CallContext) -> str:
            """Ask the client's model, and the client."""
            said, roots = await asyncio.gather(call.sample("Hello"), call.roots())
            return f"{said} in {roots[0]}"

        async def count(self, call: CallContext) -> str:
            """Count the calls."""
            self.runs += 1
            return f"{call.caller} {self.runs}"

        def image(self) -> ToolResult:
            """Show an image."""
            block = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
            return ToolResult(text="hi", content=(block,), meta={"acme/cost": 1})

        @hookimpl
        def register_tools(self):
            return [
                Tool(name="acme.add", title="Add", function=self.add, read_only=True, cache_ttl=60),
                Tool(name="state", description="Its state.", function=self.state),
                Tool(name="filtered", function=self.filtered, accepts_filters=True),
                Tool(name="fail", function=self.fail, timeout=60, meta={"acme/x": 1}),
                Tool(name="block", function=self.block, timeout=0.3),
                Tool(name="spin", function=self.spin, timeout=0.3),
                Tool(name="rest", function=self.rest),
                Tool(name="greet", function=self.greet),
                Tool(name="image", function=self.image, returns_untrusted_text=True),
                Tool(name="confer", function=self.confer),
                Tool(name="count", function=self.count, read_only=True, cache_ttl=60),
            ]

        @hookimpl
        def register_prompts(self):
            def align(lesson: str, grade: str = "3", *, tools: dict) -> list:
                if lesson == "none":
                    raise InvalidInputError("no lesson")
                if lesson == "busy":
                    self.be_busy()
                return [Message(f"{lesson} {grade} {tools}"), Message("ok", role="assistant")]

            async def invite(where: str, call: CallContext) -> str:
                answer = await call.ask("Whom?", Name)
                return f"Invite {answer.name if answer else 'nobody'} to {where}."

            def grades(typed, others):
                return [value for value in ("3", "31") if value.startswith(typed)]

            return [
                Prompt(name="align", description="Align.", function=align, needs=("acme.add",),
                       uses=("gone",), complete={"grade": grades}),
                Prompt(name="lost", description="Lost.", function=align, needs=("gone",),
                       complete={"grade": grades}),
                Prompt(name="invite", description="Invite.", function=invite),
            ]

        @hookimpl
        def register_resources(self):
            def one(id: str, page: int = 1):
                if id == "none":
                    raise NotFoundError("no such thing")
                return {"id": id, "page": page} if id != "bytes" else b"\\x00\\xff"

            return [
                Resource(uri="acme://things/{id}{?page}", name="thing", description="A thing.",
                         function=one, complete={"id": lambda typed, others: [typed + "1"]}),
                Resource(uri="acme://about", name="about", description="About.",
                         function=lambda: "this", meta={"acme/kind": "text"}),
                Resource(uri="ui://acme/sum.html", name="sum_view", description="A sum.",
                         function=lambda: "<!doctype html>", view_of=("acme.add",),
                         meta={"ui": {"csp": {}}}),
            ]
'''


def each_of(*names: str) -> list[PluginRecord]:
    """Return records of what is installed for the test."""
    return [each for each in installed_plugins() if each.name in names]


def load(tmp_path: Path, timing: Timing = DEFAULT_TIMING, **settings: Any) -> Host:
    """Return a host of what is installed for the test."""
    state_dir = tmp_path / "state"
    loaded = LoadedSettings(Settings(state_dir=state_dir, **settings), None)
    found = isolate(each_of("acme", "rest"), loaded, state_dir, timing)
    host = Host(loaded, installed=found, timing=timing)
    host.load()
    return host


@pytest.fixture
def isolated(install: Install, tmp_path: Path) -> MakeHost:
    """Return a function that loads the plugin above, isolated."""
    install("acme", PLUGIN)

    def make(timing: Timing = DEFAULT_TIMING, **keys: Any) -> Host:
        return load(tmp_path, timing, plugins={"acme": {"isolate": True, **keys}})

    return make


async def recovered(host: Host) -> ToolResult:
    """Return the first answer after a failure; the plugin is started again after a second."""
    return await until_answered(host, "rest", {"seconds": 0})


@pytest.mark.smoke
async def test_an_isolated_plugin_looks_as_if_it_were_local(isolated: MakeHost, tmp_path: Path):
    local = load(tmp_path / "local")
    sys.modules.pop("standards_mcp_acme_plugin")
    async with started(local), started(isolated(limit=5)) as host:
        assert "standards_mcp_acme_plugin" not in sys.modules
        for mine, theirs in zip(host.visible().tools, local.visible().tools, strict=True):
            assert mine.definition == theirs.definition
            assert mine.result.schema == theirs.result.schema
            assert mine.limits == theirs.limits
            for name in TOOL_FACTS:
                assert getattr(mine.tool, name) == getattr(theirs.tool, name)
            assert mine.tool.accepts_filters == theirs.tool.accepts_filters
        for tool, arguments in (
            ("acme_add", {"a": 2, "b": 3}),
            ("acme.add", {"a": 2, "b": None}),
            ("acme_add", {"a": 200}),
            ("acme_add", {"a": "x", "c": 1}),
            ("acme_add", {}),
            ("filtered", {"query": "x"}),
            ("filtered", {"query": "x", "odd": 3}),
            ("image", {}),
            ("fail", {"how": "nothing"}),
            ("fail", {"how": "busy"}),
        ):
            one = await local.call_tool(tool, arguments)
            other = await host.call_tool(tool, arguments)
            # Beside content blocks, which are sent in its place, the text of a result is not.
            assert other == (replace(one, text="") if one.content else one)
        state = (await host.call_tool("state", {})).structured
        assert state["started"]
        assert state["limit"] == 5
        assert state["pid"] != os.getpid()
        assert Path(state["state_dir"]) == tmp_path / "state" / "plugins" / "acme"
        healths = [(await check_health(each.manager))["acme"] for each in (host, local)]
        assert healths[0] == healths[1]
        assert host.manager.records["acme"].plugin is not None


async def seen(host: Host) -> list[Any]:
    """Return what a client sees of the prompts and resources of a host."""
    async with Client(build_server(host, "1"), cache=None) as client:
        lists = (client.list_prompts, client.list_resources, client.list_resource_templates)
        found: list[Any] = [await listed() for listed in lists]
        given = ({"lesson": "clocks", "grade": "4"}, {"lesson": "none"}, {})
        found += [await outcome(client.get_prompt("align", each)) for each in given]
        uris = ("about", "things/a?page=2", "things/bytes", "things/none", "things/a?page=x")
        found += [await outcome(client.read_resource(f"acme://{uri}")) for uri in uris]
        prompt = PromptReference(type="ref/prompt", name="align")
        template = "acme://things/{id}{?page}"
        thing = ResourceTemplateReference(type="ref/resource", uri=template)
        found.append(await client.complete(prompt, {"name": "grade", "value": "3"}))
        found.append(await client.complete(thing, {"name": "id", "value": "a"}))
        return found


async def outcome(request: Awaitable[object]) -> object:
    try:
        return await request
    except MCPError as exc:
        return exc.error


async def test_it_asks_the_user_and_tells_of_its_progress_as_a_local_plugin_does(
    isolated: MakeHost, tmp_path: Path, open_client: OpenClient
):
    for host in (load(tmp_path / "local"), isolated()):
        replies = [{"name": "Ada"}, {"name": "Bo"}, None]
        asked: list[str] = []
        heard: list[tuple[float, float | None, str | None]] = []

        async def answer(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
            asked.append(params.message)  # noqa: B023  - it is called in this round of the loop
            content = replies.pop(0)  # noqa: B023
            return ElicitResult(action="accept" if content else "decline", content=content)

        async def hear(done: float, total: float | None, message: str | None) -> None:
            heard.append((done, total, message))  # noqa: B023

        async with open_client(host, elicitation_callback=answer) as client:
            result = await client.call_tool("greet", {}, progress_callback=hear)
            assert result.content[0].text == "Ada and Bo"
            assert asked == ["Your name?", "And your friend's?"]
            assert heard[0] == (1, 2, "first")
            assert heard[-1] == (2, 2, "second")
            count = len(heard)
            assert (await client.call_tool("greet", {})).content[0].text == "declined"
            assert len(heard) == count


async def test_where_nobody_can_be_asked_it_hears_so_as_a_local_plugin_does(
    isolated: MakeHost, tmp_path: Path, open_client: OpenClient
):
    host = isolated()
    async with open_client(load(tmp_path / "local")) as local, open_client(host) as client:
        ours, theirs = [await outcome(each.call_tool("greet", {})) for each in (client, local)]
        assert ours == theirs
        with pytest.raises(MCPError, match=r"Ask in the conversation: 'Whom\?'") as caught:
            await client.get_prompt("invite", {"where": "Rome"})
        assert caught.value.error.data == {"requiredCapabilities": {"elicitation": {}}}
        assert "Ask in the conversation: 'Your name?'" in message_of(
            await host.call_tool("greet", {})
        )


async def test_its_tools_are_found_and_called_by_the_search_for_tools(
    install: Install, tmp_path: Path, open_client: OpenClient
):
    install("acme", PLUGIN)
    tools = {"discovery": "search", "search_writing": True}
    host = load(tmp_path, plugins={"acme": {"isolate": True}}, tools=tools)

    async def answer(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": f"Ada ({params.message})"})

    async with open_client(host, elicitation_callback=answer) as client:
        listed = (await client.list_tools()).tools
        names = [tool.name for tool in listed]
        assert names == ["search_tools", "call_tool", "acme_add"]  # a view is found by its tool
        found = await client.call_tool("search_tools", {"query": "greet", "max_results": 1})
        assert [tool["name"] for tool in found.structured_content["tools"]] == ["greet"]
        direct = await client.call_tool("greet", {})
        result = await client.call_tool("call_tool", {"name": "greet"})
        assert result.content == direct.content
        assert not result.is_error


async def test_its_tools_ask_the_model_and_the_roots_and_its_prompts_the_user(
    isolated: MakeHost, open_client: OpenClient
):
    async def sample(_: ClientRequestContext, params: CreateMessageRequestParams) -> Any:
        said = TextContent(type="text", text=f"You said: {params.messages[0].content.text}")
        return CreateMessageResult(role="assistant", content=said, model="test")

    async def roots(_: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri="file:///home/ada")])

    async def answer(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": f"Ada ({params.message})"})

    able = {"sampling_callback": sample, "list_roots_callback": roots}
    async with open_client(isolated(), elicitation_callback=answer, **able) as client:
        result = await client.call_tool("confer", {})
        assert result.content[0].text == "You said: Hello in file:///home/ada"
        told = await client.get_prompt("invite", {"where": "Rome"})
        assert told.messages[0].content.text == "Invite Ada (Whom?) to Rome."


async def test_its_prompts_and_resources_are_those_of_a_local_plugin(
    isolated: MakeHost, tmp_path: Path
):
    local, host = load(tmp_path / "local"), isolated()
    ours, theirs = await seen(host), await seen(local)
    assert ours == theirs
    about, page = ours[1].resources
    assert about.meta["acme/kind"] == "text"
    assert page.meta["ui"] == {"csp": {}}
    reasons = [item.hidden_reason for item in host.visible().prompts]
    assert reasons == ["", "it needs the tool 'gone', which is not served", ""]


async def test_a_prompt_that_needs_a_tool_of_another_plugin_is_completed(
    isolated: MakeHost, install: Install
):
    install(
        "rest",
        """
        from standards_mcp import Plugin, Tool, hookimpl

        class RestPlugin(Plugin):
            @hookimpl
            def register_tools(self):
                return [Tool(name="gone", description="Here.", function=lambda: None)]
        """,
    )
    async with started(isolated()) as host:
        lost = host.content.prompt("lost", HostContext())
        assert (await host.content.complete(lost, "grade", "3", {})).values == ["3", "31"]


async def test_filters_of_other_plugins_reach_an_isolated_tool(
    isolated: MakeHost, install: Install
):
    install(
        "rest",
        """
        from standards_mcp import Filter, InvalidInputError, Plugin, hookimpl

        class RestPlugin(Plugin):
            @hookimpl
            def register_filters(self):
                def even(value):
                    if value == 8:
                        raise RuntimeError("inside")
                    if value % 2:
                        raise InvalidInputError("it must be even")
                    return {"grade": {"$eq": str(value)}}

                return [
                    Filter(name="even", annotation=int, description="An even one.",
                           to_expression=even),
                    Filter(name="leaf", annotation=bool, description="Leaves only.",
                           to_expression=lambda value: {"is_leaf": {"$eq": value}}),
                ]
        """,
    )
    async with started(isolated()) as host:
        both = {"$and": [{"grade": {"$eq": "4"}}, {"is_leaf": {"$eq": True}}]}
        answer = await host.call_tool("filtered", {"query": "x", "even": 4, "leaf": True})
        assert answer.structured == {"filter": both}
        answer = await host.call_tool("filtered", {"query": "x"})
        assert answer.structured == {"filter": None}
        wrong = await host.call_tool("filtered", {"query": "x", "even": 3})
        assert message_of(wrong) == "even: it must be even (plugin 'rest')"
        crashed = await host.call_tool("filtered", {"query": "x", "even": 8})
        assert "(in plugin 'rest') failed with an internal error (id " in message_of(crashed)


@pytest.mark.parametrize(
    ("how", "reason"), [("segfault", "SIGSEGV"), ("close", "failed during the call: it ")]
)
async def test_a_plugin_that_dies_costs_the_calls_in_flight_and_comes_back(
    isolated: MakeHost, how: str, reason: str
):
    async with started(isolated()) as host:
        result = await host.call_tool("fail", {"how": how})
        assert result.structured["error_type"] == "api_error"
        assert reason in message_of(result)
        assert (await check_health(host.manager))["acme"].status == "failed"
        assert (await recovered(host)).text == "rested"
        assert (await check_health(host.manager))["acme"].message == "so so"


async def test_errors_are_those_of_a_local_plugin(
    isolated: MakeHost, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR, "standards_mcp")
    async with started(isolated(key="s3cret-key")) as host:
        with pytest.raises(InvalidInputError, match="no lesson"):
            await host.content.get_prompt("align", {"lesson": "none"})
        with pytest.raises(NotFoundError, match="no such thing"):
            await host.content.read_resource("acme://things/none")
        data = {"retry_after": 12.5, "status": 503, "details": {"key": "***"}}
        busy = await host.call_tool("fail", {"how": "busy"})
        assert busy.structured.items() >= data.items()
        with pytest.raises(ApiError, match="Busy") as caught:
            await host.content.get_prompt("align", {"lesson": "busy"})
        assert caught.value.data == data
        crash = await host.call_tool("fail", {"how": "crash"})
        assert crash.structured["error_type"] == "internal_error"
        assert "inside" not in message_of(crash)
        refusal = await host.call_tool("fail", {"how": "input"})
        assert refusal.structured["error_type"] == "invalid_input"
        assert message_of(refusal) == "wrong: ***"
    (told,) = caplog.records
    assert (told.getMessage(), told.plugin, told.tool) == ("tool crashed", "acme", "fail")
    assert f"(id {told.incident})" in message_of(crash)
    assert "inside" in told.exception


async def test_a_plugin_that_blocks_is_ended_and_comes_back(isolated: MakeHost):
    async with started(isolated(Timing(stuck=0.5))) as host:
        beside = asyncio.create_task(host.call_tool("rest", {"seconds": 20}))
        await anyio.sleep(0.1)
        result = await host.call_tool("block", {})
        assert result.structured["error_type"] == "timeout"
        assert "it did not answer within 0.5 s" in message_of(await beside)
        assert (await recovered(host)).text == "rested"


async def pid_of(host: Host) -> int:
    return (await host.call_tool("state", {})).structured["pid"]


async def test_a_process_in_which_a_function_never_returns_is_ended_once_nothing_else_runs(
    isolated: MakeHost, caplog: pytest.LogCaptureFixture
):
    logging.getLogger("standards_mcp").propagate = True
    async with started(isolated(Timing(stuck=2, drain=0.1))) as host:
        before = await pid_of(host)
        beside = asyncio.create_task(host.call_tool("rest", {"seconds": 5}))
        await anyio.sleep(0.1)
        assert (await host.call_tool("spin", {})).structured["error_type"] == "timeout"
        with anyio.fail_after(WAIT):
            while await pid_of(host) == before:
                await anyio.sleep(0.1)
        assert beside.done()
        assert (await beside).text == "rested"
    ends = [record.reason for record in caplog.records if record.getMessage() == "connection ended"]
    assert "it was ended: a function went on after its call was given up" in ends[0]


async def test_calls_that_are_given_up_keep_a_process_whose_function_soon_returns(
    isolated: MakeHost,
):
    stuck = 2
    async with started(isolated(Timing(stuck=stuck))) as host:
        before = await pid_of(host)
        call = asyncio.create_task(host.call_tool("rest", {"seconds": 20}))
        await anyio.sleep(0.1)
        call.cancel()
        await host.call_tool("spin", {"seconds": 0.6})
        await anyio.sleep(1.5 * stuck)
        assert await pid_of(host) == before


@linux
async def test_memory_is_limited(isolated: MakeHost):
    async with started(isolated(memory="2GB")) as host:
        result = await host.call_tool("fail", {"how": "memory"})
        assert result.structured["error_type"] in ("internal_error", "api_error")
        assert (await recovered(host)).text == "rested"


@linux
async def test_a_plugin_that_multiplies_is_ended_with_all_its_processes(isolated: MakeHost):
    async with started(isolated(processes=4)) as host:
        session = (await host.call_tool("state", {})).structured["session"]
        result = await host.call_tool("fail", {"how": "many"})
        assert "it had more than 4 processes" in message_of(result)
        await until(lambda: not processes_of(session, {}))
        assert (await recovered(host)).text == "rested"


@linux
async def test_the_process_of_a_plugin_that_failed_is_not_kept(install: Install, tmp_path: Path):
    file = tmp_path / "pid"
    install("acme", f"import os; open({str(file)!r}, 'w').write(str(os.getpid())); 1 / 0")
    async with started(load(tmp_path, plugins={"acme": {"isolate": True}})) as host:
        assert host.manager.records["acme"].status is Status.FAILED
        await until(lambda: not processes_of(int(file.read_text()), {}))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("AcmePlugin = 5", "its entry point is not a subclass of Plugin"),
    ],
)
async def test_a_plugin_that_cannot_be_loaded_fails_with_the_reason(
    install: Install, tmp_path: Path, source: str, reason: str
):
    install("acme", source)
    host = load(tmp_path, plugins={"acme": {"isolate": True}})
    async with started(host):
        assert reason in host.manager.records["acme"].reason
        assert host.visible().tools == ()
    if "RuntimeError" in reason:
        required = {"isolate": True, "required": True}
        with pytest.raises(PluginError, match="plugin 'acme' failed"):
            async with started(load(tmp_path, plugins={"acme": required})):
                pytest.fail("it started")


async def test_mistakes_in_its_settings_are_told_with_file_and_line_as_those_of_a_local_plugin(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    install(
        "acme",
        """
        from pydantic import BaseModel, SecretStr, field_validator
        from standards_mcp import Plugin, PluginSettings

        class Part(BaseModel):
            size: int

        class AcmeSettings(PluginSettings):
            limit: int
            owner: str
            word: str = ""
            parts: list[Part] = []
            key: SecretStr = SecretStr("")

            @field_validator("key")
            @classmethod
            def check(cls, value):
                raise ValueError("not a key: " + value.get_secret_value())

        class AcmePlugin(Plugin[AcmeSettings]):
            settings_type = AcmeSettings
        """,
    )
    monkeypatch.setenv("STANDARDS_MCP_PLUGINS__ACME__LIMIT", "many")
    config = tmp_path / "acme.toml"
    text = """
        [plugins.acme]
        key = "s3cret-key"
        words = "x"
        parts = [{size = 1}, {size = "big"}]
    """
    reasons: list[str] = []
    for is_isolated in ("false", "true"):
        config.write_text(f"{textwrap.dedent(text)}isolate = {is_isolated}\n", encoding="utf-8")
        host = Host(load_settings(config), installed=each_of("acme"))
        host.load()
        async with started(host):
            reasons.append(host.manager.records["acme"].reason)
    assert reasons[0] == reasons[1]
    assert f"{config}:4: [plugins.acme] words: unknown key; did you mean 'word'?" in reasons[0]
    assert "environment: STANDARDS_MCP_PLUGINS__ACME__LIMIT: input should be" in reasons[0]
    assert "not a key: ***" in reasons[0]


posix = pytest.mark.skipif(sys.platform == "win32", reason="the interpreter is a shell script")


@posix
async def test_tools_of_an_earlier_start_hide_no_failure_and_are_back_once_it_can_be_started(
    install: Install, tmp_path: Path
):
    install("acme", PLUGIN)
    python = tmp_path / "python"

    def mend() -> None:
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
        python.chmod(0o755)

    def make() -> Host:
        return load(tmp_path, Timing(retry=0.1), plugins={"acme": {"python": str(python)}})

    mend()
    async with started(make()) as host:
        assert not (await host.call_tool("state", {})).is_error
    python.unlink()
    host = make()
    assert host.visible().find("state"), "nothing is known of the failure yet"
    async with started(host):
        record = host.manager.records["acme"]
        await until(lambda: record.status is Status.FAILED)
        assert f"'{python}' cannot be started" in record.reason
        assert host.visible().tools == ()
        told = make()
        assert told.visible().tools == ()
        assert f"'{python}' cannot be started" in told.manager.records["acme"].reason
        mend()
        await until(lambda: record.status is Status.STARTED)
        assert record.reason == ""
        assert not (await host.call_tool("state", {})).is_error


async def test_a_plugin_that_was_uninstalled_is_no_longer_shown_as_served(
    install: Install, tmp_path: Path
):
    module = install("acme", PLUGIN)

    def make() -> Host:
        settings = Settings(
            state_dir=tmp_path / "state", plugins={"acme": {"python": sys.executable}}
        )
        host = Host(LoadedSettings(settings, None), installed=[])
        host.load()
        return host

    async with started(make()) as host:
        assert host.visible().find("state")
    (module.parent / "standards_mcp_acme-1.0.dist-info" / "entry_points.txt").unlink()
    async with started(make()) as host:
        record = host.manager.records["acme"]
        await until(lambda: record.status is Status.FAILED)
        assert "it is not installed in" in record.reason
    told = make()
    assert told.visible().tools == ()
    assert "it is not installed in" in told.manager.records["acme"].reason
    listed = Host(told.loaded, installed=[])
    listed.restore()
    assert listed.manager.records["acme"].status is Status.FAILED


ADDS_MORE = """
    import click
    from starlette.responses import PlainTextResponse
    from standards_mcp import Filter, Health, Plugin, Route, hookimpl, tool

    class AcmePlugin(Plugin):
        @tool(accepts_filters=True)
        def find(self, query: str, filter: dict | None) -> dict:
            "Find."
            return {"filter": filter}

        @hookimpl
        def wrap_tool_call(self, call_next):
            return call_next

        @hookimpl
        def register_filters(self):
            return [Filter(name="even", annotation=int, description="Even.",
                           to_expression=lambda value: {"grade": {"$eq": str(value)}})]

        @hookimpl
        def register_routes(self):
            async def look(request):
                "Look."
                return PlainTextResponse("hello")
            return [Route(path="/look", function=look)]

        @hookimpl
        def register_commands(self):
            return [click.Command("greet", callback=lambda: click.echo("hello"))]

        @hookimpl
        async def check_health(self):
            return Health(status="ok", message="2 books")
"""
LOST = (
    "these parts have no effect because the plugin is isolated: commands, filters, routes, "
    "wrap_tool_call; to use them, load it in the host's process: take isolate and python out of "
    "[plugins.acme]"
)


async def test_a_plugin_is_served_without_the_parts_that_need_the_process_of_the_host(
    install: Install, tmp_path: Path
):
    install("acme", ADDS_MORE)
    async with started(load(tmp_path, plugins={"acme": {"isolate": True}})) as host:
        record = host.manager.records["acme"]
        assert (record.status, record.reason) == (Status.STARTED, LOST)
        health = (await check_health(host.manager))["acme"]
        assert (health.status, health.message) == ("degraded", f"2 books; {LOST}")
        assert (await host.call_tool("find", {"query": "x"})).structured == {"filter": None}
        refused = message_of(await host.call_tool("find", {"query": "x", "even": 4}))
        assert "even: unknown argument" in refused
        async with route_client(host, "acme") as client:
            assert (await client.get("/look")).status_code == 404
        assert host.manager.commands() == {}
    again = load(tmp_path, plugins={"acme": {"isolate": True}})
    assert again.manager.records["acme"].reason == LOST, "known before the process runs"
    listed = Host(again.loaded, installed=isolate(each_of("acme"), again.loaded, again.state_dir))
    listed.restore()
    assert listed.manager.records["acme"].reason.startswith(LOST)
    only_commands = """
        from standards_mcp import Plugin, hookimpl

        class RestPlugin(Plugin):
            @hookimpl
            def register_commands(self):
                return []
    """
    install("rest", only_commands)
    async with started(load(tmp_path, plugins={"rest": {"isolate": True}})) as host:
        assert "isolated: commands; to use" in host.manager.records["rest"].reason
        assert (await check_health(host.manager))["rest"].status == "ok", "nobody misses them"


async def test_another_interpreter_runs_a_plugin_that_is_not_installed_here(
    install: Install, tmp_path: Path
):
    with pytest.raises(ConfigError, match="no such plugin is installed"):
        load(tmp_path, plugins={"acme": {"isolate": True}})
    install("acme", PLUGIN)
    keys = {"python": sys.executable}
    loaded = LoadedSettings(
        Settings(state_dir=tmp_path / "state", plugins={"acme": keys}, trusted=("other",)), None
    )
    host = Host(loaded, installed=[])
    host.load()
    async with started(host):
        assert (await host.call_tool("acme.add", {"a": 1})).structured["total"] == 1
    keys["python"] = str(tmp_path / "none")
    host = Host(LoadedSettings(Settings(plugins={"acme": keys}), None), installed=[])
    host.load()
    async with started(host):
        assert "cannot be started" in host.manager.records["acme"].reason


async def test_an_interpreter_with_another_version_of_the_host_is_told_as_the_reason(
    isolated: MakeHost, monkeypatch: pytest.MonkeyPatch
):
    class LaterPrompt(Described):
        later: str

    class OfAnotherVersion(Description):
        prompts: tuple[LaterPrompt, ...] = ()

    async with started(isolated()):
        pass
    monkeypatch.setattr("standards_mcp.remote.isolated.Description", OfAnotherVersion)
    host = isolated()
    assert host.manager.records["acme"].status is Status.REGISTERED, "what was kept is forgotten"
    async with started(host):
        reason = host.manager.records["acme"].reason
    assert f"the standards-mcp of {sys.executable} describes plugins in another format" in reason
    assert "install the version there that runs here" in reason


@linux
def test_it_ends_where_the_host_was_killed_before_it_could_know(install: Install, tmp_path: Path):
    install("acme", "import time; time.sleep(600)")
    config = {"name": "acme", "memory": None, "settings": {"state_dir": str(tmp_path)}}
    command = [sys.executable, "-m", "standards_mcp.server.isolated", "acme"]
    line = json.dumps(config).encode() + b"\n"
    subprocess.run(command, input=line, timeout=WAIT, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("ttl", [60, 0])
async def test_each_caller_of_an_isolated_tool_has_answers_of_its_own(
    install: Install, tmp_path: Path, ttl: int
):
    install("acme", PLUGIN)
    overrides = {"count": {"cache_ttl": ttl}}
    tables = {"plugins": {"acme": {"isolate": True}}, "tools": {"overrides": overrides}}
    async with started(load(tmp_path, DEFAULT_TIMING, **tables)) as host:
        found = [
            (await host.call_tool("count", {}, HostContext(Principal(name)))).text
            for name in ("ada", "ben", "ada")
        ]
    assert found == ["ada 1", "ben 2", "ada 1" if ttl else "ada 3"]


async def test_its_secrets_are_in_no_log_no_error_and_no_list_of_processes(
    isolated: MakeHost, caplog: pytest.LogCaptureFixture
):
    stream = io.StringIO()
    host = isolated(key="s3cret-key", limit=100_000)
    configure_logging(logging.DEBUG, host.secrets, stream=stream)
    async with started(host):
        pid = await pid_of(host)
        for name in ("cmdline", "environ") if sys.platform == "linux" else ():
            assert b"s3cret-key" not in Path(f"/proc/{pid}/{name}").read_bytes()
        assert "s3cret-key" not in repr(host.manager.records["acme"])
        await host.call_tool("fail", {"how": "print"})
        await until(lambda: "the key is *** of 100000" in stream.getvalue())
        await host.call_tool("fail", {"how": "crash"})
        reason = message_of(await host.call_tool("fail", {"how": "tell"}))
    assert "it ended with exit code 7" in reason
    assert "its last words: *** is wrong" in reason
    assert "tool crashed" not in reason
    assert "s3cret-key" not in stream.getvalue() + caplog.text
