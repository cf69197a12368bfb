"""Limits of a call: gates, the deadline, valid arguments, rate limits and slots.

Each step in this module may refuse or delay a call before the function of its plugin runs.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from standards_mcp.contributions.arguments import decoded_texts
from standards_mcp.contributions.schemas import plain_object, schema_errors, schema_validator
from standards_mcp.errors import InvalidInputError, RateLimitedError, TimedOutError, ToolError

from .cache import SharedRedis
from .call import Call, CallNext, Gate, Step

if TYPE_CHECKING:
    from limits.aio.strategies import MovingWindowRateLimiter

_JSON: Final = re.compile(r"\s*[\[{].*[\]}]\s*", re.DOTALL)
_MANY_VALUES: Final = 200  # whose validation takes about ten milliseconds at most
_MAX_CALLERS: Final = 10_000  # of all tools together
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def admission(gates: Iterable[Gate]) -> Step:
    """Return the step that lets a call pass all gates; more can be added while the host runs."""

    async def admit(call: Call, call_next: CallNext) -> Any:
        for gate in gates:
            gate(call.record)
        return await call_next(call)

    return admit


async def within_deadline(call: Call, call_next: CallNext) -> Any:
    """Answer the call within its timeout; waiting for a user does not count.

    Raises:
        TimedOutError: There was no answer in time.
    """
    seconds = call.limits.timeout
    with call.context.within(seconds):
        return await call_next(call)
    raise TimedOutError(
        f"{call.item.published} did not answer within {seconds:g} s. Try again with a smaller "
        "request, or raise its timeout in the configuration."
    )


def validation(count: Callable[[Call], Awaitable[None]]) -> Step:
    """Return the step that validates the arguments, or raises an `InvalidInputError`.

    Args:
        count: Counts a call against the rate limit. It is called for refused arguments, and before
            the slow validation of many values.
    """

    async def validate(call: Call, call_next: CallNext) -> Any:
        arguments = call.item.arguments
        try:
            if _checked_count(call) > _MANY_VALUES:
                await count(call)
            # Programs would rely on everything that the REST API accepts beyond its schema.
            if call.context.is_exact and (
                mistakes := schema_errors(schema_validator(arguments.schema), call.arguments)
            ):
                raise InvalidInputError(mistakes)
            call.keywords = await arguments.validate(call.arguments)
        except ToolError:
            await count(call)
            raise
        return await call_next(call)

    return validate


def _checked_count(call: Call) -> int:
    """Return the number of values in the arguments, also in texts that may be lists or objects.

    Raises:
        InvalidInputError: There are too many values, or a number is infinite, such as ``1e999``.
    """
    most, count, values_in_texts = call.limits.max_argument_values, 0, 0
    unchecked: list[object] = [dict(call.arguments)]
    while unchecked and count <= most:
        value = unchecked.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInputError(
                "an argument has a number that is not finite, such as 1e999 or NaN"
            )
        if isinstance(value, str):
            values_in_texts += _values_in_text(value) if _JSON.fullmatch(value) else 0
        elif isinstance(value, dict | list | tuple):
            held = cast("dict[str, object] | list[object]", value)
            count += len(held)
            if count <= most:
                unchecked += held.values() if isinstance(held, dict) else held
    if count <= most < count + values_in_texts:
        # Only now, because decoding is slow, and most texts are for arguments that are texts.
        schema = plain_object(call.item.arguments.schema)
        count += sum(map(_values_in_text, decoded_texts(dict(call.arguments), schema)))
    if count > most:
        raise InvalidInputError(
            f"the arguments have more than {most:,} values; send fewer in one call, or let the"
            " administrator raise max_argument_values in [tools]"
        )
    return count + values_in_texts


def _values_in_text(text: str) -> int:
    """Return the number of commas and opening brackets: each value of a JSON text needs one."""
    return sum(map(text.count, ",[{"))


class RateLimits:
    """Counts calls in a moving window for each tool, prompt or resource and each caller.

    Args:
        redis: A Redis that several processes share; None: this process counts alone.
    """

    def __init__(self, redis: SharedRedis | None = None) -> None:
        self._times: dict[tuple[str, str, str], deque[float]] = {}
        self._redis = redis
        self._shared: MovingWindowRateLimiter | None = None

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Answer the call within the rate limits.

        Raises:
            RateLimitedError: The caller has called the contribution too often.
        """
        await self.count(call)
        return await call_next(call)

    async def count(self, call: Call) -> None:
        """Count a call once; one that continues after a question is not counted again.

        Raises:
            RateLimitedError: The caller has called the contribution too often.
        """
        item = call.item
        # A user's reply repeats the call, so with a limit of `1/minute` no user could reply.
        if not (call.is_counted or call.context.is_continuation):
            call.is_counted = True
            counted, limits = f"{item.kind} {item.declared}", call.limits.rate_limits
            await self.count_for(call.context.caller, counted, item.published, limits)

    async def count_for(
        self, caller: str, counted: str, published: str, limits: Sequence[str]
    ) -> None:
        """Count a call that may have no item. See `count`."""
        seconds, limit = await self.wait(limits, counted, caller) if limits else (0, "")
        if seconds:
            raise RateLimitedError(
                f"{published} is limited to {limit}. Try again in {seconds} s.",
                retry_after=seconds,
            )

    async def wait(self, limits: Sequence[str], counted: str, caller: str) -> tuple[int, str]:
        """Count a call, or return the seconds that it must wait and the limit that refuses it.

        A refused call counts against no limit. If Redis does not answer, this process counts for
        itself.

        Args:
            limits: For example ``60/minute``.
            counted: The kind and the name of the contribution.
        """
        if self._redis:
            request = partial(self._shared_wait, self._redis.pool, limits, counted, caller)
            answer = await self._redis.ask(request, "shared rate limits cannot be reached")
            if answer:
                return answer
        # The memory storage of `limits` would make calls a third slower.
        now = time.monotonic()
        calls = {limit: self._times_of((limit, counted, caller)) for limit in limits}
        longest = max(
            (_seconds_to_wait(limit, times, now), limit) for limit, times in calls.items()
        )
        if not longest[0]:
            for times in calls.values():
                times.append(now)
        return longest

    async def _shared_wait(
        self, pool: Any, limits: Sequence[str], counted: str, caller: str
    ) -> tuple[int, str]:
        # A quarter of a second to import, and few configurations share limits.
        from limits import parse  # noqa: PLC0415
        from limits.aio.strategies import MovingWindowRateLimiter  # noqa: PLC0415
        from limits.storage import storage_from_string  # noqa: PLC0415

        if self._shared is None:
            options: dict[str, Any] = {"implementation": "redispy", "connection_pool": pool}
            storage: Any = storage_from_string("async+redis://localhost:6379", **options)
            self._shared = MovingWindowRateLimiter(storage)
        items = {limit: parse(limit) for limit in limits}
        # With one limit, `hit` alone both asks and counts.
        one_step, two_steps = (self._shared.hit,), (self._shared.test, self._shared.hit)
        for ask in two_steps if len(items) > 1 else one_step:
            for limit, item in items.items():
                if not await ask(item, counted, caller):
                    window = await self._shared.get_window_stats(item, counted, caller)
                    return max(1, math.ceil(window.reset_time - time.time())), limit
        return 0, ""

    def _times_of(self, key: tuple[str, str, str]) -> deque[float]:
        """Return the times of earlier calls; of too many callers, forget the longest inactive."""
        # Removed and added again, so the first key is the one with the oldest call.
        calls = self._times[key] = self._times.pop(key, deque())
        if len(self._times) > _MAX_CALLERS:
            del self._times[next(iter(self._times))]
        return calls


