"""Asks whether a call may run at all, before any code of a plugin does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.calls.records import Gate


class Admission:
    """Lets a call pass all gates.

    Args:
        gates: Read at every call, so that more can be added while the host runs.
    """

    def __init__(self, gates: Iterable[Gate]) -> None:
        self._gates = gates

    async def __call__(self, call: Call, call_next: CallNext) -> Any:
        """Answer the call.

        Raises:
            ToolError: A gate does not let it run.
        """
        for gate in self._gates:
            gate(call.record)
        return await call_next(call)
