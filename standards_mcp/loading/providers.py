"""Plugins whose contributions come from elsewhere, and may change while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from standards_mcp._utils.secrets import mask
from standards_mcp.config.errors import Problem
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.collection import Contributions
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.contributions.tools import RegisteredTool

from .records import PluginRecord, Status


class Provider:
    """A plugin whose contributions may change; one that cannot be served is withheld alone.

    Attributes:
        contributions: What it contributes now.
        on_change: Called when that or the problem changes.
        problem: Why its contributions are not known, or an empty string.
        failure: Why it is of no use at all, or an empty string.
        problems: Those in its settings for which it is of no use.
        secrets: Those that only it knows.
        start_seconds: How long its lifespan may take to start, where that is longer than others'.
    """

    contributions: Contributions = Contributions()
    on_change: Callable[[], None] = staticmethod(lambda: None)
    problem: str = ""
    failure: str = ""
    problems: tuple[Problem, ...] = ()
    secrets: frozenset[str] = frozenset()
    start_seconds: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether its contributions are known without waiting."""
        return True

    async def wait_listed(self) -> None:
        """Wait until its contributions are known, for as long as that may take."""

    async def wait_started(self) -> None:
        """Wait until it has started or failed to, if it is started with the host."""


def provider_of(record: PluginRecord) -> Provider | None:
    """Return the plugin of a record if its contributions come from elsewhere."""
    plugin: object = record.plugin
    return plugin if isinstance(plugin, Provider) else None


def collect(records: Iterable[PluginRecord]) -> None:
    """Give the record of every provider what it contributes now.

    Names belong to imported plugins first, then to the providers in order. A tool whose name is
    taken is hidden, and can be renamed; a filter, prompt or resource is left out.
    """
    loaded = [record for record in records if record.status is not Status.FAILED]
    found = [(record, provider) for record in loaded if (provider := provider_of(record))]
    providing = {record.name for record, _ in found}
    others = Contributions.merged(
        record.contributions for record in loaded if record.name not in providing
    )
    for record, provider in found:
        unknown = "" if provider.is_known else _UNKNOWN
        record.reason = mask(provider.problem or unknown, record.secrets)
        record.contributions = taken = _without_conflicts(provider.contributions, others)
        if lost := _count(provider.contributions) - _count(taken):
            record.reason = f"{lost} of its filters, prompts and resources have names of others"
        others = Contributions.merged((others, taken))


_UNKNOWN = "its tools are not known yet: it is started with the server"


def _without_conflicts(own: Contributions, others: Contributions) -> Contributions:
    filters = {item.name for item in others.filters}
    prompts = _names_of(others.prompts)
    resources = {name for item in others.resources for name in _names(item)}
    return Contributions(
        _with_conflicts(own.tools, others.tools),
        tuple(item for item in own.prompts if not prompts & {*item.names}),
        tuple(item for item in own.resources if not resources & _names(item)),
        tuple(item for item in own.filters if item.name not in filters),
    )


def _with_conflicts(
    tools: Iterable[RegisteredTool], others: Iterable[RegisteredTool]
) -> tuple[RegisteredTool, ...]:
    # A tool with a conflict owns no name until it is renamed.
    owners = {name: item.plugin for item in others if not item.conflict for name in item.names}
    taken: list[RegisteredTool] = []
    for item in tools:
        owner = next((owners[name] for name in item.names if name in owners), None)
        taken.append(_with_conflict(item, owner) if owner else item)
        owners |= {name: item.plugin for name in item.names if not owner}
    return tuple(taken)


def _names_of(items: Iterable[Contribution]) -> set[str]:
    return {name for item in items for name in item.names}


def _names(item: RegisteredResource) -> set[str]:
    return {*item.names, item.resource.uri}


def _count(contributions: Contributions) -> int:
    return sum(map(len, (contributions.filters, contributions.prompts, contributions.resources)))


def _with_conflict(item: RegisteredTool, owner: str) -> RegisteredTool:
    """Return a tool whose name belongs to *owner*, under one by which it can be renamed."""
    name = item.declared
    if owner == item.plugin:
        return replace(item, error=item.error or "it is listed twice under this name")
    qualified = name if name.startswith(f"{item.plugin}.") else f"{item.plugin}.{name}"
    rename = f'set name in [tools.overrides."{qualified}"]'
    conflict = f"its name {item.published!r} already belongs to plugin {owner!r}; {rename}"
    return replace(item, declared=qualified, conflict=conflict)