def _seconds_to_wait(limit: str, calls: deque[float], now: float) -> int:
    """Return the seconds that a call must wait; drop the times before the window."""
    count, _, span = limit.partition("/")
    while calls and calls[0] <= now - _SECONDS[span]:
        calls.popleft()
    return max(1, math.ceil(calls[0] + _SECONDS[span] - now)) if len(calls) >= int(count) else 0


# A slot bounds the cost of a tool for the machine, so it counts for all callers together. Callers
# without a token count as one.
class Slots:
    """Runs a call once the contribution and its plugin have a free slot each.

    Attributes:
        waiting: The number of calls that wait for a slot.
    """

    def __init__(self) -> None:
        self.waiting = 0
        self._semaphores: dict[tuple[str, int], FairSemaphore] = {}

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Wait for the slots, then answer the call."""
        limits, item = call.limits, call.item
        # The tool's slot first: calls that wait for a busy tool must not hold slots of the plugin.
        sizes = {
            f"{item.kind} {item.declared}": limits.concurrency,
            f"plugin {item.plugin}": limits.plugin_concurrency,
        }
        with ExitStack() as held:
            self.waiting += 1
            try:
                for owner, size in sizes.items():
                    if size is not None:
                        # A new size makes a new semaphore; running calls keep their old slots.
                        slots = self._semaphores.setdefault((owner, size), FairSemaphore(size))
                        await slots.acquire(call.context.caller)
                        held.callback(slots.release)
            finally:
                self.waiting -= 1
            return await call_next(call)


class FairSemaphore:
    """A semaphore that serves waiting callers in turn.

    A caller with many waiting calls delays another caller by one call at most.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def acquire(self, caller: str) -> None:
        """Wait for a slot and take it."""
        if self._free:  # then the queue is empty
            self._free -= 1
            return
        slot = asyncio.get_running_loop().create_future()
        calls = self._waiting.setdefault(caller, deque())
        calls.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if not slot.cancelled():  # the slot came at the same moment
                self.release()
            elif slot in calls:
                calls.remove(slot)
                if not calls:
                    del self._waiting[caller]
            raise

    def release(self) -> None:
        """Pass the slot to the next caller."""
        while self._waiting:
            caller = next(iter(self._waiting))
            calls = self._waiting.pop(caller)
            slot = calls.popleft()
            if calls:
                self._waiting[caller] = calls  # behind the others
            if not slot.done():  # a call may just have been cancelled
                slot.set_result(None)
                return
        self._free += 1
