"""The context of a call: the caller, progress, questions to the user, and deadlines.

The deadline of a call stops while the user answers, because people need longer than tools.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import anyio
import pydantic_core
from pydantic import SecretStr

from standards_mcp.contributions.selection import EVERYTHING, Access
from standards_mcp.errors import Ability, CannotAskError
from standards_mcp.plugin import AnswerT, LogLevel

CALL: Final = "standards-mcp/call"
"""The name of the context argument of functions that accept arguments of any name."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller.

    Attributes:
        name: Rate limits and cached answers are kept separately for each name.
        access: The contributions that this caller may see; this only narrows the configuration.
        scopes: The scopes of the caller's token; None: all scopes except *withheld*.
        withheld: Scopes that a token for all scopes does not include.
        token: The caller's JSON Web Token, to exchange it for a token of another server.
    """

    name: str
    access: Access = EVERYTHING
    scopes: frozenset[str] | None = None
    withheld: frozenset[str] = frozenset()
    token: SecretStr | None = field(default=None, repr=False, compare=False)

    @property
    def is_restricted(self) -> bool:
        """True if hidden items must look unknown to this caller."""
        return self.access != EVERYTHING

    def holds(self, scope: str) -> bool:
        """Return True if the caller may use contributions that need this scope."""
        return scope not in self.withheld if self.scopes is None else scope in self.scopes


LOCAL: Final = Principal("local")
"""The user who started the process: with a client over stdio, or with a command."""
CALLER: Final = ContextVar[Principal | None]("caller", default=None)
"""The caller while the function of a plugin runs, for calls to other servers."""


class ClientRequest(NamedTuple):
    """A request to the client: a question to its user, a prompt for its model, or its roots.

    Attributes:
        params: The parameters of the MCP request.
    """

    ability: Ability
    params: Mapping[str, Any] = {}

    @property
    def text(self) -> str:
        """The question to the user in words, or an empty string."""
        return str(self.params.get("message", ""))


class InputResponses(NamedTuple):
    """The replies to another server's questions, in a call that the client repeats with them.

    Attributes:
        replies: The replies to the questions, as objects of the SDK.
        state: The opaque state that the server sent with its questions.
    """

    replies: dict[str, Any] | None = None
    state: str | None = None


class InputRequiredError(BaseException):
    """The client must ask its user and call again.

    Not an `Exception`, so that ``except Exception`` in a tool does not catch it.

    Attributes:
        request: The answer for the client, with the questions.
    """

    def __init__(self, request: object) -> None:
        super().__init__("the call is to be repeated with the user's answer")
        self.request = request


class HostContext:
    """The host's side of a call. This base class has no user, as in a command or a test.

    `standards_mcp.CallContext` describes the methods that plugins use.

    Attributes:
        principal: The caller.
        session: The id of the session of the call, or an empty string.
        responses: The client's replies to the questions of another server.
        is_continuation: True if the client repeats a call with its user's answers.
        is_exact: True if arguments must fit the published schema without corrections.
        has_elicited: True if the user was asked, so the answer must not be cached.
        log_fields: Fields that the plugin adds to the log line of the call.
    """

    def __init__(self, principal: Principal = LOCAL, session: str = "") -> None:
        self.principal = principal
        self.session = session
        self.responses = InputResponses()
        self.log_fields: dict[str, object] = {}
        self.is_continuation = self.is_exact = self.has_elicited = False
        self._deadlines: list[anyio.CancelScope] = []
        self._open_questions = 0
        self._remaining: list[tuple[anyio.CancelScope, float]] = []

    @property
    def caller(self) -> str:
        """The caller's name."""
        return self.principal.name

    def add_log_fields(self, **fields: object) -> None:
        """Add fields to the log line of the call. See `standards_mcp.CallContext`."""
        plain = pydantic_core.to_jsonable_python(fields, bytes_mode="base64", fallback=str)
        self.log_fields.update(plain)

    async def report_progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report to the client how far the call is."""

    async def log(self, message: str, level: LogLevel = "info") -> None:
        """Send a line for the client's log."""

    async def ask(self, question: str, answer: type[AnswerT], *, key: str = "") -> AnswerT | None:
        """Return the user's answer to a question, or None when they decline."""
        del answer, key
        raise CannotAskError(question)

    async def sample(
        self, prompt: str, *, max_tokens: int = 1000, system: str = "", key: str = ""
    ) -> str:
        """Return the answer of the client's model."""
        del prompt, max_tokens, system, key
        raise CannotAskError(ability="sampling")

    async def roots(self) -> list[str]:
        """Return the URIs of the user's working folders."""
        raise CannotAskError(ability="roots")

    @property
    def abilities(self) -> frozenset[Ability]:
        """The kinds of requests that the client accepts."""
        return frozenset()

    @property
    def can_ask_midway(self) -> bool:
        """True if the user can be asked while the call is running."""
        return False

    async def put(self, request: ClientRequest) -> Any:
        """Put a request of another server to the client, and return the reply.

        Raises:
            CannotAskError: The client cannot reply to this request while the call runs.
        """
        raise refusal(request)

    async def next_responses(
        self, requests: Mapping[str, ClientRequest], state: str | None
    ) -> InputResponses:
        """Return the replies to requests that another server sent as its answer to the call.

        Raises:
            CannotAskError: The client does not support one of the requests.
            InputRequiredError: The client must reply to the requests, and call again.
        """
        del state
        raise refusal(*requests.values())

    @contextmanager
    def within(self, seconds: float) -> Generator[None]:
        """Cancel the body after *seconds*, as `anyio.move_on_after` does; pauses do not count."""
        with anyio.move_on_after(seconds) as scope:
            self._deadlines.append(scope)
            try:
                yield
            finally:
                self._deadlines.remove(scope)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop all deadlines of the call in the body. Such contexts may overlap."""
        self.has_elicited = True
        # Several questions may be open together: the first one stops the clocks, and the last
        # answer starts them again.
        self._open_questions += 1
        if self._open_questions == 1:
            # A cancel scope has no pause, so remove its deadline and keep the remaining time.
            now = anyio.current_time()
            self._remaining = [(scope, scope.deadline - now) for scope in self._deadlines]
            for scope in self._deadlines:
                scope.deadline = math.inf
        try:
            yield
        finally:
            self._open_questions -= 1
            if not self._open_questions:
                now = anyio.current_time()
                for scope, seconds in self._remaining:
                    scope.deadline = now + seconds


def refusal(*requests: ClientRequest) -> CannotAskError:
    """Return the error for requests that a client does not accept."""
    text = " ".join(request.text for request in requests if request.text)
    return CannotAskError(text, ability=requests[0].ability)
