"""Reports each call to the observers; the outermost step."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any, cast

from standards_mcp.calls.call import Call, CallNext
from standards_mcp.calls.context import InputRequiredError
from standards_mcp.calls.records import NOT_SERVED, CallRecord, Observer
from standards_mcp.errors import ToolError
from standards_mcp.plugin import ToolResult

log = logging.getLogger(__name__)


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
