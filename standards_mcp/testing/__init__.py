"""A pytest plugin for the tests of plugins.

pytest loads this module by an entry point, so the fixtures `connect` and `connect_http` exist if
this distribution is installed. `check_plugin` is a function to import. Because the module is loaded
at the start of every session, it imports as little as possible.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from standards_mcp.config.timing import DEFAULT_TIMING

if TYPE_CHECKING:
    import httpx2
    from mcp import Client

    from standards_mcp.plugin import Plugin

__all__ = ["Allowed", "Call", "Connect", "ConnectHttp", "Services", "check_plugin"]


Call: TypeAlias = tuple[str, Mapping[str, Any]]
"""A call of a tool or a prompt that must succeed: its declared name and its arguments."""

Request: TypeAlias = tuple[str, str]
"""A request for a route that must succeed: its method, and its path below the plugin's path."""

Services: TypeAlias = Mapping[Callable[..., Any], object]
"""Objects to use in place of the services of plugins, by their types."""

_NOTHING: Final[Mapping[Any, Any]] = {}


@dataclass(frozen=True, slots=True)
class Uses:
    """The calls and requests to make, and the client that makes them; see `check_plugin`."""

    calls: Sequence[Call]
    prompts: Sequence[Call]
    reads: Sequence[str]
    requests: Sequence[Request]
    generation: str
    client: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Limits and exceptions for `check_plugin`.

    Attributes:
        import_seconds: CPU time for its import, in a fresh interpreter that has loaded the host.
        imports: Heavy packages that may be imported with the plugin's module.
        start_seconds: Time for its lifespan to start.
        blocked_seconds: Time for which it may block the event loop.
        destructive: Declared names of the tools that delete or overwrite by design.
    """

    import_seconds: float = 0.5
    imports: Collection[str] = ()
    start_seconds: float = DEFAULT_TIMING.start
    blocked_seconds: float = 0.1
    destructive: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Connect:
    """The function of the fixture `connect`.

    Attributes:
        folder: The plugins keep their state here.
    """

    folder: Path

    @asynccontextmanager
    async def __call__(  # noqa: PLR0913  - keyword arguments, mostly omitted
        self,
        plugin_type: type[Plugin[Any]],
        /,
        *,
        name: str,
        generation: str = "auto",
        beside: Mapping[str, type[Plugin[Any]]] = _NOTHING,
        services: Services = _NOTHING,
        config: Mapping[str, Any] = _NOTHING,
        client: Mapping[str, Any] = _NOTHING,
        **settings: Any,
    ) -> AsyncGenerator[Client]:
        """Serve a plugin within this process and connect a client of the official SDK to it.

        The host discovers no installed plugin, reads no setting of the machine, and is strict:
        every failure raises.

        Args:
            plugin_type: The class of the plugin.
            name: The plugin's name, as in its entry point.
            generation: The client's protocol: ``auto`` (the newest one), ``legacy`` (the handshake
                of 2024 and 2025) or a version such as ``2026-07-28``.
            beside: Other plugins by their names, for example with the tools that a prompt needs.
            services: Objects to use in place of the services of plugins, by their types, such as
                ``{Catalog: catalog}`` for a plugin that needs a catalog.
            config: More of the host's configuration, by the keys of the TOML file: the tables of
                the other plugins, and settings with the name of an argument of this function.
            client: More arguments of the SDK's ``Client``, such as ``elicitation_callback``, which
                answers the questions of a tool.
            settings: The plugin's own settings.

        Raises:
            PluginError: A plugin failed, with the reason.
        """
        from .serving import PluginUnderTest, connected  # noqa: PLC0415  - see the module

        tested = PluginUnderTest(plugin_type, name, settings, beside, config, services)
        async with connected(tested.loaded_host(self.folder), generation, client) as made:
            yield made


@dataclass(frozen=True, slots=True)
class ConnectHttp:
    """The function of the fixture `connect_http`.

    Attributes:
        folder: The plugins keep their state here.
    """

    folder: Path

    @asynccontextmanager
    async def __call__(
        self,
        plugin_type: type[Plugin[Any]],
        /,
        *,
        name: str,
        scopes: Collection[str] | None = None,
        beside: Mapping[str, type[Plugin[Any]]] = _NOTHING,
        services: Services = _NOTHING,
        config: Mapping[str, Any] = _NOTHING,
        **settings: Any,
    ) -> AsyncGenerator[httpx2.AsyncClient]:
        """Serve the routes of a plugin within this process and open a client of them.

        The client's URLs are relative to the plugin's path: ``client.get("/reports/7")``. See
        `Connect` for the other arguments.

        Args:
            scopes: The scopes of the client's token; by default there is no restriction.
        """
        from .serving import PluginUnderTest, route_client  # noqa: PLC0415  - see the module

        tested = PluginUnderTest(plugin_type, name, settings, beside, config, services)
        host = tested.loaded_host(self.folder)
        async with host.running(), route_client(host, name, scopes) as client:
            yield client


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    """Return a function that serves a plugin in memory; see `Connect`.

    Use it within the test, ``async with connect(AcmePlugin, name="acme") as client``, under any
    pytest plugin that runs async tests on asyncio.
    """
    return Connect(tmp_path / "standards-mcp")


@pytest.fixture
def connect_http(tmp_path: Path) -> ConnectHttp:
    """Return a function that serves the HTTP routes of a plugin; see `ConnectHttp`."""
    return ConnectHttp(tmp_path / "standards-mcp")


def check_plugin(  # noqa: PLR0913  - keyword arguments, mostly omitted
    plugin_type: type[Plugin[Any]],
    /,
    *,
    name: str,
    calls: Sequence[Call] = (),
    prompts: Sequence[Call] = (),
    reads: Sequence[str] = (),
    requests: Sequence[Request] = (),
    allow: Allowed | None = None,
    generation: str = "auto",
    beside: Mapping[str, type[Plugin[Any]]] = _NOTHING,
    services: Services = _NOTHING,
    config: Mapping[str, Any] = _NOTHING,
    client: Mapping[str, Any] = _NOTHING,
    **settings: Any,
) -> None:
    """Check that a plugin follows the rules of the host, and does not disturb other plugins.

    Call it from a plain test, not from an async one: it runs its own event loop. It calls only the
    tools, prompts, resources and routes in *calls*, *prompts*, *reads* and *requests*. `Connect`
    describes the other arguments.

    Args:
        plugin_type: The class of the plugin. If it is importable by name, its import is measured.
        name: The plugin's name, as in its entry point.
        calls: Calls of tools that must succeed.
        prompts: Prompts that must succeed, with their arguments.
        reads: URIs of resources that must be readable.
        requests: Requests for routes that must succeed.
        allow: Exceptions that the plugin needs.
        generation: The protocol of the client that makes the calls; see `Connect`.
        beside: Other plugins by their names.
        services: See `Connect`.
        config: More of the host's configuration.
        client: More arguments of that client, such as ``elicitation_callback``, if a tool asks
            the user.
        settings: The plugin's own settings.

    Raises:
        AssertionError: The plugin breaks rules. Each line has a broken rule and the correction.
    """
    __tracebackhide__ = True
    from .checks import faults_of  # noqa: PLC0415  - see the module's docstring
    from .serving import PluginUnderTest  # noqa: PLC0415

    tested = PluginUnderTest(plugin_type, name, settings, beside, config, services)
    uses = Uses(calls, prompts, reads, requests, generation, client)
    faults = faults_of(tested, uses, allow or Allowed())
    if faults:
        rules = "a rule" if len(faults) == 1 else f"{len(faults)} rules"
        lines = "".join(f"\n  - {fault}" for fault in faults)
        raise AssertionError(f"plugin {name!r} breaks {rules}:{lines}")
