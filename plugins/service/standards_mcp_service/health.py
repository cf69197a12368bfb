"""``/health``: the process, its readiness for requests, and the state of its plugins."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from standards_mcp import Health as PluginHealth
from standards_mcp.transports import (
    ADMIN,
    Host,
    PluginRecord,
    Principal,
    Status,
    check_health,
    services_health,
)

from .audit_log import Audit
from .guards import LIVE

_FRESH_SECONDS: Final = 5.0
_T = TypeVar("_T")
Healths: TypeAlias = Mapping[str, PluginHealth]
"""The health of services, or of plugins, by their names."""


class TtlCache(Generic[_T]):
    """Caches the result of an async function for some seconds.

    Plugins and stores are asked at most once in this time; concurrent callers share the result.
    """

    def __init__(self, ask: Callable[[], Awaitable[_T]], seconds: float = _FRESH_SECONDS) -> None:
        self._ask, self._seconds = ask, seconds
        self._previous: _T | None = None
        self._refresh: asyncio.Future[_T] | None = None
        self._stale_at = float("-inf")

    async def __call__(self) -> _T:
        """Return the result."""
        return await asyncio.shield(self._current())

    async def within(self, seconds: float) -> _T | None:
        """Return the result; if it takes longer than *seconds*, the previous result or None."""
        answer = self._current()
        await asyncio.wait([answer], timeout=seconds)
        return answer.result() if answer.done() else self._previous

    def _current(self) -> asyncio.Future[_T]:
        if self._refresh is None or (self._refresh.done() and time.monotonic() > self._stale_at):
            self._refresh = asyncio.ensure_future(self._run())
        return self._refresh

    async def _run(self) -> _T:
        self._stale_at = float("-inf")  # a failure is not cached
        self._previous = result = await self._ask()
        self._stale_at = time.monotonic() + self._seconds
        return result


class Health:
    """Answer the health checks of balancers and operators.

    Args:
        principal_of: Returns the caller; details need the scope ``admin``.
        audit: The audit log, if there is one.
    """

    def __init__(
        self,
        host: Host,
        version: str,
        principal_of: Callable[[Request], Principal],
        audit: Audit | None = None,
    ) -> None:
        self._host, self.version, self._principal_of = host, version, principal_of
        self.audit = audit
        self._began = time.monotonic()
        self.services: TtlCache[Healths] = TtlCache(partial(services_health, host.manager))
        self.plugins: TtlCache[Healths] = TtlCache(partial(check_health, host.manager))

    def routes(self) -> list[BaseRoute]:
        """Return the routes below ``/health``."""
        return [
            Route(LIVE, self._live, methods=["GET"]),
            Route("/health/ready", self._ready, methods=["GET"]),
            Route("/health", self._report_all, methods=["GET"]),
        ]

    def uptime(self) -> int:
        """Return the time since the start, in seconds."""
        return round(time.monotonic() - self._began)

    async def _live(self, _: Request) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def _ready(self, _: Request) -> JSONResponse:
        # Retry the audit log each time: while calls are refused, nothing else writes to it.
        refuses_calls = self.audit and self.audit.is_required and self.audit.check()
        services = (await self.services()).values()
        if refuses_calls or any(service.status == "failed" for service in services):
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    async def _report_all(self, request: Request) -> JSONResponse:
        basic_facts = {"version": self.version, "uptime_seconds": self.uptime()}
        if not self._principal_of(request).holds(ADMIN):
            return JSONResponse(basic_facts)
        services, health = await self.services(), await self.plugins()
        audit = {"status": "ok" if self.audit else "off"}
        if problem := self.audit and self.audit.check():
            audit = {"status": "failed", "reason": problem}
        records = self._host.manager.records
        is_healthy = (
            all(service.status == "ok" for service in services.values())
            and audit["status"] != "failed"
            and all(is_well(record, health.get(name)) for name, record in records.items())
        )
        details = {
            "status": "ok" if is_healthy else "degraded",
            "services": {name: asdict(service) for name, service in services.items()},
            "plugins": {name: _report(records[name], health.get(name)) for name in records},
            "audit": audit,
        }
        return JSONResponse(basic_facts | details)


def _report(record: PluginRecord, health: PluginHealth | None) -> dict[str, Any]:
    report: dict[str, Any] = {"status": record.status, "reason": record.reason}
    if health:
        report["health"] = {"status": health.status, "message": health.message}
    return report


def is_well(record: PluginRecord, health: PluginHealth | None) -> bool:
    """True if neither a plugin nor its own health check has failed."""
    return record.status is not Status.FAILED and (health is None or health.status == "ok")
