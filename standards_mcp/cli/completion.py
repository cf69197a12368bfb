"""Shell completion of arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import click
from click.shell_completion import CompletionItem

from standards_mcp._utils.stdio.streams import divert_stdout
from standards_mcp._utils.text import counted
from standards_mcp.errors import StandardsMcpError

from .invocation import Invocation

Names = Callable[[Invocation], Iterable[tuple[str, str]]]
Offer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def offer(names: Names) -> Offer:
    """Return a ``shell_complete`` that offers names, each with a word of help.

    Nothing is offered where the configuration or the catalog cannot be read: an error message
    would end up in the line that is being typed.
    """

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        try:
            with divert_stdout():
                found = list(names(ctx.ensure_object(Invocation)))
        except (StandardsMcpError, OSError):
            return []
        return [
            CompletionItem(name, help=text) for name, text in found if name.startswith(incomplete)
        ]

    return complete


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


def loaded_sets(invocation: Invocation) -> Iterator[tuple[str, str]]:
    """Give the standard sets that are loaded."""
    for each in invocation.embedded_catalog.store.sets():
        yield each.id, f"{each.title} ({each.jurisdiction_title}, {each.subject})"


def loaded_sets_and_crosswalks(invocation: Invocation) -> Iterator[tuple[str, str]]:
    """Give the standard sets and the crosswalks that are loaded."""
    yield from loaded_sets(invocation)
    for each, _ in invocation.embedded_catalog.store.crosswalks():
        yield each


def loaded_jurisdictions(invocation: Invocation) -> Iterator[tuple[str, str]]:
    """Give the jurisdictions that have standards."""
    counts = Counter(each.jurisdiction_title for each in invocation.embedded_catalog.store.sets())
    for title, count in counts.items():
        yield title, counted(count, "set")
