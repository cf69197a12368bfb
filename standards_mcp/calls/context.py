"""What a tool's function learns of its call, and how it may speak with whoever called.

The deadline of a call stands still while a user is asked: people need longer than tools.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio

from standards_mcp.contributions.selection import EVERYTHING, Access
from standards_mcp.errors import CannotAskError
from standards_mcp.plugin import AnswerT

CALL: Final = "standards-mcp/call"
"""The argument that takes the context, of functions that take arguments of any name."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls.

    Attributes:
        name: Limits and cached answers are each principal's own, by this name.
        access: What they see of what the configuration lets everybody see.
    """

    name: str
    access: Access = EVERYTHING

    @property
    def is_restricted(self) -> bool:
        """Whether they must not learn that there is something that they do not see."""
        return self.access != EVERYTHING


LOCAL: Final = Principal("local")
"""Whoever started the process: the user of a client over stdio, or of a command."""


@dataclass(frozen=True, slots=True)
class Question:
    """What another server asks a user.

    Attributes:
        schema: A JSON Schema of the reply: an object of texts, numbers, booleans and choices.
    """

    text: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class InputResponses:
    """What another server gets with a call that it answered with questions before.

    Attributes:
        replies: To its questions, as the SDK has them.
        state: What it gave along, and wants back.
    """

    replies: dict[str, Any] | None = None
    state: str | None = None


class InputRequiredError(BaseException):
    """The client must ask its user and call again.

    Not an `Exception`: what a tool catches of its own faults must not catch this.

    Attributes:
        request: What to answer the client with.
    """

    def __init__(self, request: object) -> None:
        super().__init__("the call is to be repeated with the user's answer")
        self.request = request


class HostContext(ABC):
    """A call in progress. See `standards_mcp.CallContext` for what its methods mean.

    Attributes:
        principal: Who calls.
        responses: What the client brings along for another server that asked.
        is_continuation: The client calls again, as it was told to, with what its user answered.
        has_elicited: The user was asked, so that the answer is of this call alone.
    """

    def __init__(self, principal: Principal = LOCAL) -> None:
        self.principal = principal
        self.responses = InputResponses()
        self.is_continuation = self.has_elicited = False
        self._deadlines: list[anyio.CancelScope] = []
        self._questions = 0
        self._left: list[tuple[anyio.CancelScope, float]] = []

    @property
    def caller(self) -> str:
        """The name of who calls."""
        return self.principal.name

    @abstractmethod
    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is."""

    @abstractmethod
    async def ask(self, question: str, answer: type[AnswerT]) -> AnswerT | None:
        """Return what the user answers to a question, or None when they decline."""

    @property
    @abstractmethod
    def can_ask(self) -> bool:
        """Whether there is a user who can be asked."""

    @property
    @abstractmethod
    def can_ask_midway(self) -> bool:
        """Whether they can be asked while the call runs."""

    @abstractmethod
    async def elicit(self, question: Question) -> Any:
        """Return the reply to a question of another server, which waits for it.

        Raises:
            CannotAskError: Nobody can be asked while the call runs.
        """

    @abstractmethod
    async def next_responses(
        self, questions: Mapping[str, Question], state: str | None
    ) -> InputResponses:
        """Return the replies to the questions by which another server answered the call.

        Raises:
            CannotAskError: Nobody can be asked.
            InputRequiredError: The client asks, and calls again.
        """

    @contextmanager
    def within(self, seconds: float) -> Generator[None]:
        """Cancel what runs inside after so many seconds, as `anyio.move_on_after` does."""
        with anyio.move_on_after(seconds) as scope:
            self._deadlines.append(scope)
            try:
                yield
            finally:
                self._deadlines.remove(scope)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let no deadline pass meanwhile; several questions may be open at a time."""
        self.has_elicited = True
        self._questions += 1
        if self._questions == 1:
            self._stop_clocks()
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._start_clocks()

    def _stop_clocks(self) -> None:
        now = anyio.current_time()
        self._left = [(scope, scope.deadline - now) for scope in self._deadlines]
        for scope in self._deadlines:
            scope.deadline = math.inf

    def _start_clocks(self) -> None:
        now = anyio.current_time()
        for scope, seconds in self._left:
            scope.deadline = now + seconds


class Unattended(HostContext):
    """A call by nobody who could be asked: a command's, or a test's."""

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell nobody."""

    async def ask(self, question: str, answer: type[AnswerT]) -> AnswerT | None:
        """Refuse. See `standards_mcp.CallContext.ask`."""
        del answer
        raise CannotAskError(question)

    @property
    def can_ask(self) -> bool:
        """Never. See `HostContext`."""
        return False

    @property
    def can_ask_midway(self) -> bool:
        """Never, either."""
        return False

    async def elicit(self, question: Question) -> Any:
        """Refuse. See `HostContext`."""
        raise CannotAskError(question.text)

    async def next_responses(
        self, questions: Mapping[str, Question], state: str | None
    ) -> InputResponses:
        """Refuse. See `HostContext`."""
        del state
        raise CannotAskError(" ".join(each.text for each in questions.values()))
