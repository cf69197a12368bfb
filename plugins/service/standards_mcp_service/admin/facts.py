"""The facts that the admin page shows: the calls of the last hour, and the plugins."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from standards_mcp import Health
from standards_mcp.transports import (
    NO_ERRORS,
    CallRecord,
    Host,
    PluginKind,
    PluginRecord,
    RegisteredTool,
    Settings,
    Status,
    definition_tokens,
    provider_of,
)
from standards_mcp_service.health import is_well

from .switches import plugin_action, waits_for_restart

_MINUTES: Final = 60
# About 3 MB; `/metrics` counts all calls, and for longer.
_MAX_CALLS: Final = 20_000
_KINDS: Final[Mapping[PluginKind, str]] = {
    PluginKind.IMPORTED: "in the service's process",
    PluginKind.ISOLATED: "in a process of its own",
    PluginKind.SERVER: "another MCP server",
}


class CalledItem(NamedTuple):
    """The item of a call: a tool, a prompt, a resource or a route of a plugin."""

    kind: str
    name: str
    plugin: str


class _EndedCall(NamedTuple):
    """A call that ended at *time*, in seconds since 1970."""

    time: float
    called: CalledItem
    seconds: float
    outcome: str


class RunningCall(NamedTuple):
    """A call that has been running for *seconds*."""

    called: CalledItem
    caller: str
    seconds: float


class Minute(NamedTuple):
    """Numbers of calls and errors in one minute."""

    time: str
    calls: int
    errors: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Number and latency of some calls.

    Attributes:
        median: The median duration in seconds; None without calls.
        p95: The 95th percentile of the durations in seconds; None without calls.
    """

    calls: int = 0
    errors: int = 0
    median: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class Hour:
    """The last hour.

    Attributes:
        minutes: The oldest first, the current minute last.
        by_item: The figures of each item, the most called first.
        errors: Number of errors by type, the most frequent first.
    """

    minutes: Sequence[Minute]
    all: Figures
    by_item: Mapping[CalledItem, Figures]
    errors: Sequence[tuple[str, int]]


class History:
    """Observe calls. Names that clients invent are not stored.

    Args:
        clock: Returns the time in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ended = deque[_EndedCall](maxlen=_MAX_CALLS)
        self._running: dict[int, tuple[CallRecord, float]] = {}

    def call_started(self, record: CallRecord) -> None:
        """Note a running call."""
        self._running[id(record)] = record, time.monotonic()

    def call_ended(self, record: CallRecord) -> None:
        """Note a call that has ended."""
        self._running.pop(id(record), None)
        called = _called_item(record)
        self._ended.append(_EndedCall(self._clock(), called, record.seconds, record.outcome))

    @property
    def running(self) -> list[RunningCall]:
        """The running calls, the longest first."""
        now = time.monotonic()
        return [
            RunningCall(_called_item(record), record.caller, now - began)
            for record, began in self._running.values()
        ]

    def hour(self) -> Hour:
        """Return the last hour, including the current minute."""
        last = int(self._clock() // 60)
        first = last - _MINUTES + 1
        while self._ended and self._ended[0].time < 60 * first:
            self._ended.popleft()
        by_item = defaultdict[CalledItem, list[_EndedCall]](list)
        calls, errors, types = Counter[int](), Counter[int](), Counter[str]()
        for call in self._ended:
            minute = int(call.time // 60)
            by_item[call.called].append(call)
            calls[minute] += 1
            if call.outcome not in NO_ERRORS:
                errors[minute] += 1
                types[call.outcome] += 1
        return Hour(
            minutes=[
                Minute(f"{datetime.fromtimestamp(60 * at, UTC):%H:%M}", calls[at], errors[at])
                for at in range(first, last + 1)
            ],
            all=_figures(self._ended),
            by_item={
                called: _figures(ended)
                for called, ended in sorted(by_item.items(), key=lambda item: -len(item[1]))
            },
            errors=types.most_common(),
        )


def _called_item(record: CallRecord) -> CalledItem:
    return CalledItem(record.kind, record.name if record.plugin else "not served", record.plugin)


def _figures(ended: Collection[_EndedCall]) -> Figures:
    seconds = sorted(call.seconds for call in ended)
    median, p95 = (
        seconds[math.ceil(share * len(seconds)) - 1] if seconds else None for share in (0.5, 0.95)
    )
    errors = sum(call.outcome not in NO_ERRORS for call in ended)
    return Figures(len(ended), errors, median, p95)


@dataclass(frozen=True, slots=True)
class ToolFacts:
    """A tool on the admin page.

    Attributes:
        tokens: Approximate size of its definition in a model's context.
        figures: Its calls of the last hour.
        action: The action of its switch: ``disable``, ``enable``, or empty without a switch.
    """

    item: RegisteredTool
    tokens: int
    figures: Figures
    action: str


@dataclass(frozen=True, slots=True)
class PluginFacts:
    """A plugin or another MCP server on the admin page.

    Attributes:
        kind: The place where its code runs, in words.
        health: The result of its own health check, if it has one.
        is_well: True if neither the plugin nor its check has failed.
        unapproved: The diff of server definitions that are not approved.
        action: The action of its switch, see `plugin_action`.
        waits: True if it is enabled, and its code runs from the next start on.
    """

    record: PluginRecord
    kind: str
    state: str
    health: Health | None
    tools: Sequence[ToolFacts]
    is_well: bool
    unapproved: str
    action: str
    waits: bool


def plugin_facts(
    host: Host, health: Mapping[str, Health], by_item: Mapping[CalledItem, Figures]
) -> list[PluginFacts]:
    """Return all plugins with their tools, failed ones first."""
    plugins: list[PluginFacts] = []
    for record in host.manager.records.values():
        provider, own_health = provider_of(record), health.get(record.name)
        # A plugin that is disabled while it runs stays started, and serves nothing.
        is_off = host.settings.section(record.name).enabled is False
        is_off = is_off and record.status is Status.STARTED
        plugins.append(
            PluginFacts(
                record=record,
                kind=_KINDS[record.info.kind],
                state=Status.DISABLED if is_off else record.status,
                health=own_health,
                tools=[
                    ToolFacts(
                        item=item,
                        tokens=definition_tokens(item),
                        figures=by_item.get(
                            CalledItem("tool", item.declared, item.plugin), Figures()
                        ),
                        action=_action(item, host.settings),
                    )
                    for item in host.visible().tools
                    if item.plugin == record.name
                ],
                is_well=is_well(record, own_health),
                unapproved=provider.unapproved if provider else "",
                action=plugin_action(record, host.settings),
                waits=waits_for_restart(record, host.settings),
            )
        )
    return sorted(plugins, key=lambda plugin: plugin.is_well)


def _action(item: RegisteredTool, settings: Settings) -> str:
    """Return the action of a switch, or "" if other settings would keep the tool hidden."""
    if not item.hidden_reason:
        return "disable"
    tools = settings.tools
    switched = tools.model_copy(
        update={
            "disable": tuple(name for name in tools.disable if name not in item.names),
            "enable": (*tools.enable, item.declared),
        }
    )
    now, then = (
        version.hidden_reason(item.names, read_only=item.tool.read_only)
        for version in (tools, switched)
    )
    return "enable" if now == item.hidden_reason and not then else ""
