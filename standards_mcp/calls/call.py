"""One call on its way through the steps of the pipeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Protocol, TypeAlias

from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.limits import Limits

from .context import HostContext
from .records import CallRecord


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """A call of a tool, a prompt or a resource, or a completion for one of them.

    Attributes:
        item: The tool, prompt or resource that is called.
        function: The function to run: that of *item*, or a completer.
        render: Converts what the function returns into the answer.
        arguments: As the client sent them, or as a wrapper changed them.
        given: Arguments that the host adds, such as the `CallContext`.
        keywords: The validated arguments; empty before validation.
        kind: The kind in the record; by default that of *item*.
        is_counted: True once the call has counted against the rate limits.
        record: What observers receive.
    """

    item: Contribution
    function: Callable[..., Any]
    render: Callable[[Any], Any]
    arguments: Mapping[str, Any]
    context: HostContext
    kind: str = ""
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_counted: bool = False
    record: CallRecord = field(init=False)

    @property
    def limits(self) -> Limits:
        """Those of what is called."""
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
    """One step of the pipeline: it passes a call on, or answers it alone."""

    def __call__(self, call: Call, call_next: CallNext) -> Awaitable[Any]:
        """Return the answer."""
        ...


def compose(steps: Sequence[Step], last: CallNext) -> CallNext:
    """Return the steps as one function around *last*; the first step is the outermost."""

    # Bound once, when the host starts, so that no call has to create functions.
    def bind(call_next: CallNext, step: Step) -> CallNext:
        return partial(step, call_next=call_next)

    return reduce(bind, reversed(steps), last)
