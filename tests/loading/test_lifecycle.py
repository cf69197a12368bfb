from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from support.hosts import MakeHost, served
from support.waiting import WAIT, let_time_pass, until

from standards_mcp import Plugin, PluginError, Tool, hookimpl
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.timing import Timing
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo, Status

pytestmark = pytest.mark.anyio
Step = Callable[[], Awaitable[object]]
PATIENT = Timing(start=WAIT, head_start=WAIT, stop=WAIT)


class Panic(BaseException):
    """What native code raises; not an Exception."""


def work() -> str:
    """Do the work."""
    return "done"


@pytest.fixture
def events() -> list[str]:
    return []


@pytest.fixture
def living(events: list[str]) -> Callable[..., type[Plugin[Any]]]:
    """Return a function that makes a plugin with a tool and a lifespan of these steps."""

    def make(name: str, start: Step | None = None, stop: Step | None = None) -> type[Plugin[Any]]:
        class Living(Plugin[Any]):
            @hookimpl
            def register_tools(self) -> list[Tool]:
                return [Tool(name=name, function=work)]

            @hookimpl
            @asynccontextmanager
            async def lifespan(self) -> AsyncGenerator[None]:
                if start:
                    await start()
                events.append(f"start {name}")
                try:
                    yield
                finally:
                    await anyio.sleep(0.01)
                    if stop:
                        await stop()
                    events.append(f"stop {name}")

        return Living

    return make


def with_lifespan(function: Callable[[], object]) -> type[Plugin[Any]]:
    return type("Made", (Plugin,), {"lifespan": hookimpl(lambda _: function())})


def raising(exc: BaseException) -> Step:
    async def step() -> None:
        await anyio.lowlevel.checkpoint()
        raise exc

    return step


def hang() -> Awaitable[object]:
    let_time_pass()
    return anyio.sleep_forever()


async def hang_stubbornly() -> None:
    try:
        await hang()
    except asyncio.CancelledError:
        await anyio.sleep(0.05)
        raise


def reason(host: Host, name: str = "acme") -> str:
    record = host.manager.records[name]
    assert record.status is Status.FAILED
    assert record.contributions.tools == ()
    return record.reason


async def test_plugins_start_by_name_and_stop_in_reverse(
    make_host: MakeHost, living: Any, events: list[str]
):
    host = make_host({name: living(name) for name in ("c", "a", "b")})
    async with host.running():
        assert {record.status for record in host.manager.records.values()} == {Status.STARTED}
        assert events == ["start a", "start b", "start c"]
        events.clear()
    assert events == ["stop c", "stop b", "stop a"]


FAILURES = {
    "raises": (raising(ValueError("no\nluck")), "its lifespan failed: ValueError: no luck"),
    "exits": (raising(SystemExit(3)), "its lifespan failed: it called sys.exit(3)"),
    "panics": (raising(Panic("native")), "its lifespan failed: Panic: native"),
    "cancels": (raising(asyncio.CancelledError()), "its lifespan failed: CancelledError"),
    "hangs": (hang, "its lifespan did not start within 90 seconds"),
    "hangs_stubbornly": (hang_stubbornly, "its lifespan did not start within 90 seconds"),
}


async def test_plugins_that_do_not_start_lose_their_tools_and_the_others_go_on(
    make_host: MakeHost, living: Any, events: list[str]
):
    plugins = {name: living(name, start) for name, (start, _) in FAILURES.items()}
    host = make_host(plugins | {"a": living("a"), "z": living("z")}, timing=PATIENT)
    async with host.running():
        assert served(host) == ["a", "z"]
        for name, (_, expected) in FAILURES.items():
            assert reason(host, name) == expected
    assert events == ["start a", "start z", "stop z", "stop a"]


@contextmanager
def _not_async() -> Any:
    yield


@asynccontextmanager
async def _without_a_yield() -> AsyncGenerator[None]:
    if work() == "":
        yield


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: sys.exit("bye"), "it called sys.exit('bye')"),
        (lambda: 5, "TypeError: 'builtins.int' object does not support the asynchronous"),
        (_not_async, "TypeError: "),
        (_without_a_yield, "RuntimeError: generator didn't yield"),
    ],
)
async def test_a_lifespan_that_is_none_fails_the_plugin(
    make_host: MakeHost, living: Any, function: Callable[[], object], expected: str
):
    host = make_host({"acme": with_lifespan(function), "good": living("good")})
    async with host.running():
        assert reason(host).startswith(f"its lifespan failed: {expected}")
        assert served(host) == ["good"]


