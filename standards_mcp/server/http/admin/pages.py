"""The routes of the admin page: who may see it, its pages, and what their forms do."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlencode

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from standards_mcp._utils.secrets import mask
from standards_mcp.calls.context import Principal
from standards_mcp.config.models.http import ADMIN
from standards_mcp.host import Host
from standards_mcp.server.http.api.bodies import media_type, with_body
from standards_mcp.server.http.authorization import ANONYMOUS
from standards_mcp.server.http.guards import is_own_origin
from standards_mcp.server.http.health import Health
from standards_mcp.server.http.sessions import Sessions
from standards_mcp.server.http.sockets import is_private
from standards_mcp.server.reload import waiting_for_restart

from .changes import Changes, NotAgreedError, RefusedError
from .charts import calls_chart, latency_chart
from .facts import PluginFacts, config_tables, plugin_facts, served_tokens
from .history import History, Hour
from .rendering import Templates

log = logging.getLogger(__name__)

PATH: Final = "/admin"
_TOOLS: Final = f"{PATH}/tools"
_CONFIGURATION: Final = f"{PATH}/configuration"
_FORM: Final = "application/x-www-form-urlencoded"
_FORM_BYTES: Final = 16_384
_SHOWN: Final = 20
_REFRESH_SECONDS: Final = 10
_ANSWER_SECONDS: Final = 1.0
_OTHER_WORKER_SECONDS: Final = 2.0
_Page: TypeAlias = Callable[[Request, Principal], Awaitable[Response]]


class Admin:
    """Shows what a service does, and switches its tools.

    Args:
        principal_of: Returns who asks.
        streams: Returns how many clients listen to what may come.
    """

    def __init__(
        self,
        host: Host,
        principal_of: Callable[[Request], Principal],
        changes: Changes,
        health: Health,
        sessions: Sessions,
        streams: Callable[[], int],
    ) -> None:
        self._host, self._principal_of, self._changes = host, principal_of, changes
        self._health, self._sessions, self._streams = health, sessions, streams
        self._history = History()
        host.observe(self._history)
        settings = host.settings.server
        self._is_open = is_private(settings)
        self._templates = Templates(
            version=health.version,
            pid=os.getpid(),
            workers=settings.workers,
            uptime=health.uptime,
        )

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the pages."""
        pages: list[tuple[str, str, _Page]] = [
            (PATH, "GET", self._overview),
            (_TOOLS, "GET", self._tools),
            (_TOOLS, "POST", self._switch),
            (_CONFIGURATION, "GET", self._configuration),
            (_CONFIGURATION, "POST", self._take_over),
            (f"{PATH}/style.css", "GET", self._style),
        ]
        return [Route(path, self._for_admins(page), methods=[how]) for path, how, page in pages]

    def _for_admins(self, page: _Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                principal = self._admin(request)
                if request.method == "POST":
                    check_own_page(request)
                return await page(request, principal)
            except HTTPException as exc:
                return self._show(request, "refused.html", exc.status_code, why=exc.detail)

        return answer

    def _admin(self, request: Request) -> Principal:
        """Return who asks.

        Raises:
            HTTPException: It is nobody who may administer the service.
        """
        principal = self._principal_of(request)
        if principal is ANONYMOUS and not self._is_open:
            why = "This page needs a token where others than programs of this machine reach it."
            raise HTTPException(403, f"{why} Make one: auth token new NAME --scope {ADMIN}")
        if not principal.holds(ADMIN):
            raise HTTPException(403, f"This page needs a token with the scope {ADMIN!r}.")
        return principal

    async def _overview(self, request: Request, _: Principal) -> Response:
        hour = self._history.hour()
        services = await self._health.services.soon(_ANSWER_SECONDS)
        plugins = await self._plugins(hour)
        response = self._show(
            request,
            "overview.html",
            hour=hour,
            charts=[calls_chart(hour), latency_chart(hour)],
            running=self._history.running,
            most=_SHOWN,
            plugins=plugins,
            tokens=served_tokens(plugins),
            services=services,
            sessions=self._sessions.count,
            most_sessions=self._host.settings.server.max_sessions,
            clients=self._sessions.by_client().most_common(_SHOWN),
            streams=self._streams(),
            is_refreshed=(is_refreshed := "refresh" in request.query_params),
            refresh_seconds=_REFRESH_SECONDS,
        )
        if is_refreshed:
            response.headers["refresh"] = str(_REFRESH_SECONDS)
        return response

    async def _plugins(self, hour: Hour) -> list[PluginFacts]:
        health = await self._health.plugins.soon(_ANSWER_SECONDS) or {}
        return plugin_facts(self._host, health, hour.by_name)

    async def _tools(self, request: Request, _: Principal) -> Response:
        query = request.query_params
        if "changed" in query:
            await self._other_worker()
        return await self._show_tools(request, changed=query.get("changed", ""))

    async def _show_tools(
        self, request: Request, status: int = 200, *, problem: str = "", changed: str = ""
    ) -> Response:
        plugins = await self._plugins(self._history.hour())
        tools = [tool for plugin in plugins for tool in plugin.tools]
        return self._show(
            request,
            "tools.html",
            status,
            plugins=plugins,
            tokens=served_tokens(plugins),
            problem=problem,
            changed=next((tool for tool in tools if tool.name == changed), None),
            can_change=self._changes.are_possible,
        )

    async def _switch(self, request: Request, principal: Principal) -> Response:
        form = await read_form(request)
        tool, action = form.get("tool", ""), form.get("action")
        if action not in ("enable", "disable"):
            raise HTTPException(400, "This form says neither enable nor disable.")
        try:
            await self._changes.switch(
                tool, principal.name, enabled=action == "enable", agreed=form.get("agreed", "")
            )
        except NotAgreedError as exc:
            return self._show(request, "confirm.html", tool=tool, gained=str(exc))
        except RefusedError as exc:
            return await self._show_tools(request, 409, problem=self._masked(exc))
        return _see(f"tools?{urlencode({'changed': tool})}")

    async def _configuration(self, request: Request, _: Principal) -> Response:
        if "changed" in request.query_params:
            await self._other_worker()
        return self._show_configuration(request)

    def _show_configuration(
        self, request: Request, status: int = 200, *, problem: str = ""
    ) -> Response:
        is_whole = "all" in request.query_params
        return self._show(
            request,
            "configuration.html",
            status,
            file=file.resolve() if (file := self._host.loaded.file) else None,
            tables=config_tables(self._host, is_whole=is_whole),
            is_whole=is_whole,
            is_waiting=self._changes.is_waiting(),
            needs_restart=waiting_for_restart(self._host),
            problem=problem,
            is_changed="changed" in request.query_params,
            can_change=self._changes.are_possible,
        )

    async def _take_over(self, request: Request, principal: Principal) -> Response:
        await read_form(request)
        try:
            await self._changes.take_over(principal.name)
        except RefusedError as exc:
            return self._show_configuration(request, 409, problem=self._masked(exc))
        return _see("configuration?changed=")

    async def _style(self, _: Request, __: Principal) -> Response:
        return self._templates.style()

    def _show(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        path = request.url.path
        # Addresses are relative, so that the pages work below the path of a proxy, too.
        base = "" if path.startswith(f"{PATH}/") else "admin/"
        return self._templates.page(template, status, path=path, base=base, **values)

    def _masked(self, exc: Exception) -> str:
        return mask(str(exc), self._host.secrets())

    async def _other_worker(self) -> None:
        """Wait for what another worker has changed, which is then taken over here, too."""
        if self._host.settings.server.workers == 1:
            return
        with anyio.move_on_after(_OTHER_WORKER_SECONDS):
            while self._changes.is_waiting():  # noqa: ASYNC110  - another process writes the file
                await anyio.sleep(0.05)


def check_own_page(request: Request) -> None:
    """Refuse a form that a page of another origin sends: browsers add passwords by themselves.

    Raises:
        HTTPException: It comes from elsewhere, or does not say from where.
    """
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin") or not is_own_origin(request.scope):
        raise HTTPException(403, "A change must come from a form of this page itself.")


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; of several with one name, the last.

    Raises:
        HTTPException: The body is no form, or too long.
    """
    if media_type(request) != _FORM:
        raise HTTPException(415, "This takes a form of the page only.")
    body = await (await with_body(request, _FORM_BYTES)).body()
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=10)
    except ValueError as exc:
        raise HTTPException(400, f"This form cannot be read: {exc}") from None
    return {name: values[-1] for name, values in fields.items()}


def _see(address: str) -> Response:
    return RedirectResponse(address, 303)
