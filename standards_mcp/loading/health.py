"""Runs the health checks of plugins."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.secrets import mask
from standards_mcp._utils.text import describe_exception
from standards_mcp.plugin import Health

from .manager import PluginManager
from .records import PluginRecord, Status


async def check_health(manager: PluginManager) -> dict[str, Health]:
    """Return the health of each started plugin that reports it, by name; all run at once."""
    checks = {
        record.name: asyncio.ensure_future(_health(manager, record))
        for record in manager.records.values()
        if record.status is Status.STARTED
    }
    if checks:
        await asyncio.wait(checks.values(), timeout=manager.timing.health)
    found = {name: _result(check, manager.timing.health) for name, check in checks.items()}
    for check in checks.values():
        check.cancel()  # without a wait: it may ignore the cancellation, too
    return {name: health for name, health in found.items() if health is not None}


def _result(check: asyncio.Future[Health | None], seconds: float) -> Health | None:
    if not check.done():
        message = f"check_health did not answer within {seconds:g} seconds"
        return Health(status="failed", message=message)
    return (
        Health(status="failed", message="it was cancelled") if check.cancelled() else check.result()
    )


async def _health(manager: PluginManager, record: PluginRecord) -> Health | None:
    """Return a plugin's health, or None if it has no health check."""
    try:
        for awaitable in manager.call(record, "check_health"):
            return _checked(await awaitable, record.secrets)
    except asyncio.CancelledError:
        raise
    except BaseException as exc:
        if is_from_outside(exc):
            raise
        return Health(status="failed", message=mask(describe_exception(exc), record.secrets))
    return None


def _checked(result: object, secrets: frozenset[str]) -> Health:
    if isinstance(result, Health):
        return replace(result, message=mask(result.message, secrets))
    return Health(status="failed", message=f"check_health returned a {type(result).__name__}")
