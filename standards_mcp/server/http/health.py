"""``/health``: whether the process lives, is ready for requests, and what it serves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from standards_mcp.catalog.errors import CatalogError
from standards_mcp.host import Host

LIVE: Final = "/health/live"


class Health:
    """Answers what balancers and operators ask.

    Attributes:
        is_draining: The process is about to end, and takes no more requests.
    """

    def __init__(self, host: Host, version: str) -> None:
        self._host, self._version = host, version
        self._began = time.monotonic()
        self.is_draining = False

    def routes(self) -> list[Route]:
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
        problem = (await self._catalog())[1]
        reason = "the service is ending" if self.is_draining else problem
        if reason:
            return JSONResponse({"status": "not ready", "reason": reason}, 503)
        return JSONResponse({"status": "ready"})

    async def _whole(self, _: Request) -> JSONResponse:
        catalog, problem = await self._catalog()
        return JSONResponse(
            {
                "version": self._version,
                "uptime_seconds": round(time.monotonic() - self._began),
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
