"""The hooks that a plugin can implement, and nothing else.

All are synchronous and do no I/O: what takes time or awaits lives in what they return.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

import click
import pluggy

from .plugin import Filter, Health, Prompt, Resource, Tool, ToolHandler

PROJECT: Final = "standards_mcp"


hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_tools() -> Iterable[Tool]:
    """Return the plugin's tools. Called once, before the server starts."""
    return ()


@hookspec
def register_prompts() -> Iterable[Prompt]:
    """Return the plugin's prompts. Called once, before the server starts."""
    return ()


@hookspec
def register_resources() -> Iterable[Resource]:
    """Return the plugin's resources and templates. Called once, before the server starts."""
    return ()


@hookspec
def register_filters() -> Iterable[Filter]:
    """Return filters for every tool that accepts them. Called once, before the server starts."""
    return ()


@hookspec
def register_commands() -> Iterable[click.Command]:
    """Return commands for ``standards-mcp <plugin>``. Called only on the command line.

    A single command that bears the plugin's own name is ``standards-mcp <plugin>`` itself; any
    others stand below it. Each may take a `ToolCaller` with ``click.pass_obj``.
    """
    return ()


@hookspec
def lifespan() -> AbstractAsyncContextManager[None]:
    """Return a context manager that is open for as long as the server runs.

    A plugin that cannot start loses its tools; the others go on.
    """
    return nullcontext()


@hookspec
def wrap_tool_call(call_next: ToolHandler) -> ToolHandler:
    """Return a handler that stands around every call of every tool. Called once.

    It awaits ``call_next(call)`` at most once, or raises a `ToolError` to refuse the call. The
    wrapper of the plugin that was loaded first is the outermost.
    """
    return call_next


@hookspec
def check_health() -> Awaitable[Health]:
    """Return the plugin's condition. Called by ``standards-mcp plugins check``."""
    return _healthy()


async def _healthy() -> Health:
    return Health(status="ok")
