"""One call on its way through the steps of the pipeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Protocol, TypeAlias

from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.tools import Limits

from .context import HostContext
from .records import CallRecord


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """A call of a tool, a prompt or a resource, or a completion for one of them.

    Attributes:
        item: What is called.
        function: What answers: of the tool, the prompt, the resource or the completion.
        render: Turns what the function returns into what is sent.
        arguments: As the client sent them, or as a wrapper changed them.
        given: What the host adds to the arguments of the function.
        keywords: The arguments once they are validated.
        kind: What the record calls it; by default the kind of what is called.
        record: What observers learn.
    """

    item: Contribution
    function: Callable[..., Any]
    render: Callable[[Any], Any]
    arguments: Mapping[str, Any]
    limits: Limits
    context: HostContext
    kind: str = ""
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    record: CallRecord = field(init=False)

    def __post_init__(self) -> None:
        self.record = CallRecord(
            kind=self.kind or self.item.kind,
            name=self.item.declared,
            plugin=self.item.plugin,
            caller=self.context.caller,
            arguments=self.arguments,
        )


CallNext: TypeAlias = Callable[[Call], Awaitable[Any]]
"""What comes after a step."""


class Step(Protocol):
    """Answers a call, with what comes after it or without."""

    def __call__(self, call: Call, call_next: CallNext) -> Awaitable[Any]:
        """Return the answer."""
        ...


def compose(steps: Sequence[Step], last: CallNext) -> CallNext:
    """Return the steps as one function, the first outermost, around *last*.

    They are bound to each other once, so that a call makes no function of its own.
    """

    def bind(call_next: CallNext, step: Step) -> CallNext:
        return partial(step, call_next=call_next)

    return reduce(bind, reversed(steps), last)
