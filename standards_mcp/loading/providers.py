"""Plugins whose tools come from elsewhere, and may change while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from standards_mcp._utils.secrets import mask
from standards_mcp.config.errors import Problem
from standards_mcp.contributions.prompts import RegisteredPrompt
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.plugin import Filter

from .records import PluginRecord, Status


class Provider:
    """A plugin whose tools may change while it runs; one that cannot be served is withheld alone.

    Attributes:
        tools: Those that it has now.
        on_change: Called when they are others, or the problem is.
        problem: Why they are not known, or an empty string.
        secrets: Those that only it knows.
        filters: Those that it has now; the same holds of prompts and resources.
        failure: Why it is of no use at all, or an empty string.
        problems: Those in its settings for which it is of no use.
        start_seconds: How long its lifespan may take to start, where that is longer than others'.
    """

    tools: tuple[RegisteredTool, ...] = ()
    filters: tuple[Filter, ...] = ()
    prompts: tuple[RegisteredPrompt, ...] = ()
    resources: tuple[RegisteredResource, ...] = ()
    failure: str = ""
    problems: tuple[Problem, ...] = ()
    on_change: Callable[[], None] = staticmethod(lambda: None)
    problem: str = ""
    secrets: frozenset[str] = frozenset()
    start_seconds: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether its tools are known without waiting."""
        return True

    async def wait_listed(self) -> None:
        """Wait until its tools are known, for as long as that may take."""

    async def wait_started(self) -> None:
        """Wait until it has started or failed to, if it is started with the host."""


def provider_of(record: PluginRecord) -> Provider | None:
    """Return the plugin of a record if its tools come from elsewhere."""
    plugin: object = record.plugin
    return plugin if isinstance(plugin, Provider) else None


def collect(records: Iterable[PluginRecord]) -> None:
    """Give every source's record the tools that it has now.

    Names belong to plugins first, then to the sources in order; one that is taken keeps back the
    tool that bears it.
    """
    loaded = [record for record in records if record.status is not Status.FAILED]
    sources = [(record, source) for record in loaded if (source := provider_of(record))]
    for record, source in sources:
        record.tools, record.filters, record.prompts, record.resources = (), (), (), ()
        record.reason = mask(source.problem or _unknown(source), record.secrets)
    _take_others(loaded, sources)
    owners = {
        name: item.plugin for record in loaded for item in record.tools for name in item.names
    }
    for record, source in sources:
        taken: list[RegisteredTool] = []
        for item in source.tools:
            owner = next((owners[name] for name in item.names if name in owners), None)
            taken.append(_with_clash(item, owner) if owner else item)
            owners |= {name: record.name for name in item.names if not owner}
        record.tools = tuple(taken)


def _unknown(source: Provider) -> str:
    return "" if source.is_known else "its tools are not known yet: it is started with the server"


def _take_others(
    loaded: Sequence[PluginRecord], sources: Iterable[tuple[PluginRecord, Provider]]
) -> None:
    """Take over what is no tool; what bears a name that is taken is left out, and told."""
    filters = {item.name for record in loaded for item in record.filters}
    prompts = {name for record in loaded for item in record.prompts for name in item.names}
    resources = {name for record in loaded for item in record.resources for name in _names(item)}
    for record, source in sources:
        record.filters = tuple(item for item in source.filters if item.name not in filters)
        record.prompts = tuple(each for each in source.prompts if not prompts & {*each.names})
        record.resources = tuple(each for each in source.resources if not resources & _names(each))
        filters |= {item.name for item in record.filters}
        prompts |= {name for item in record.prompts for name in item.names}
        resources |= {name for item in record.resources for name in _names(item)}
        lost = (
            (len(source.filters) - len(record.filters))
            + (len(source.prompts) - len(record.prompts))
            + (len(source.resources) - len(record.resources))
        )
        if lost:
            record.reason = f"{lost} of its filters, prompts and resources bear names of others"


def _names(item: RegisteredResource) -> set[str]:
    return {*item.names, item.resource.uri}


def _with_clash(item: RegisteredTool, owner: str) -> RegisteredTool:
    """Return a tool whose name belongs to *owner*, under one by which it can be renamed."""
    name = item.declared
    if owner == item.plugin:
        return replace(item, error=item.error or "it is listed twice under this name")
    qualified = name if name.startswith(f"{item.plugin}.") else f"{item.plugin}.{name}"
    rename = f'set name in [tools.overrides."{qualified}"]'
    clash = f"its name {item.published!r} already belongs to plugin {owner!r}; {rename}"
    return replace(item, declared=qualified, conflict=clash)
