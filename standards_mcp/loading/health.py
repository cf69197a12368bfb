"""Run the health checks of plugins and of services."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.secrets import mask, masked_data
from standards_mcp._utils.text import describe_exception
from standards_mcp.errors import ServiceError
from standards_mcp.plugin import Health, Service

from .manager import PluginManager
from .records import PluginRecord, Status

Healths: TypeAlias = dict[str, Health]
_Check: TypeAlias = Coroutine[Any, Any, Health | None]
_NO_CHECK: Final = object()


async def check_health(manager: PluginManager) -> Healths:
    """Run the health checks of the started plugins concurrently; return the results by name."""
    checks = {
        record.name: _run_check(_ask_plugin(manager, record), record.secrets)
        for record in manager.records.values()
        if record.status is Status.STARTED
    }
    return await _results(checks, manager.timing.health)


async def services_health(manager: PluginManager, *, asks_remote: bool = True) -> Healths:
    """Return the health and the facts of each service that has a provider, by name.

    Args:
        asks_remote: True to include checks that need a network, see `Service.is_remote`. Without
            its check, a service counts as ok.
    """
    services = manager.services.provided()
    checks: dict[str, _Check] = {}
    for name, (plugin, service) in services.items():
        if service.health and (asks_remote or not service.is_remote):
            record = manager.records.get(plugin)
            secrets = record.secrets if record else frozenset[str]()
            checks[name] = _run_check(_ask_service(manager, service), secrets)
    answers = await _results(checks, manager.timing.health)
    healths: Healths = {}
    for name, (_, service) in services.items():
        health = answers.get(name, Health(status="ok"))
        healths[name] = replace(health, facts={**service.facts, **health.facts})
    return healths


async def _results(checks: Mapping[str, _Check], seconds: float) -> Healths:
    """Run checks concurrently; return their results by name, after *seconds* at the latest."""
    tasks = {name: asyncio.ensure_future(check) for name, check in checks.items()}
    if tasks:
        await asyncio.wait(tasks.values(), timeout=seconds)
    healths: Healths = {}
    for name, task in tasks.items():
        if not task.done():
            task.cancel()  # do not wait for its end: the check may ignore the cancellation
            message = f"check_health did not answer within {seconds:g} seconds"
            healths[name] = Health(status="failed", message=message)
        elif task.cancelled():
            healths[name] = Health(status="failed", message="it was cancelled")
        elif health := task.result():
            healths[name] = health
    return healths


async def _ask_plugin(manager: PluginManager, record: PluginRecord) -> object:
    for check in manager.call(record, "check_health"):
        return await check
    return _NO_CHECK


async def _ask_service(manager: PluginManager, service: Service[Any]) -> object:
    value = manager.services.open(service.type)
    return await service.health(value) if service.health else _NO_CHECK


async def _run_check(check: Coroutine[Any, Any, object], secrets: frozenset[str]) -> Health | None:
    """Return the result of a check, as failed if it raises; None if there is no check."""
    try:
        result = await check
        if isinstance(result, Health):
            facts = masked_data(result.facts, secrets)
            return replace(result, message=mask(result.message, secrets), facts=facts)
    except asyncio.CancelledError:
        raise
    except BaseException as exc:
        if is_from_outside(exc):
            raise
        reason = str(exc) if isinstance(exc, ServiceError) else describe_exception(exc)
        return Health(status="failed", message=mask(reason, secrets))
    if result is _NO_CHECK:
        return None
    return Health(status="failed", message=f"check_health returned a {type(result).__name__}")
