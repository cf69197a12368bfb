"""``/health``: whether the process lives, is ready for requests, and what it serves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, Final, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from standards_mcp.calls.context import Principal
from standards_mcp.config.models.http import ADMIN
from standards_mcp.host import Host
from standards_mcp.loading.health import Healths, check_health, services_health
from standards_mcp.loading.records import PluginRecord, Status
from standards_mcp.plugin import Health as PluginHealth
from standards_mcp.server.operations.audit import Audit

from .guards import LIVE

_FRESH_SECONDS: Final = 5.0
_T = TypeVar("_T")


class Fresh(Generic[_T]):
    """What a function returns, asked anew when it is some seconds old; who asks meanwhile waits.

    However often it is asked, plugins and stores are not.
    """

    def __init__(self, ask: Callable[[], Awaitable[_T]], seconds: float = _FRESH_SECONDS) -> None:
        self._ask, self._seconds = ask, seconds
        self._before: _T | None = None
        self._asked: asyncio.Future[_T] | None = None
        self._stale_at = float("-inf")

    async def __call__(self) -> _T:
        """Return what is known."""
        return await asyncio.shield(self._answer())

    async def within(self, seconds: float) -> _T | None:
        """Return what is known, or None if the answer takes longer."""
        answer = self._answer()
        await asyncio.wait([answer], timeout=seconds)
        return answer.result() if answer.done() else None

    async def soon(self, seconds: float) -> _T | None:
        """Return what is known after some seconds: what was before, if the answer takes longer."""
        found = await self.within(seconds)
        return self._before if found is None else found

    def _answer(self) -> asyncio.Future[_T]:
        if self._asked is None or (self._asked.done() and time.monotonic() > self._stale_at):
            self._asked = asyncio.ensure_future(self._ask_now())
        return self._asked

    async def _ask_now(self) -> _T:
        self._stale_at = float("-inf")  # a failure is never fresh
        self._before = found = await self._ask()
        self._stale_at = time.monotonic() + self._seconds
        return found


class Health:
    """Answers what balancers and operators ask.

    Args:
        principal_of: Returns who asks; details are for holders of the scope ``admin``.
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
        self._audit = audit
        self._began = time.monotonic()
        self.services: Fresh[Healths] = Fresh(self._check_services)
        self.plugins: Fresh[Mapping[str, PluginHealth]] = Fresh(self._check_plugins)

    def routes(self) -> list[BaseRoute]:
        """Return the routes below ``/health``."""
        pages: dict[str, Callable[[Request], Any]] = {
            LIVE: self._live,
            "/health/ready": self._ready,
            "/health": self._whole,
        }
        return [Route(path, page, methods=["GET"]) for path, page in pages.items()]

    def uptime(self) -> int:
        """Return for how many seconds the service runs."""
        return round(time.monotonic() - self._began)

    async def _live(self, _: Request) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def _ready(self, _: Request) -> JSONResponse:
        services = (await self.services()).values()
        if self._refuses_calls() or any(each.status == "failed" for each in services):
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    def _refuses_calls(self) -> bool:
        # Asked anew each time: without calls, nothing else finds out that it can be written again.
        return self._audit is not None and self._audit.is_required and bool(self._audit.check())

    async def _whole(self, request: Request) -> JSONResponse:
        own = {
            "version": self.version,
            "uptime_seconds": self.uptime(),
        }
        if not self._principal_of(request).holds(ADMIN):
            return JSONResponse(own)
        services, health = await self.services(), await self.plugins()
        audit = _audit_report(self._audit)
        records = self._host.manager.records
        plugins = {name: _report(records[name], health.get(name)) for name in records}
        are_well = (
            all(each.status == "ok" for each in services.values())
            and audit.get("status") != "failed"
            and all(is_well(records[name], health.get(name)) for name in records)
        )
        return JSONResponse(
            own
            | {
                "status": "ok" if are_well else "degraded",
                "services": {name: asdict(each) for name, each in services.items()},
                "plugins": plugins,
                "audit": audit,
            }
        )

    async def _check_services(self) -> Healths:
        return await services_health(self._host.manager)

    async def _check_plugins(self) -> Mapping[str, PluginHealth]:
        return await check_health(self._host.manager)


def _report(record: PluginRecord, health: PluginHealth | None) -> dict[str, Any]:
    report: dict[str, Any] = {"status": record.status, "reason": record.reason}
    if health:
        report["health"] = {"status": health.status, "message": health.message}
    return report


def is_well(record: PluginRecord, health: PluginHealth | None) -> bool:
    """Tell whether neither a plugin nor its own check, if it has one, has failed."""
    return record.status is not Status.FAILED and (health is None or health.status == "ok")


def _audit_report(audit: Audit | None) -> dict[str, Any]:
    if audit is None:
        return {"status": "off"}
    problem = audit.check()
    return {"status": "failed", "reason": problem} if problem else {"status": "ok"}
