"""What the loaded plugins contribute; each name has one owner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

from standards_mcp.contributions.base import Contribution, conflict
from standards_mcp.contributions.filters import filter_fault, own_filter
from standards_mcp.contributions.prompts import RegisteredPrompt, read_prompt
from standards_mcp.contributions.resources import RegisteredResource, read_resource
from standards_mcp.contributions.schemas import SchemaError
from standards_mcp.contributions.tools import RegisteredTool, read_tool
from standards_mcp.errors import PluginError
from standards_mcp.plugin import Filter

from .providers import provider_of
from .records import PluginRecord

MOST_CONTRIBUTIONS: Final = 1000
"""Tools, prompts or resources of one plugin; each takes about a millisecond of every start."""

_C = TypeVar("_C", bound=Contribution)


class CallHook(Protocol):
    """Calls one hook of one plugin."""

    def __call__(self, record: PluginRecord, hook: str) -> list[Any]:
        """Return what the plugin's implementations return."""
        ...


class Registry:
    """The contributions of all records, in the order of the records.

    Args:
        records: By the plugins' names; they hold what is registered.
        call: Asks a plugin for what it contributes.
    """

    def __init__(self, records: Mapping[str, PluginRecord], call: CallHook) -> None:
        self._records = records
        self._call = call

    def filters(self) -> tuple[Filter, ...]:
        """Return the filters of all plugins, in the order of their plugins' names."""
        return tuple(item for record in self._records.values() for item in record.filters)

    def filter_owners(self) -> dict[str, str]:
        """Return whose each filter is, by the filters' names."""
        return {item.name: each.name for each in self._records.values() for item in each.filters}

    def tools(self) -> list[RegisteredTool]:
        """Return every registered tool, served or not, in a stable order."""
        return [tool for record in self._records.values() for tool in record.tools]

    def prompts(self) -> list[RegisteredPrompt]:
        """Return every registered prompt, served or not, in a stable order."""
        return [prompt for record in self._records.values() for prompt in record.prompts]

    def resources(self) -> list[RegisteredResource]:
        """Return every registered resource, served or not, in a stable order."""
        return [resource for record in self._records.values() for resource in record.resources]

    def register_filters(self, record: PluginRecord) -> None:
        """Take the filters of a plugin.

        Raises:
            PluginError: One cannot be used, or does not fit the tools of another plugin.
            PluginConflictError: One has a name that is taken.
        """
        if provider_of(record):
            return
        filters: list[Filter] = []
        owners = self.filter_owners()
        for item in self._returned(record, "register_filters"):
            if why := filter_fault(item):
                raise PluginError(record.name, why)
            if owner := owners.get(item.name):
                raise conflict(record.name, owner, f"filter {item.name!r}")
            owners[item.name] = record.name
            filters.append(own_filter(record.name, item))
        if filters:
            self._try_filters(record, (*self.filters(), *filters))
        record.filters = tuple(filters)

    def _try_filters(self, record: PluginRecord, filters: tuple[Filter, ...]) -> None:
        """See that other plugins' tools can take the filters: who adds one must not break them."""
        for item in self.tools():
            if item.tool.accepts_filters:
                try:
                    item.with_filters(filters)
                except SchemaError as exc:
                    what = f"its filters do not fit tool {item.tool.name!r} of {item.plugin!r}"
                    raise PluginError(record.name, f"{what}: {exc}") from exc

    def extend_tools(self) -> None:
        """Give every tool that accepts filters those of the plugins that have not failed."""
        filters = self.filters()
        for record in self._records.values():
            record.tools = tuple(item.with_filters_or_error(filters) for item in record.tools)

    def register(self, record: PluginRecord) -> None:
        """Take the tools, prompts and resources of a plugin: all of them, or none.

        Raises:
            PluginError: One cannot be published to every client, or there are too many.
            PluginConflictError: One has a name or a URI that is taken.
        """
        if provider_of(record):
            return  # what cannot be served of it is kept back by itself
        tools = self._read(record, "register_tools", read_tool, self.tools())
        prompts = self._read(record, "register_prompts", read_prompt, self.prompts())
        resources = self._read(record, "register_resources", read_resource, self.resources())
        owners = {item.resource.uri: item.plugin for item in self.resources()}
        for item in resources:
            if owner := owners.get(item.resource.uri):
                raise conflict(record.name, owner, f"resource {item.resource.uri!r}")
            owners[item.resource.uri] = record.name
        record.tools, record.prompts, record.resources = tools, prompts, resources

    def _read(
        self,
        record: PluginRecord,
        hook: str,
        read: Callable[[str, object], _C],
        others: Iterable[_C],
    ) -> tuple[_C, ...]:
        """Return what a plugin declares by one hook, under names that nobody else has."""
        owners = {name: other.plugin for other in others for name in other.names}
        found: list[_C] = []
        for each in self._returned(record, hook):
            item = read(record.name, each)
            for name in item.names:
                if owner := owners.get(name):
                    raise conflict(record.name, owner, f"{item.kind} {item.declared!r}")
            owners |= dict.fromkeys(item.names, record.name)
            found.append(item)
            if len(found) > MOST_CONTRIBUTIONS:
                what = f"it declares more than {MOST_CONTRIBUTIONS} {item.kind}s"
                raise PluginError(record.name, what)
        return tuple(found)

    def _returned(self, record: PluginRecord, hook: str) -> Iterator[Any]:
        """Yield what a plugin declares by one hook.

        Raises:
            PluginError: It returned something else than several things.
        """
        for items in self._call(record, hook):
            if not isinstance(items, Iterable):
                what = f"{hook} returned a {type(items).__name__}; return a list"
                raise PluginError(record.name, what)
            yield from items
