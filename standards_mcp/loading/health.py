"""Asks plugins how they are."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from standards_mcp._utils.secrets import mask
from standards_mcp._utils.text import describe_exception
from standards_mcp.plugin import Health

from .manager import PluginManager
from .records import PluginRecord, Status

HEALTH_TIMEOUT: Final = 10.0
"""Seconds for the health checks of all plugins."""
_LATE: Final = Health(
    status="failed", message=f"check_health did not answer within {HEALTH_TIMEOUT:g} seconds"
)


async def check_health(manager: PluginManager) -> dict[str, Health]:
    """Return how the started plugins are that tell of it, by their names; asked side by side."""
    checks = {
        record.name: asyncio.ensure_future(_health(manager, record))
        for record in manager.records.values()
        if record.status is Status.STARTED
    }
    if checks:
        # One that does not end is abandoned, since it may not heed its cancellation either.
        await asyncio.wait(checks.values(), timeout=HEALTH_TIMEOUT)
    found = {name: _result(check) for name, check in checks.items()}
    return {name: health for name, health in found.items() if health is not None}


def _result(check: asyncio.Future[Health | None]) -> Health | None:
    if not check.done():
        return _LATE
    return (
        Health(status="failed", message="it was cancelled") if check.cancelled() else check.result()
    )


async def _health(manager: PluginManager, record: PluginRecord) -> Health | None:
    """Return a plugin's health, or None when it tells of none."""
    try:
        for awaitable in manager.call(record, "check_health"):
            return _checked(await awaitable, record.secrets)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as exc:  # noqa: BLE001  - the plugin's failure, also a sys.exit
        return Health(status="failed", message=mask(describe_exception(exc), record.secrets))
    return None


def _checked(result: object, secrets: frozenset[str]) -> Health:
    if isinstance(result, Health):
        return replace(result, message=mask(result.message, secrets))
    return Health(status="failed", message=f"check_health returned a {type(result).__name__}")