@pytest.mark.parametrize(
    "settings", [{"strict": True}, {"plugins": {"b": {"required": True}}}], ids=str
)
@pytest.mark.parametrize("start", [raising(ValueError("x")), raising(SystemExit(1)), hang])
async def test_a_failure_to_start_that_matters_is_fatal_and_stops_what_has_started(
    make_host: MakeHost,
    living: Any,
    events: list[str],
    start: Step,
    settings: dict[str, Any],
):
    plugins = {"a": living("a"), "b": living("b", start), "c": living("c")}
    host = make_host(plugins, timing=PATIENT, **settings)
    with pytest.raises(PluginError) as caught:
        async with host.running():
            pytest.fail("it started")
    assert caught.value.plugin == "b"
    assert caught.value.reason == reason(host, "b")
    assert events == ["start a", "stop a"]


async def test_a_plugin_that_takes_its_time_to_start_does_not_hold_up_the_next(
    make_host: MakeHost, living: Any, events: list[str]
):
    later_started = asyncio.Event()

    async def set_off() -> None:
        later_started.set()

    plugins = {"a": living("a", later_started.wait), "b": living("b", set_off)}
    async with make_host(plugins, timing=Timing(head_start=0.01)).running():
        assert events == ["start b", "start a"]
    assert events[2:] == ["stop b", "stop a"]


async def test_a_plugin_that_does_not_stop_cleanly_is_logged_and_the_rest_stops(
    make_host: MakeHost,
    living: Any,
    events: list[str],
    caplog: pytest.LogCaptureFixture,
):
    failures = [ValueError("x"), SystemExit(1), Panic("x"), asyncio.CancelledError()]
    plugins = {f"f{i}": living(f"f{i}", None, raising(exc)) for i, exc in enumerate(failures)}
    plugins |= {"a": living("a"), "hangs": living("hangs", None, hang), "z": living("z")}
    host = make_host(plugins, timing=PATIENT)
    async with host.running():
        events.clear()
    assert events == ["stop z", "stop a"]
    told = {vars(record)["plugin"]: record.getMessage() for record in caplog.records}
    assert told == dict.fromkeys(("f0", "f1", "f2", "f3"), "plugin did not stop cleanly") | {
        "hangs": "plugin did not stop within 90 seconds"
    }
    assert all(record.levelno == logging.ERROR for record in caplog.records)


@pytest.mark.parametrize("how", ["cancelled", "failed"])
async def test_plugins_stop_in_order_when_the_server_ends_early(
    make_host: MakeHost, living: Any, events: list[str], how: str
):
    host = make_host({"a": living("a"), "b": living("b")})
    with anyio.CancelScope() as scope, suppress(RuntimeError):
        async with host.running():
            events.clear()
            if how == "failed":
                raise RuntimeError("server")
            scope.cancel()
            await anyio.sleep(60)
    assert events == ["stop b", "stop a"]


async def test_cancelling_the_start_stops_what_has_started_and_what_was_starting(
    make_host: MakeHost, living: Any, events: list[str]
):
    async def interrupted() -> None:
        starting.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            events.append("interrupted b")

    host = make_host({"a": living("a"), "b": living("b", interrupted), "c": living("c")})
    with anyio.CancelScope() as starting:
        async with host.running():
            pytest.fail("it started")
    assert events == ["start a", "interrupted b", "stop a"]


async def test_a_lifespan_may_hold_a_task_group(make_host: MakeHost, events: list[str]):
    async def background() -> None:
        begun.append(True)
        try:
            await anyio.sleep_forever()
        finally:
            events.append("background ended")

    begun: list[bool] = []

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(background)
            yield
            group.cancel_scope.cancel()

    host = make_host({"a": with_lifespan(lifespan), "b": with_lifespan(lifespan)})
    async with host.running():
        await until(lambda: len(begun) == 2)
        assert events == []
    assert events == ["background ended", "background ended"]


async def test_a_failed_start_is_remembered(make_host: MakeHost, living: Any):
    host = make_host({"acme": living("acme", raising(ValueError("x"))), "good": living("good")})
    async with host.running():
        pass
    plugins = [PluginInfo(name=name, load=pytest.fail) for name in ("acme", "good")]
    settings = LoadedSettings(Settings(state_dir=host.state_dir), None)
    again = Host(settings, installed=plugins)
    again.restore()
    assert again.manager.records["acme"].reason.startswith(
        "its lifespan failed: ValueError: x (at the last start"
    )
    assert again.manager.records["good"].status is Status.STARTED
