"""What observers learn of calls."""

from __future__ import annotations

from collections import Counter

import anyio
import pytest
from support.hosts import MakeHost
from support.waiting import until

from standards_mcp import InvalidInputError, Plugin, Prompt, Resource, Tool, hookimpl
from standards_mcp.calls.call import CallRecord
from standards_mcp.calls.context import HostContext, Principal
from standards_mcp.contributions.selection import Access
from standards_mcp.errors import NotAuditedError, NotServedError, UnknownToolError
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio


class WorkPlugin(Plugin):
    failures = 0

    @hookimpl
    def register_tools(self):
        async def work(how: str = "well") -> str:
            if how == "slowly wrong":
                WorkPlugin.failures += 1
                await anyio.sleep(0.05)
            if how.endswith("wrong"):
                raise InvalidInputError("no")
            if how == "broken":
                raise OSError("broken")
            return how

        async def wait() -> None:
            await anyio.sleep(60)

        return [
            Tool(name="work", description="Work", function=work, read_only=True, cache_ttl=60),
            Tool(name="wait", description="Wait", function=wait),
        ]

    @hookimpl
    def register_prompts(self):
        def greet(name: str) -> str:
            return f"Hello {name}"

        complete = {"name": lambda typed, _: [f"{typed}da"]}
        return [Prompt(name="greet", description="Greet", function=greet, complete=complete)]

    @hookimpl
    def register_resources(self):
        return [Resource(uri="work://all", name="all", description="All", function=lambda: "all")]


class Recorder:
    """Counts calls by caller, and keeps what has run and what runs."""

    def __init__(self) -> None:
        self.callers = Counter[str]()
        self.running: list[CallRecord] = []
        self.ended: list[CallRecord] = []

    def call_started(self, record: CallRecord) -> None:
        self.callers[record.caller] += 1
        self.running.append(record)

    def call_ended(self, record: CallRecord) -> None:
        self.running.remove(record)
        self.ended.append(record)


@pytest.fixture
def host(make_host: MakeHost) -> Host:
    return make_host({"work": WorkPlugin})


@pytest.fixture
def recorder(host: Host) -> Recorder:
    recorder = Recorder()
    host.observe(recorder)
    return recorder


class FailingRecorder:
    def call_started(self, record: CallRecord) -> None:
        raise ZeroDivisionError(record.name)

    def call_ended(self, record: CallRecord) -> None:
        raise ZeroDivisionError(record.name)


async def test_an_observer_counts_the_calls_of_each_caller_and_its_failure_fails_no_call(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    host, recorder = make_host({"work": WorkPlugin}), Recorder()
    host.observe(FailingRecorder())
    host.observe(recorder)
    for name in ("ada", "ben", "ada"):
        assert (await host.call_tool("work", {}, HostContext(Principal(name)))).text == "well"
    assert recorder.callers == {"ada": 2, "ben": 1}
    assert [record.is_cached for record in recorder.ended] == [False, False, True]
    assert caplog.text.count("an observer of calls failed") == 6


@pytest.mark.parametrize(
    ("how", "outcome"),
    [("well", "ok"), ("wrong", "invalid_input"), ("broken", "internal_error")],
)
async def test_a_record_says_how_a_call_ended(
    host: Host, recorder: Recorder, how: str, outcome: str
):
    result = await host.call_tool("work", {"how": how})
    (record,) = recorder.ended
    assert (record.kind, record.name, record.plugin) == ("tool", "work", "work")
    assert record.arguments == {"how": how}
    assert record.outcome == outcome
    assert record.seconds > 0
    assert bool(record.incident) == (how == "broken")
    assert record.incident in result.text


async def test_calls_of_every_kind_are_recorded(host: Host, recorder: Recorder):
    await host.content.get_prompt("greet", {"name": "Ada"})
    await host.content.read_resource("work://all")
    greet = host.content.prompt("greet", HostContext())
    await host.content.complete(greet, "name", "A", {})
    found = [(record.kind, record.name, record.outcome) for record in recorder.ended]
    assert found == [
        ("prompt", "greet", "ok"),
        ("resource", "all", "ok"),
        ("completion", "greet", "ok"),
    ]


async def test_a_call_runs_until_it_is_cancelled(host: Host, recorder: Recorder):
    async with anyio.create_task_group() as group:
        group.start_soon(host.call_tool, "wait", {})
        await until(lambda: recorder.running)
        group.cancel_scope.cancel()
    assert recorder.running == []
    assert [record.outcome for record in recorder.ended] == ["cancelled"]


async def test_an_observer_learns_of_what_is_not_served(host: Host, recorder: Recorder):
    ada = HostContext(Principal("ada", Access(names=("greet",))), "a session")
    for name in ("work", "play" * 100):
        with pytest.raises(UnknownToolError):
            await host.call_tool(name, {"how": "well"}, ada)
    with pytest.raises(NotServedError):
        await host.content.get_prompt("leave", {}, context=ada)
    for uri in ("work://all", "work://none"):
        with pytest.raises(NotServedError):
            await host.content.read_resource(uri, ada)
        with pytest.raises(NotServedError):
            await host.content.subscribe(uri, lambda *_: None, ada)
    assert [(record.kind, record.name) for record in recorder.ended] == [
        ("tool", "work"),
        ("tool", "play" * 50),
        ("prompt", "leave"),
        ("resource", "work://all"),
        ("subscription", "work://all"),
        ("resource", "work://none"),
        ("subscription", "work://none"),
    ]
    assert not recorder.running
    about = {(each.caller, each.session, each.plugin, each.outcome) for each in recorder.ended}
    assert about == {("ada", "a session", "", "not_served")}
    assert recorder.ended[0].arguments == {"how": "well"}


async def test_a_gate_can_refuse_every_kind_of_call(host: Host, recorder: Recorder):
    def refuse(record: CallRecord) -> None:
        assert record.outcome == "running"
        raise NotAuditedError

    host.guard(refuse)
    result = await host.call_tool("work", {})
    assert result.structured["error_type"] == "not_audited"
    with pytest.raises(NotAuditedError):
        await host.content.get_prompt("greet", {"name": "Ada"})
    with pytest.raises(NotAuditedError):
        await host.content.read_resource("work://all")
    prompt = host.content.prompt("greet", HostContext())
    assert not (await host.content.complete(prompt, "name", "A", {})).values
    assert [each.outcome for each in recorder.ended] == ["not_audited"] * 4
