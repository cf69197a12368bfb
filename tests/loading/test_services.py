"""Services: what plugins provide to each other, and what happens without a provider."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import anyio
import pytest
from support.hosts import MakeHost

from standards_mcp import Health, Plugin, PluginContext, Service, hookimpl, tool
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.timing import Timing
from standards_mcp.errors import ConfigError, PluginError, ServiceError
from standards_mcp.host import Host
from standards_mcp.loading.health import services_health
from standards_mcp.loading.records import PluginInfo, Status

pytestmark = pytest.mark.anyio


class Shelf(Protocol):
    """What plugins share in these tests."""

    title: str


class Books:
    def __init__(self, title: str = "books") -> None:
        self.title, self.closed = title, 0

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed += 1


class Maps(Books):
    pass


def providing(*services: Service[Any]) -> type[Plugin]:
    class Provider(Plugin):
        @hookimpl
        def register_services(self) -> Iterable[Service[Any]]:
            return services

    return Provider


def shelf(title: str = "books", **more: Any) -> Service[Any]:
    return Service(type=Shelf, factory=lambda: Books(title), **more)


class Reader(Plugin):
    needs = (Shelf,)

    @tool(read_only=True)
    def read_title(self) -> str:
        """Read the title of the shelf."""
        return self.context.service(Shelf).title


class Browser(Plugin):
    uses = (Shelf,)

    @tool(read_only=True)
    def browse(self) -> str:
        """Read the title of the shelf, if there is one."""
        found = self.context.service(Shelf, None)
        return found.title if found else "nothing"


async def answer(host: Host, name: str) -> str:
    result = await host.call_tool(name, {})
    assert not result.is_error, result.text
    return result.text


@pytest.mark.parametrize("provider", ["a_provider", "z_provider"])
async def test_a_plugin_uses_what_another_provides_whichever_is_loaded_first(
    make_host: MakeHost, provider: str
):
    host = make_host({"reader": Reader, provider: providing(shelf())})
    assert await answer(host, "read_title") == "books"


async def test_it_is_made_at_the_first_use_and_once(make_host: MakeHost):
    made: list[Books] = []

    def factory() -> Books:
        made.append(Books())
        return made[-1]

    provider = providing(Service(type=Shelf, factory=factory))
    host = make_host({"reader": Reader, "browser": Browser, "shelves": provider})
    assert made == []
    assert [await answer(host, "read_title"), await answer(host, "browse")] == ["books", "books"]
    assert host.service(Shelf) is made[0]
    assert len(made) == 1


async def test_without_a_provider_what_needs_it_is_disabled_and_what_uses_it_goes_on(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    host = make_host({"reader": Reader, "other_reader": Reader, "browser": Browser})
    record = host.manager.records["reader"]
    assert record.status is Status.DISABLED
    assert record.reason == "it needs Shelf, and no installed plugin provides it"
    assert await answer(host, "browse") == "nothing"
    (line,) = [each for each in caplog.records if each.message == "plugins are disabled"]
    assert line.__dict__["plugins"] == ["other_reader", "reader"]


def test_plugins_that_need_a_disabled_one_are_disabled_in_turn(make_host: MakeHost):
    class Title:
        """A service of a plugin that itself needs one."""

    class Titles(Reader):
        @hookimpl
        def register_services(self):
            return [Service(type=Title, factory=Title)]

    class Cards(Plugin):
        needs = (Title,)

    host = make_host({"cards": Cards, "titles": Titles})
    reason = host.manager.records["cards"].reason
    assert reason.startswith("it needs Title, and")
    assert host.manager.records["cards"].status is Status.DISABLED


@pytest.mark.parametrize("more", [{"strict": True}, {"plugins": {"reader": {"required": True}}}])
def test_a_required_plugin_without_its_service_stops_the_host(
    make_host: MakeHost, more: dict[str, Any]
):
    with pytest.raises(PluginError, match="'reader' failed: it needs Shelf"):
        make_host({"reader": Reader}, **more)


async def test_of_two_providers_the_configuration_chooses(make_host: MakeHost):
    shelves = {name: providing(shelf(name)) for name in ("books", "maps")}
    plugins = {"reader": Reader, **shelves}
    host = make_host(plugins)
    reason = host.manager.records["reader"].reason
    assert "Shelf, which plugins 'books' and 'maps' provide" in reason
    assert 'set Shelf = "books" in [services], for example' in reason
    for chosen in ("books", "maps"):
        host = make_host(plugins, services={"Shelf": chosen})
        assert await answer(host, "read_title") == chosen
    # A variable of the environment gives the name in small letters.
    host = make_host(plugins, services={"shelf": "maps"})
    assert await answer(host, "read_title") == "maps"


def test_a_chosen_plugin_that_provides_nothing_is_named(make_host: MakeHost):
    plugins = {"reader": Reader, "books": providing(shelf()), "other": Plugin}
    host = make_host(plugins, services={"Shelf": "other"})
    why = "[services] Shelf = 'other', and plugin 'other' does not provide Shelf"
    assert host.manager.records["reader"].reason == why
    host = make_host(plugins, services={"Shelf": "gone"})
    assert "no plugin 'gone' is installed" in host.manager.records["reader"].reason


def test_a_provider_that_fails_is_named_with_its_reason(make_host: MakeHost):
    class Broken(Plugin):
        @hookimpl
        def register_services(self) -> Iterable[Service[Any]]:
            raise RuntimeError("no shelf today")

    host = make_host({"reader": Reader, "broken": Broken}, services={"Shelf": "broken"})
    assert "plugin 'broken' failed: RuntimeError: no shelf" in host.manager.records["reader"].reason


@pytest.mark.parametrize(
    ("services", "reason"),
    [((5,), "register_services returned a int"), ((shelf(), shelf()), "it provides Shelf twice")],
)
def test_a_wrong_registration_fails_its_plugin(
    make_host: MakeHost, services: tuple[Any, ...], reason: str
):
    record = make_host({"wrong": providing(*services)}).manager.records["wrong"]
    assert (record.status, record.reason) == (Status.FAILED, reason)


def test_a_service_that_is_not_declared_is_refused(make_host: MakeHost):
    class Sly(Plugin):
        @hookimpl
        def register_tools(self) -> list[Any]:
            self.context.service(Shelf)
            return []

    host = make_host({"sly": Sly, "books": providing(shelf())})
    reason = host.manager.records["sly"].reason
    assert reason == "it asks for Shelf; name it in the class's needs or uses"


async def test_services_are_closed_in_reverse_order_after_the_lifespans(make_host: MakeHost):
    events: list[str] = []

    def service(kind: type[Books]) -> Service[Any]:
        async def close(_: object) -> None:
            await anyio.lowlevel.checkpoint()
            events.append(kind.__name__)

        return Service(type=kind, factory=kind, close=close)

    class Last(Plugin):
        needs = (Books, Maps)

        @hookimpl
        @asynccontextmanager
        async def lifespan(self) -> Any:
            self.context.service(Books)
            self.context.service(Maps)
            yield
            events.append("lifespan")

    host = make_host({"last": Last, "provider": providing(service(Maps), service(Books))})
    async with host.running():
        pass
    assert events == ["lifespan", "Maps", "Books"]


async def test_they_are_closed_even_when_the_host_is_cancelled_or_one_fails(
    make_host: MakeHost, caplog: pytest.LogCaptureFixture
):
    async def fail(_: object) -> None:
        raise RuntimeError("stuck")

    books = Service(type=Books, factory=Books, close=lambda each: each.aclose())
    maps = Service(type=Maps, factory=Maps, close=fail)
    host = make_host({"provider": providing(books, maps)})
    opened = host.service(Books)
    host.service(Maps)
    with anyio.CancelScope() as scope:
        async with host.running():
            scope.cancel()
            await anyio.sleep(60)
    assert opened.closed == 1
    assert "service did not close cleanly" in caplog.text


async def test_health_has_facts_is_masked_and_never_hangs(make_host: MakeHost):
    async def well(books: Books) -> Health:
        return Health(status="ok", message=books.title, facts={"books": 3})

    async def crash(_: object) -> Health:
        raise ServiceError("the shelf has fallen")

    async def hang(_: object) -> Health:
        await anyio.sleep_forever()
        raise AssertionError

    services = (
        Service(type=Shelf, factory=Books, health=well, facts={"room": "hall"}),
        Service(type=Books, factory=Books, health=crash),
        Service(type=Maps, factory=Maps, health=hang, facts={"room": "cellar"}, is_remote=True),
    )
    timing = Timing(health=0.05)
    host = make_host({"provider": providing(*services)}, timing=timing)
    found = await services_health(host.manager)
    assert found["Shelf"] == Health(
        status="ok", message="books", facts={"room": "hall", "books": 3}
    )
    assert (found["Books"].status, found["Books"].message) == ("failed", "the shelf has fallen")
    assert found["Maps"].status == "failed"
    assert found["Maps"].facts == {"room": "cellar"}
    at_start = await services_health(host.manager, asks_remote=False)
    assert at_start["Maps"] == Health(status="ok", facts={"room": "cellar"})


async def test_a_factory_that_fails_is_the_provider_s_failure(make_host: MakeHost):
    def factory() -> Books:
        raise KeyError("shelf")

    provider = providing(Service(type=Shelf, factory=factory))
    host = make_host({"reader": Reader, "books": provider})
    with pytest.raises(PluginError, match="'books' failed: it cannot provide Shelf: KeyError"):
        host.service(Shelf)


def test_a_mistake_in_the_settings_of_a_provider_stops_the_host(make_host: MakeHost):
    with pytest.raises(ConfigError, match=r"^\[plugins.books\] colour: unknown key"):
        make_host({"books": providing(shelf())}, plugins={"books": {"colour": "red"}})


def test_only_the_providers_of_what_a_plugin_uses_are_loaded_with_it(tmp_path: Path):
    types = {"reader": Reader, "books": providing(shelf()), "other": Plugin}
    package = Shelf.__module__.partition(".")[0]
    packages = {name: package if name == "books" else name for name in types}
    installed = [
        PluginInfo(name=name, load=lambda found=kind: found, package=packages[name])
        for name, kind in types.items()
    ]
    loaded = LoadedSettings(Settings(state_dir=tmp_path), None)
    host = Host(loaded, installed=installed, remembers=False)
    host.load(only=("reader",))
    states = {name: record.status for name, record in host.manager.records.items()}
    assert states == {"books": "registered", "reader": "registered", "other": "discovered"}
    host.load()
    assert host.manager.records["other"].status is Status.REGISTERED
    assert len(host.visible().tools) == 1


def test_in_a_unit_test_a_mapping_gives_services(tmp_path: Path):
    books = Books()
    given: dict[Any, object] = {Shelf: books}
    context = PluginContext(name="unit", state_dir=tmp_path, open_service=given.__getitem__)
    assert context.service(Shelf) is books
    assert context.service(Maps, None) is None
    with pytest.raises(PluginError, match="the service Maps is not available"):
        context.service(Maps)
