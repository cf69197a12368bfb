"""``/health``: whether the process lives, is ready for requests, and what it serves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from standards_mcp.calls.context import Principal
from standards_mcp.catalog.errors import CatalogError
from standards_mcp.host import Host

from .guards import LIVE


class Health:
    """Answers what balancers and operators ask.

    Args:
        principal_of: Returns who asks; what plugins there are is for those who may see all.
    """

    def __init__(
        self, host: Host, version: str, principal_of: Callable[[Request], Principal]
    ) -> None:
        self._host, self._version, self._principal_of = host, version, principal_of
        self._began = time.monotonic()

    def routes(self) -> list[BaseRoute]:
        """Return the routes below ``/health``."""
        pages: dict[str, Callable[[Request], Any]] = {
            LIVE: self._live,
            "/health/ready": self._ready,
            "/health": self._whole,
        }
        return [Route(path, page, methods=["GET"]) for path, page in pages.items()]

    async def _live(self, _: Request) -> JSONResponse:
        return JSONResponse({"status": "alive"})

    async def _ready(self, _: Request) -> JSONResponse:
        if (await self._catalog())[1]:
            return JSONResponse({"status": "not ready"}, 503)
        return JSONResponse({"status": "ready"})

    async def _whole(self, request: Request) -> JSONResponse:
        own = {
            "version": self._version,
            "uptime_seconds": round(time.monotonic() - self._began),
        }
        if self._principal_of(request).is_restricted:
            return JSONResponse(own)
        catalog, problem = await self._catalog()
        return JSONResponse(
            own
            | {
                "catalog": {"error": problem} if problem else catalog,
                "plugins": {
                    name: {"status": record.status, "reason": record.reason}
                    for name, record in self._host.manager.records.items()
                },
            }
        )

    async def _catalog(self) -> tuple[dict[str, Any], str]:
        try:
            stats = await self._host.catalog_stats()
        except CatalogError as exc:
            return {}, str(exc)
        return {"backend": stats.backend, "records": stats.records}, ""
