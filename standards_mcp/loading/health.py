"""Run the health checks of plugins and of services."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from standards_mcp._utils.exceptions import is_from_outside
from standards_mcp._utils.secrets import mask, masked_data
from standards_mcp._utils.text import describe_exception
from standards_mcp.errors import ServiceError
from standards_mcp.plugin import Health, Service

from .manager import PluginManager
from .records import PluginRecord, Status

Healths: TypeAlias = dict[str, Health]
_NO_CHECK: Final = object()
_Ask: TypeAlias = Callable[[], Coroutine[Any, Any, Health | None]]


async def check_health(manager: PluginManager) -> dict[str, Health]:
    """Return the health of each started plugin that reports it, by name; all run at once."""
    started = [each for each in manager.records.values() if each.status is Status.STARTED]
    asking = {
        record.name: partial(_of_plugin, partial(manager.call, record, "check_health"), record)
        for record in started
    }
    return await _answers(asking, manager.timing.health)


async def services_health(manager: PluginManager, *, asks_remote: bool = True) -> Healths:
    """Return the health of each service in use, by name, with what is known without asking.

    Args:
        asks_remote: Whether to ask services that need a network for it, see `Service.is_remote`.
    """
    asking: dict[str, _Ask] = {}
    known: Healths = {}
    for name, (plugin, service) in manager.services.provided().items():
        known[name] = Health(status="ok", facts=service.facts)
        if service.health and (asks_remote or not service.is_remote):
            record = manager.records.get(plugin)
            secrets = record.secrets if record else frozenset[str]()
            asking[name] = partial(_asked, partial(_of_service, manager, service), secrets)
    answers = await _answers(asking, manager.timing.health)
    return {
        name: replace(health := answers.get(name, each), facts={**each.facts, **health.facts})
        for name, each in known.items()
    }


async def _answers(asking: Mapping[str, _Ask], seconds: float) -> Healths:
    """Return the answers by name; all are asked at once, and none takes longer than *seconds*."""
    checks = {name: asyncio.ensure_future(ask()) for name, ask in asking.items()}
    if checks:
        await asyncio.wait(checks.values(), timeout=seconds)
    found = {name: _result(check, seconds) for name, check in checks.items()}
    for check in checks.values():
        check.cancel()  # its end is not waited for: it may ignore this, too
    return {name: health for name, health in found.items() if health is not None}


def _result(check: asyncio.Future[Health | None], seconds: float) -> Health | None:
    if not check.done():
        message = f"check_health did not answer within {seconds:g} seconds"
        return Health(status="failed", message=message)
    return (
        Health(status="failed", message="it was cancelled") if check.cancelled() else check.result()
    )


async def _of_service(manager: PluginManager, service: Service[Any]) -> object:
    value = manager.services.open(service.type)
    return await service.health(value) if service.health else _NO_CHECK


async def _of_plugin(call: Callable[[], list[Any]], record: PluginRecord) -> Health | None:
    """Return a plugin's health, or None if it has no health check."""

    async def ask() -> object:
        for awaitable in call():
            return await awaitable
        return _NO_CHECK

    return await _asked(ask, record.secrets)


async def _asked(ask: Callable[[], Awaitable[object]], secrets: frozenset[str]) -> Health | None:
    """Return the health that a plugin's code gives, or None if it has no check."""
    try:
        found = await ask()
        return None if found is _NO_CHECK else _checked(found, secrets)
    except asyncio.CancelledError:
        raise
    except BaseException as exc:
        if is_from_outside(exc):
            raise
        return Health(status="failed", message=mask(_reason(exc), secrets))


def _reason(exc: BaseException) -> str:
    return str(exc) if isinstance(exc, ServiceError) else describe_exception(exc)


def _checked(result: object, secrets: frozenset[str]) -> Health:
    if isinstance(result, Health):
        facts = masked_data(result.facts, secrets)
        return replace(result, message=mask(result.message, secrets), facts=facts)
    return Health(status="failed", message=f"check_health returned a {type(result).__name__}")
