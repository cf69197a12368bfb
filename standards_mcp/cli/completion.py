"""Names that the shell offers for arguments of the host's commands, see `commands.offer`."""

from __future__ import annotations

from collections.abc import Iterator

from .invocation import Invocation


def served_tools(invocation: Invocation) -> Iterator[tuple[str, str]]:
    """Give the tools that are served."""
    for item in invocation.loaded_host.visible().visible_tools:
        yield item.published, item.title or ""


def all_tools(invocation: Invocation) -> Iterator[tuple[str, str]]:
    """Give the tools of the loaded plugins, served or not."""
    for item in invocation.loaded_host.visible().tools:
        yield item.tool.name, item.title or ""


def installed_plugins(invocation: Invocation) -> Iterator[tuple[str, str]]:
    """Give the installed plugins; imports none of them."""
    for record in invocation.host.manager.records.values():
        yield record.name, record.info.distribution


def configured_servers(invocation: Invocation) -> Iterator[tuple[str, str]]:
    """Give the other MCP servers of the configuration; starts none of them."""
    for name, section in invocation.host.settings.servers.items():
        yield name, section.command or ""
