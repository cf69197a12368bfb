"""The order of the steps of a call, composed once for all calls.

From the outside in: records, masked errors, the cap on the output, the wrappers of plugins, errors
as results, crashes, the deadline, the validation of the arguments, cached answers, the rate limit,
the slots of the tool and of its plugin, and at last the function. So a cached answer counts against
no limit, and waiting for a slot counts against the deadline. Prompts and resources have those steps
that are not about results of tools; completions have no arguments to validate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.plugin import ToolHandler, ToolResult

from .call import Call, Step, compose
from .context import HostContext, Unattended
from .records import Observer
from .redis import redis_connections
from .steps.cache import Cache
from .steps.deadline import within_deadline
from .steps.errors import Masking, as_results, contain
from .steps.invocation import Invocation
from .steps.output import cap_output
from .steps.rate_limits import RateLimits
from .steps.recording import Recording
from .steps.slots import Slots
from .steps.validation import validate
from .steps.wrappers import Wrappers


class Pipeline:
    """Answers calls within the limits that each of them carries.

    Args:
        secrets: Returns what no error may tell.
        observers: Get the record of each call.
        storage: A ``redis://`` URL to count rates and keep answers at; None: in this process.

    Raises:
        ConfigError: *storage* cannot be used.
    """

    def __init__(
        self,
        secrets: Callable[[], frozenset[str]],
        observers: Sequence[Observer] = (),
        storage: str | None = None,
    ) -> None:
        self._pool: Any = redis_connections(storage) if storage else None
        self._wrappers, self._invocation = Wrappers(), Invocation()
        begin: tuple[Step, ...] = (Recording(observers), Masking(secrets))
        slots = Slots()
        tool: tuple[Step, ...] = (
            *begin,
            cap_output,
            self._wrappers,
            as_results,
            contain,
            within_deadline,
            validate,
            Cache(self._pool),
            RateLimits(self._pool),
            slots,
        )
        content: tuple[Step, ...] = (*begin, contain, within_deadline, validate, slots)
        completion: tuple[Step, ...] = (*begin, contain, within_deadline, slots)
        self._call_tool = compose(tool, self._invocation)
        self._get = compose(content, self._invocation)
        self._complete = compose(completion, self._invocation)

    def wrap(self, wrapper: Callable[[ToolHandler], ToolHandler]) -> None:
        """Put around the calls of tools what *wrapper* makes of their handler."""
        self._wrappers.wrap(wrapper)

    async def call_tool(
        self,
        item: RegisteredTool,
        arguments: Mapping[str, Any],
        context: HostContext | None = None,
    ) -> ToolResult:
        """Call a tool and return what it came to; its failures are results, too.

        Args:
            context: Who calls, and how to ask them; by default nobody who can be asked.

        Raises:
            InputRequiredError: The client must ask its user, and call again.
        """
        context = context or Unattended()
        call = Call(
            item=item,
            function=item.tool.function,
            render=item.result.render,
            arguments=arguments,
            limits=item.limits,
            context=context,
            given={item.context: context} if item.context else {},
        )
        result: ToolResult = await self._call_tool(call)
        return result

    async def get(self, call: Call) -> Any:
        """Return what a prompt says or a resource holds.

        Raises:
            ToolError: It refused, failed or did not answer in time.
        """
        return await self._get(call)

    async def complete(self, call: Call) -> Any:
        """Return what completes an argument; those of the call itself are not validated.

        Raises:
            ToolError: The completer refused, failed or did not answer in time.
        """
        return await self._complete(call)

    def stuck_seconds(self, plugin: str) -> float:
        """For how long a function of a plugin has gone on after its call was given up."""
        return self._invocation.stuck_seconds(plugin)

    async def aclose(self) -> None:
        """Let go of shared storage; a later call connects anew."""
        if self._pool:
            await self._pool.disconnect()
