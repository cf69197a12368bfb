"""Providers: plugins with contributions from other processes, which may change at any time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar, cast

from standards_mcp._utils.secrets import mask
from standards_mcp.config.problems import Problem
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.resources import RegisteredResource
from standards_mcp.contributions.selection import Contributions

from .records import PluginRecord, Status

_C = TypeVar("_C", bound=Contribution)


def _ignore(_: str) -> None:
    """Ignore the notification."""


class Provider:
    """A plugin in another process, or another server. An invalid tool does not affect the others.

    Attributes:
        contributions: Its current contributions.
        on_change: Called after its contributions, its problem or its failure have changed.
        on_updated: Called with the URI of a resource whose contents have changed.
        problem: The reason why its contributions are unknown at present, or an empty string.
        failure: The reason why it has failed for good, or an empty string.
        problems: The mistakes in its settings that made it fail.
        unapproved: The beginning of the diff between its approved and its current definitions.
        secrets: Secret texts that only the other process or its settings hold.
        start_seconds: The time for its lifespan to start, if longer than `Timing.start`.
    """

    contributions: Contributions = Contributions()
    on_change: Callable[[], None] = staticmethod(lambda: None)
    on_updated: Callable[[str], None] = staticmethod(_ignore)
    problem: str = ""
    failure: str = ""
    problems: tuple[Problem, ...] = ()
    unapproved: str = ""
    secrets: frozenset[str] = frozenset()
    start_seconds: float = 0.0

    @property
    def notice(self) -> str:
        """The parts of the plugin that have no effect, with the remedy, or an empty string."""
        return ""

    @property
    def is_known(self) -> bool:
        """True if its contributions are already loaded."""
        return True

    async def wait_listed(self) -> None:
        """Wait until its contributions are known, or until its own timeout."""

    async def wait_started(self) -> None:
        """Wait until it has started or failed, if it starts with the host."""

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes of a resource, which `on_updated` reports, until `unsubscribe`.

        Raises:
            ToolError: The subscription failed.
        """
        del uri

    def unsubscribe(self, uri: str) -> None:
        """Undo one `subscribe`."""
        del uri


def provider_of(record: PluginRecord) -> Provider | None:
    """Return the plugin of a record if it is a provider, else None."""
    plugin = record.plugin
    # `isinstance` would also read the `__class__` of the plugin, which may raise or lie.
    return cast("Provider", plugin) if issubclass(type(plugin), Provider) else None


def collect(records: Iterable[PluginRecord]) -> Iterator[tuple[PluginRecord, Contributions, str]]:
    """Yield each provider that has not failed, with its contributions and the problem with them.

    A name belongs to the first plugin that declares it: imported plugins come before providers. A
    contribution whose name is taken is hidden, and an override can rename it. A resource whose URI
    is taken is hidden, too, but has no such remedy.
    """
    loaded = [record for record in records if record.status is not Status.FAILED]
    providers = [(record, provider) for record in loaded if (provider := provider_of(record))]
    provider_names = {record.name for record, _ in providers}
    others = Contributions.merged(
        record.contributions for record in loaded if record.name not in provider_names
    )
    for record, provider in providers:
        unknown = "" if provider.is_known else _TOOLS_UNKNOWN
        reason = mask(provider.problem or unknown or provider.notice, record.secrets)
        own = provider.contributions
        resolved = Contributions(
            _with_conflicts(own.tools, others.tools),
            _with_conflicts(own.prompts, others.prompts),
            _with_own_uris(_with_conflicts(own.resources, others.resources), others.resources),
            routes=own.routes,
            skills=_with_conflicts(own.skills, others.skills),
        )
        others = Contributions.merged((others, resolved))
        yield record, resolved, reason


_TOOLS_UNKNOWN = "its tools are not known yet: it is started with the server"


def _with_conflicts(items: Iterable[_C], others: Iterable[_C]) -> tuple[_C, ...]:
    owners = {name: item.plugin for item in others if item.owns_names for name in item.names}
    # Of items with one name, only the first counts, because approvals cover only the first.
    by_name: dict[str, _C] = {}
    checked = [
        item
        if by_name.setdefault(item.declared, item) is item
        else _with_conflict(item, item.plugin)
        for item in items
    ]
    # Withheld items come last, so that they take no name from a served item.
    for index in sorted(range(len(checked)), key=lambda index: not checked[index].owns_names):
        item = checked[index]
        if owner := next((owners[name] for name in item.names if name in owners), None):
            checked[index] = _with_conflict(item, owner)
        else:
            owners |= dict.fromkeys(item.names, item.plugin)
    return tuple(checked)


def _with_own_uris(
    items: Iterable[RegisteredResource], others: Iterable[RegisteredResource]
) -> tuple[RegisteredResource, ...]:
    """Return the resources, with an error in each whose URI is taken."""
    owners = {item.resource.uri: item.plugin for item in others if not item.error}
    checked: list[RegisteredResource] = []
    for item in items:
        uri = item.resource.uri
        owner = owners.get(uri, "")
        error = f"its URI {uri!r} already belongs to plugin {owner!r}"
        if owner == item.plugin:
            error = f"its server lists {uri!r} twice"
        owners.setdefault(uri, item.plugin)
        checked.append(replace(item, error=error) if owner else item)
    return tuple(checked)


def _with_conflict(item: _C, owner: str) -> _C:
    """Return an item whose name belongs to *owner*, under a name that overrides can refer to."""
    name = item.declared
    if owner == item.plugin:
        return replace(item, error=item.error or "it is listed twice under this name")
    qualified = name if name.startswith(f"{item.plugin}.") else f"{item.plugin}.{name}"
    rename = f'set name in [{item.kind}s.overrides."{qualified}"]'
    if item.kind == "skill":
        rename = "a skill cannot be renamed"
    conflict = f"its name {item.published!r} already belongs to plugin {owner!r}; {rename}"
    return replace(item, declared=qualified, conflict=conflict)
