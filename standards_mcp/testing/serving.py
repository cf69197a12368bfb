"""Create hosts with only the tested plugins, and clients that are connected in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from standards_mcp._utils.exceptions import leaves
from standards_mcp.calls.context import Principal
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.routes import PREFIX
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.plugin import Plugin
from standards_mcp.server.answers import refused
from standards_mcp.server.routes import PluginRoutes
from standards_mcp.server.server import build_server


@dataclass(frozen=True, slots=True)
class PluginUnderTest:
    """A plugin to test, with its environment.

    Attributes:
        settings: The plugin's own settings.
        beside: Other plugins by their names.
        config: More of the host's configuration.
        services: Objects to use in place of the services of plugins, by their types.
    """

    plugin_type: type[Plugin[Any]]
    name: str
    settings: Mapping[str, Any]
    beside: Mapping[str, type[Plugin[Any]]]
    config: Mapping[str, Any]
    services: Mapping[Callable[..., Any], object]

    def host(self, folder: Path) -> Host:
        """Return a strict host that has not loaded its plugins yet.

        Raises:
            ConfigError: The configuration has a table for an unknown plugin.
            PluginError: The plugin's name is not valid.
            pydantic.ValidationError: The configuration has an unknown key or an invalid value.
        """
        tables: dict[str, Any] = dict(self.config.get("plugins", {}))
        tables[self.name] = {**tables.get(self.name, {}), **self.settings}
        values: dict[str, Any] = {"strict": True, "state_dir": folder / "state"}
        values |= {**self.config, "plugins": tables}
        settings = Settings(**values)
        plugins = {**self.beside, self.name: self.plugin_type}
        installed = [_info(name, plugin_type) for name, plugin_type in plugins.items()]
        return Host(LoadedSettings(settings, None), installed=installed, services=self.services)

    def loaded_host(self, folder: Path) -> Host:
        """Return the host with its plugins loaded.

        Raises:
            RuntimeError: The test does not run on asyncio.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(
                "plugins run on asyncio. For anyio's pytest plugin, define a fixture anyio_backend "
                "that returns 'asyncio'."
            ) from None
        host = self.host(folder)
        host.load()
        return host


def _info(name: str, plugin_type: type[Plugin[Any]]) -> PluginInfo:
    return PluginInfo(name=name, load=lambda: plugin_type)


@asynccontextmanager
async def connected(
    host: Host, generation: str, options: Mapping[str, Any]
) -> AsyncGenerator[Client]:
    """Start a host that has loaded its plugins, and connect a client to it.

    Args:
        options: Additional arguments for the SDK's ``Client``.
    """
    arguments: dict[str, Any] = {"mode": generation, "cache": None, **options}
    try:
        async with Client(build_server(host, "0"), **arguments) as client:
            yield client
    except BaseExceptionGroup as group:
        # The SDK's task groups wrap the exception of a plugin, or of the test itself.
        causes = leaves(group)
        raise causes[0] if len(causes) == 1 else group from None


@asynccontextmanager
async def route_client(
    host: Host, plugin: str, scopes: Collection[str] | None = None
) -> AsyncGenerator[httpx2.AsyncClient]:
    """Open a client for the routes of one plugin of a running host, without a port."""
    principal = Principal("tester", scopes=None if scopes is None else frozenset(scopes))
    plugin_routes = PluginRoutes(host, lambda _: principal)
    routes = [*plugin_routes.routes(), Route("/{page}", plugin_routes)]
    app = Starlette(routes=routes, exception_handlers={HTTPException: refused})
    transport = httpx2.ASGITransport(app)
    url = f"http://localhost{PREFIX}/{plugin}"
    async with httpx2.AsyncClient(transport=transport, base_url=url) as client:
        yield client
