"""One call on its way through the pipeline, and its record for logs, metrics and audits."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, cast

from standards_mcp._utils.logs import STANDARD_FIELDS
from standards_mcp.contributions.base import Contribution, Limits
from standards_mcp.errors import ToolError
from standards_mcp.plugin import ToolResult

from .context import LOCAL, HostContext, InputRequiredError

log = logging.getLogger(__name__)

# Observers receive it, because an audit looks for callers who try hidden names.
NOT_SERVED: Final = "not_served"
"""The outcome of a call for an unknown name, or one that the caller may not use."""
NO_ERRORS: Final = frozenset({"running", "ok", "asked", "cancelled"})
"""The outcomes that are not types of errors."""
_MAX_NAME_CHARS: Final = 200
Gate: TypeAlias = Callable[["CallRecord"], None]
"""Raises a `ToolError` if a call must not run."""


@dataclass(slots=True, kw_only=True, eq=False)
class CallRecord:
    """The record of one call, updated until the call ends.

    Attributes:
        kind: ``tool``, ``prompt``, ``resource``, ``completion``, ``subscription`` or ``route``.
        name: The declared name of the tool, prompt or resource; for an unknown one, the name that
            the caller sent, cut to 200 characters.
        plugin: The plugin of the tool, prompt or resource; empty for an unknown name.
        caller: The caller's name.
        session: The id of the session, or an empty string.
        arguments: The arguments that the client sent; they may be private.
        seconds: The duration of the call; 0 while it runs.
        outcome: ``running``, ``ok``, ``cancelled``, `NOT_SERVED`, the type of the error, or
            ``asked`` if the client must ask its user and call again.
        results: The number of results, if the answer is a list of results.
        is_cached: True if the answer is that of an equal call.
        incident: The id of the crash in the log, or an empty string.
        fields: Fields that the plugin adds to the log line.
    """

    kind: str
    name: str
    plugin: str
    caller: str
    arguments: Mapping[str, Any]
    session: str = ""
    seconds: float = 0.0
    outcome: str = "running"
    results: int | None = None
    is_cached: bool = False
    incident: str = ""
    fields: Mapping[str, object] = field(default_factory=dict[str, object])


class Observer(Protocol):
    """Receives every call, also for unknown names. It must be quick: it blocks the event loop."""

    def call_started(self, record: CallRecord) -> None:
        """Handle the start of a call; the record changes until the end."""
        del record

    def call_ended(self, record: CallRecord) -> None:
        """Handle the end of a call, whatever its outcome."""
        del record


class CallLog(Observer):
    """Writes one log line for each call, at its end."""

    def call_ended(self, record: CallRecord) -> None:
        """Write the line."""
        own = {key: value for key, value in record.fields.items() if key not in STANDARD_FIELDS}
        fields: dict[str, Any] = own | {record.kind: record.name}
        if record.plugin:
            fields["plugin"] = record.plugin
        fields["duration_ms"] = round(record.seconds * 1000, 2)
        fields["outcome"] = record.outcome
        if record.caller != LOCAL.name:
            fields["caller"] = record.caller
        if record.results is not None:
            fields["results"] = record.results
        if log.isEnabledFor(logging.DEBUG):
            fields["arguments"] = dict(record.arguments)
        log.info("%s call", record.kind, extra=fields)


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """A call of a tool, a prompt or a resource, or a completion for one of them.

    Attributes:
        item: The tool, prompt or resource that is called.
        function: The function to run: the function of *item*, or a completer.
        render: Converts the function's return value into the answer.
        arguments: The arguments from the client, possibly changed by a wrapper.
        host_arguments: Arguments that the host adds, such as the `CallContext`.
        keywords: The validated arguments; empty before validation.
        kind: The kind in the record; by default the kind of *item*.
        is_counted: True once the call has counted against the rate limits.
        record: The record for observers.
    """

    item: Contribution
    function: Callable[..., Any]
    render: Callable[[Any], Any]
    arguments: Mapping[str, Any]
    context: HostContext
    kind: str = ""
    host_arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_counted: bool = False
    record: CallRecord = field(init=False)

    @property
    def limits(self) -> Limits:
        """The limits of the tool, prompt or resource."""
        return self.item.limits

    def __post_init__(self) -> None:
        self.record = CallRecord(
            kind=self.kind or self.item.kind,
            name=self.item.declared,
            plugin=self.item.plugin,
            caller=self.context.caller,
            session=self.context.session,
            arguments=self.arguments,
            fields=self.context.log_fields,
        )


CallNext: TypeAlias = Callable[[Call], Awaitable[Any]]
"""The rest of the pipeline after a step."""


class Step(Protocol):
    """One step of the pipeline: it passes a call on, or answers the call itself."""

    def __call__(self, call: Call, call_next: CallNext) -> Awaitable[Any]:
        """Return the answer."""
        ...


def compose(steps: Sequence[Step], last: CallNext) -> CallNext:
    """Return the steps as one function around *last*; the first step is the outermost."""
    # Bound once, when the host starts, so that no call has to create functions.
    for step in reversed(steps):
        last = partial(step, call_next=last)
    return last


class Recording:
    """The step that keeps the record of a call and passes it to observers.

    Args:
        observers: Read at every call, so that more can be added while the host runs.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = observers

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Record the call, even if it is cancelled."""
        record, began, outcome = call.record, time.perf_counter(), "cancelled"
        observers = tuple(self._observers)
        _notify(observers, "call_started", record)
        try:
            result = await call_next(call)
            outcome, record.results = _outcome(result)
        except InputRequiredError:
            outcome = "asked"
            raise
        except ToolError as exc:
            outcome = exc.error_type
            raise
        else:
            return result
        finally:
            record.seconds, record.outcome = time.perf_counter() - began, outcome
            _notify(observers, "call_ended", record)

    def refused(
        self, kind: str, name: str, arguments: Mapping[str, Any], context: HostContext
    ) -> None:
        """Report a call for a name that is not served to the caller: such a call ends at once."""
        record = CallRecord(
            kind=kind,
            name=name[:_MAX_NAME_CHARS],
            plugin="",
            caller=context.caller,
            session=context.session,
            arguments=arguments,
        )
        observers = tuple(self._observers)
        _notify(observers, "call_started", record)
        record.outcome = NOT_SERVED
        _notify(observers, "call_ended", record)


def _notify(observers: Iterable[Observer], event: str, record: CallRecord) -> None:
    for observer in observers:
        try:
            getattr(observer, event)(record)
        except Exception:
            # A broken observer must not fail the call.
            log.exception("an observer of calls failed")


def _outcome(result: object) -> tuple[str, int | None]:
    """Return the outcome, and the number of results in the envelope of the standards tools."""
    structured = (result.structured if isinstance(result, ToolResult) else None) or {}
    if isinstance(result, ToolResult) and result.is_error:
        return str(structured.get("error_type", "error")), None
    results: object = structured.get("results")
    return "ok", len(cast("list[object]", results)) if isinstance(results, list) else None
