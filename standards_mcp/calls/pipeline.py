"""The order of the steps of a call, composed once for all calls.

From the outside in: records, what may refuse any call, masked errors, the cap on the output, the
wrappers of plugins, errors as results, crashes, the deadline, the validation of the arguments,
cached answers, the rate limit, the slots of the tool and of its plugin, and the function. Prompts
and resources skip the steps that are about results of tools, and are refused where they are too
long. Completions also skip the validation of arguments, and the limits of rate and length. Routes
skip validation and length.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import ToolError
from standards_mcp.plugin import ToolHandler, ToolResult

from .call import Call, CallNext, Step, compose
from .context import HostContext, InputRequiredError, Unattended
from .invocation import Invocation
from .records import NOT_SERVED, CallRecord, Gate, Observer
from .redis import SharedRedis
from .steps.cache import Cache
from .steps.errors import Masking, as_results, contain
from .steps.limits import Admission, RateLimits, Slots, Validation, within_deadline
from .steps.output import cap_output, refuse_long
from .steps.wrappers import Wrappers

log = logging.getLogger(__name__)

_LONGEST_NAME: Final = 200


class Pipeline:
    """Runs calls through the steps, within the limits that each call carries.

    Args:
        secrets: Returns the texts that must not stand in an error.
        observers: They get the record of each call.
        gates: Each may refuse a call before any code of a plugin runs for it.
        storage: A ``redis://`` URL for rate limits and cached answers; None: in this process.

    Raises:
        ConfigError: *storage* cannot be used.
    """

    def __init__(
        self,
        secrets: Callable[[], frozenset[str]],
        observers: Sequence[Observer] = (),
        gates: Sequence[Gate] = (),
        storage: str | None = None,
        timing: Timing = DEFAULT_TIMING,
    ) -> None:
        self._redis = SharedRedis(storage, timing.redis) if storage else None
        self._wrappers, self._invocation = Wrappers(), Invocation()
        self._recording, self._slots = Recording(observers), Slots()
        admission, masking = Admission(gates), Masking(secrets)
        begin: tuple[Step, ...] = (self._recording, admission, masking)
        self.rate_limits, slots = RateLimits(self._redis), self._slots
        rate_limits = self.rate_limits
        validation = Validation(rate_limits.count)
        tool: tuple[Step, ...] = (
            self._recording,
            as_results,  # a refusal, too
            admission,
            masking,
            cap_output,
            # Outside of errors and the deadline, so that wrappers see every failure as a result.
            self._wrappers,
            as_results,
            contain,
            # Before the slots: waiting for a slot is part of the time that a client waits.
            within_deadline,
            validation,
            # Before the limits: a cached answer costs nothing that they protect.
            Cache(self._redis),
            rate_limits,
            slots,
        )
        content: tuple[Step, ...] = (
            *begin,
            refuse_long,
            contain,
            within_deadline,
            validation,
            rate_limits,
            slots,
        )
        completion: tuple[Step, ...] = (*begin, contain, within_deadline, slots)
        route: tuple[Step, ...] = (*begin, contain, within_deadline, rate_limits, slots)
        self._call_tool = compose(tool, self._invocation)
        self._get = compose(content, self._invocation)
        self._complete = compose(completion, self._invocation)
        self._respond = compose(route, self._invocation)

    def wrap(self, wrapper: Callable[[ToolHandler], ToolHandler]) -> None:
        """Replace the handler of tool calls by what *wrapper* returns for it."""
        self._wrappers.wrap(wrapper)

    async def call_tool(
        self,
        item: RegisteredTool,
        arguments: Mapping[str, Any],
        context: HostContext | None = None,
    ) -> ToolResult:
        """Call a tool and return its result; failures are results, too.

        Args:
            context: The caller's context; by default there is nobody to ask.

        Raises:
            InputRequiredError: The client must ask its user, and call again.
        """
        context = context or Unattended()
        call = Call(
            item=item,
            function=item.tool.function,
            render=item.result.render,
            arguments=arguments,
            context=context,
            given={item.context: context} if item.context else {},
        )
        result: ToolResult = await self._call_tool(call)
        return result

    async def get(self, call: Call) -> Any:
        """Return the messages of a prompt or the contents of a resource.

        Raises:
            ToolError: It refused, failed or did not answer in time.
        """
        return await self._get(call)

    async def complete(self, call: Call) -> Any:
        """Return the values that complete an argument; the other arguments are not validated.

        Raises:
            ToolError: The completer refused, failed or did not answer in time.
        """
        return await self._complete(call)

    def refused(
        self, kind: str, name: str, arguments: Mapping[str, Any], context: HostContext
    ) -> None:
        """Tell observers of a call of something that is not served to the caller."""
        self._recording.refused(
            CallRecord(
                kind=kind,
                name=name[:_LONGEST_NAME],
                plugin="",
                caller=context.caller,
                session=context.session,
                arguments=arguments,
            )
        )

    @property
    def waiting(self) -> int:
        """How many calls wait for a slot."""
        return self._slots.waiting

    async def respond(self, call: Call) -> None:
        """Answer the request of a route; the function of the call sends the response.

        Raises:
            ToolError: It refused, failed or did not answer in time.
        """
        await self._respond(call)

    def stuck_seconds(self, plugin: str) -> float:
        """Return the seconds that a plugin's function has run on after its call was given up."""
        return self._invocation.stuck_seconds(plugin)

    async def aclose(self) -> None:
        """Close the connections to shared storage; a later call connects anew."""
        if self._redis:
            await self._redis.aclose()


class Recording:
    """Keeps the record of a call and gives it to observers.

    Args:
        observers: Read at every call, so that more can be added while the host runs.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = observers

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Record the call, even if it is cancelled."""
        record, began, outcome = call.record, time.perf_counter(), "cancelled"
        observers = tuple(self._observers)
        _tell(observers, "call_started", record)
        try:
            result = await call_next(call)
            outcome = _outcome(result)
            record.results = _count(result) if outcome == "ok" else None
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
            _tell(observers, "call_ended", record)

    def refused(self, record: CallRecord) -> None:
        """Tell observers of a call that has reached nothing: its end is its start."""
        observers = tuple(self._observers)
        _tell(observers, "call_started", record)
        record.outcome = NOT_SERVED
        _tell(observers, "call_ended", record)


def _tell(observers: Iterable[Observer], event: str, record: CallRecord) -> None:
    for observer in observers:
        try:
            getattr(observer, event)(record)
        except Exception:
            # An observer must not be able to fail a call.
            log.exception("an observer of calls failed")


def _outcome(result: object) -> str:
    if not isinstance(result, ToolResult) or not result.is_error:
        return "ok"
    return str((result.structured or {}).get("error_type", "error"))


def _count(result: object) -> int | None:
    """Return how many results an answer in the envelope of the standards tools has."""
    structured = result.structured if isinstance(result, ToolResult) else None
    results: object = structured.get("results") if structured else None
    return len(cast("list[object]", results)) if isinstance(results, list) else None
