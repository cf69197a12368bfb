"""The hooks that a plugin can implement.

All hooks are synchronous and must not do I/O; the functions and objects that they return may. Hooks
that return contributions are called before the server starts, and again after
`PluginContext.contributions_changed`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

import click
import pluggy

from .plugin import Filter, Health, Prompt, Resource, Route, Service, Skill, Tool, ToolHandler

PROJECT: Final = "standards_mcp"


hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_services() -> Iterable[Service[Any]]:
    """Return the services that the plugin provides to other plugins, see `PluginContext.service`.

    Called once, before the other hooks of all plugins. Services can be used in the same process
    only, so the services of an isolated plugin have no effect.
    """
    return ()


@hookspec
def register_tools() -> Iterable[Tool | Callable[..., Any]]:
    """Return the plugin's tools, or functions with ``@tool``."""
    return ()


@hookspec
def register_prompts() -> Iterable[Prompt | Callable[..., Any]]:
    """Return the plugin's prompts, or functions with ``@prompt``."""
    return ()


@hookspec
def register_resources() -> Iterable[Resource | Callable[..., Any]]:
    """Return the plugin's resources and templates, or functions with ``@resource``."""
    return ()


@hookspec
def register_skills() -> Iterable[Skill | Callable[..., Any]]:
    """Return the plugin's skills, or functions with ``@skill``."""
    return ()


@hookspec
def register_filters() -> Iterable[Filter]:
    """Return filters for every tool that accepts them."""
    return ()


@hookspec
def register_routes() -> Iterable[Route]:
    """Return HTTP routes and pages. Only ``serve --transport http`` serves them.

    The same authorization, limits and deadlines apply as for tools.
    """
    return ()


@hookspec
def register_commands() -> Iterable[click.Command]:
    """Return commands for ``standards-mcp <plugin>``. Called only on the command line.

    A single command with the plugin's own name becomes ``standards-mcp <plugin>`` itself. Other
    commands become its subcommands. Each may get a `ToolCaller` with ``click.pass_obj``.
    """
    return ()


@hookspec
def register_backup() -> Any:
    """Return the plugin's `standards_mcp_backup.Backup`, or None if it has no data on this machine.

    Called only for ``standards-mcp backup`` and ``restore``.
    """
    return None


@hookspec
def register_admin_page() -> Any:
    """Return the plugin's page on the admin page of the service over HTTP, or None.

    See ``standards_mcp_service.admin.contributed.AdminPage``.
    """
    return None


@hookspec
def lifespan() -> AbstractAsyncContextManager[None]:
    """Return a context manager that stays open while the server runs.

    If it fails to start, the plugin's tools are not served. Other plugins are not affected.
    """
    return nullcontext()


@hookspec
def wrap_tool_call(call_next: ToolHandler) -> ToolHandler:
    """Return a handler that wraps every call of every tool. Called once.

    The handler awaits ``call_next(call)`` at most once, or raises a `ToolError` to refuse the call.
    The wrapper of the plugin that was loaded first is the outermost.
    """
    return call_next


@hookspec
def check_health() -> Awaitable[Health]:
    """Return the plugin's health.

    Called by ``standards-mcp plugins check`` and ``doctor``, and for ``/health`` of the service
    over HTTP, every five seconds at most.
    """
    return _healthy()


async def _healthy() -> Health:
    return Health(status="ok")
