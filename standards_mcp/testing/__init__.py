"""A pytest plugin for the tests of plugins.

It is announced to pytest, so its fixtures are there wherever this distribution is installed:
`connect` and `connect_http`. `check_plugin` is a function to import. pytest imports this
module at the start of every session, so it imports next to nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import pytest

from standards_mcp.config.timing import DEFAULT_TIMING

if TYPE_CHECKING:
    import httpx2
    from mcp import Client

    from standards_mcp.plugin import Plugin

__all__ = ["Allowed", "Call", "Connect", "ConnectHttp", "Services", "check_plugin"]


Call: TypeAlias = tuple[str, Mapping[str, Any]]
"""A call of a tool or a prompt that succeeds: its declared name and its arguments."""

Request: TypeAlias = tuple[str, str]
"""A request for a route that succeeds: its method, and its path below that of the plugin."""

Services: TypeAlias = Mapping[Callable[..., Any], object]
"""Objects to use in place of the services of plugins, by their types."""

_NOTHING: Final[Mapping[Any, Any]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What `check_plugin` lets a plugin do.

    Attributes:
        import_seconds: CPU time of its import, in a fresh interpreter that has the host loaded.
        imports: Heavy packages that it may import when it is imported itself.
        start_seconds: How long its lifespan may take to start.
        blocked_seconds: How long it may keep the event loop from everything else.
        destructive: Declared names of the tools that are meant to delete or overwrite.
    """

    import_seconds: float = 0.5
    imports: Collection[str] = ()
    start_seconds: float = DEFAULT_TIMING.start
    blocked_seconds: float = 0.1
    destructive: Collection[str] = ()


class Connect(Protocol):
    """What the fixture `connect` is."""

    def __call__(  # noqa: PLR0913  - all by name, and most seldom given
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
    ) -> AbstractAsyncContextManager[Client]:
        """Serve a plugin within this process and connect a client of the official SDK to it.

        No installed plugin is discovered, no setting of the machine is read, and whatever fails
        raises: the host is strict.

        Args:
            plugin_type: The class of the plugin.
            name: Its name, as its entry point gives it.
            generation: How the client talks: ``auto`` (the newest protocol), ``legacy`` (the
                handshake of 2024 and 2025) or a version such as ``2026-07-28``.
            beside: Other plugins by their names, such as those whose tools a prompt needs.
            services: Objects to use in place of the services of plugins, by their types, such as
                ``{Catalog: catalog}`` for a plugin that needs a catalog.
            config: More of the host's configuration, by the keys of the TOML file. The tables of
                the plugins beside go here, and settings named like an argument of this function.
            client: More arguments of the SDK's ``Client``, such as ``elicitation_callback``, which
                answers what a tool asks.
            settings: The plugin's own settings.

        Raises:
            PluginError: A plugin failed, with the reason.
        """
        ...


class ConnectHttp(Protocol):
    """What the fixture `connect_http` is."""

    def __call__(
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
    ) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
        """Serve the routes of a plugin within this process and open a client of them.

        Its addresses are relative to the plugin's: ``client.get("/reports/7")``.

        Args:
            plugin_type: The class of the plugin.
            name: Its name, as its entry point gives it.
            scopes: Those of the client's token; by default it may use all.
            beside: See `Connect`, as for the rest.
            services: Objects to use in place of the services of plugins, by their types, such as
                ``{Catalog: catalog}`` for a plugin that needs a catalog.
            config: More of the host's configuration.
            settings: The plugin's own settings.

        Raises:
            PluginError: A plugin failed, with the reason.
        """
        ...


@pytest.fixture
def connect(tmp_path: Path) -> Connect:
    """Return a function that serves a plugin in memory; see `Connect`.

    Use it within the test, ``async with connect(AcmePlugin, name="acme") as client``, under any
    pytest plugin that runs async tests on asyncio.
    """
    from .clients import connecting  # noqa: PLC0415  - see the module's docstring

    return connecting(tmp_path / "standards-mcp")


@pytest.fixture
def connect_http(tmp_path: Path) -> ConnectHttp:
    """Return a function that serves the HTTP routes of a plugin; see `ConnectHttp`."""
    from .routes import connecting_http  # noqa: PLC0415  - see the module's docstring

    return connecting_http(tmp_path / "standards-mcp")


def check_plugin(  # noqa: PLR0913  - all by name, and most seldom given
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
    """See that a plugin keeps the rules: those of the host, and those of a good neighbour.

    Call it from a plain test, not from an async one: it runs an event loop of its own. Nothing is
    called but by *calls*, *prompts*, *reads* and *requests*. The other arguments are those of
    `Connect`.

    Args:
        plugin_type: The class of the plugin. Its import is measured where it is importable.
        name: Its name, as its entry point gives it.
        calls: Calls of tools to try; all must succeed, and so must the next three.
        prompts: Prompts to ask for, with their arguments.
        reads: URIs of resources to read.
        requests: Requests for routes.
        allow: Exceptions that the plugin needs.
        generation: How the client talks that makes the calls.
        beside: Other plugins by their names.
        services: See `Connect`.
        config: More of the host's configuration.
        client: More arguments of that client, such as ``elicitation_callback``, without which a
            tool cannot ask.
        settings: The plugin's own settings.

    Raises:
        AssertionError: It breaks rules. Each line says which, and what to do about it.
    """
    __tracebackhide__ = True
    from .checks import Probes, faults_of  # noqa: PLC0415  - see the module's docstring
    from .hosts import PluginUnderTest  # noqa: PLC0415

    tested = PluginUnderTest(plugin_type, name, settings, beside, config, services)
    found = faults_of(
        tested, Probes(calls, prompts, reads, requests, generation, client), allow or Allowed()
    )
    if found:
        rules = "a rule" if len(found) == 1 else f"{len(found)} rules"
        lines = "".join(f"\n  - {fault}" for fault in found)
        raise AssertionError(f"plugin {name!r} breaks {rules}:{lines}")
