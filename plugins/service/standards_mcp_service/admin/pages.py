"""The admin page: its routes and templates. Texts of plugins and requests are always escaped."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import parse_qs, urlencode

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from standards_mcp.transports import ADMIN, Host, Principal, with_body
from standards_mcp_service.authorization import ANONYMOUS, person_of
from standards_mcp_service.bodies import media_type
from standards_mcp_service.guards import InFlight, is_own_page
from standards_mcp_service.health import Health
from standards_mcp_service.html import PAGE_HEADERS, style_sheet, templates_in
from standards_mcp_service.listening import is_private
from standards_mcp_service.sessions import Sessions

from .actions import Actions
from .approvals import ApprovalsPage
from .controls import Controls, RefusedError
from .facts import History, PluginFacts, plugin_facts
from .logs import LogPage, RecentLog
from .plugin_pages import plugin_pages

PATH: Final = "/admin"
_TOOLS: Final = f"{PATH}/tools"
_OWN_PAGES: Final = {
    "": "Overview",
    "tools": "Tools",
    "approvals": "Approvals",
    "log": "Log",
}
_FORM: Final = "application/x-www-form-urlencoded"
_FORM_BYTES: Final = 16_384
_MAX_ROWS: Final = 20
_MAX_TABLE_ROWS: Final = 500
_REFRESH_SECONDS: Final = 10
_ANSWER_SECONDS: Final = 1.0
_OTHER_WORKER_SECONDS: Final = 2.0
_FOLDER: Final = Path(__file__).parent / "templates"
_Page: TypeAlias = Callable[[Request, Principal], Awaitable[Response]]


class Admin:
    """Show the state of a service, and switch its tools.

    Args:
        principal_of: Returns the caller of a request.
        controls: Changes the configuration; None: the page has no switches.
    """

    def __init__(
        self,
        host: Host,
        principal_of: Callable[[Request], Principal],
        controls: Controls | None,
        health: Health,
        sessions: Sessions,
        in_flight: InFlight,
    ) -> None:
        self._host, self._principal_of, self._controls = host, principal_of, controls
        self._health, self._sessions, self._in_flight = health, sessions, in_flight
        self._history = History()
        host.observe(self._history)
        self._is_private = is_private(host.settings.server)
        self._templates = templates_in(_FOLDER, host)
        self._templates.filters["duration"] = _duration
        actions = Actions(host, health.audit)
        self._recent = RecentLog(host)
        self._log_page = LogPage(host, self._recent, self._show)
        self._approvals = ApprovalsPage(host, actions, self._show, _read_form)
        self._plugin_pages = plugin_pages(host, _OWN_PAGES, actions, self._show, _read_form)
        shared = cast("MutableMapping[str, object]", self._templates.globals)
        shared.update(
            version=health.version,
            pid=os.getpid(),
            workers=host.settings.server.workers,
            uptime=lambda: timedelta(seconds=health.uptime()),
            most=_MAX_ROWS,
            most_rows=_MAX_TABLE_ROWS,
            can_change=controls is not None,
            links=lambda: [
                *_OWN_PAGES.items(),
                *((page.name, page.title) for page in self._plugin_pages if page.is_served),
            ],
            can_sign_in=host.settings.server.auth.oidc is not None,
        )

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the pages."""
        pages: list[tuple[str, str, _Page]] = [
            (PATH, "GET", self._overview),
            (_TOOLS, "GET", self._tools),
            (_TOOLS, "POST", self._switch),
            (f"{PATH}/log", "GET", self._log_page.get),
            (f"{PATH}/approvals", "GET", self._approvals.get),
            (f"{PATH}/approvals", "POST", self._approvals.post),
        ]
        for page in self._plugin_pages:
            pages += [(f"{PATH}/{page.name}", "GET", page.get)]
            pages += [(f"{PATH}/{page.name}", "POST", page.post)]
        routes = [Route(path, self._admins_only(page), methods=[how]) for path, how, page in pages]
        # Whoever may not administer the service sees why, on a page with the same style.
        return [*routes, Route(f"{PATH}/style.css", style_sheet, methods=["GET"])]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep the last lines of the log while the context is open, and end its import then."""
        with self._recent.attached():
            try:
                yield
            finally:
                for page in self._plugin_pages:
                    await page.jobs.aclose()

    def _admins_only(self, page: _Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                principal = self._require_admin(request)
                if request.method == "POST":
                    _check_own_page(request)
                return await page(request, principal)
            except HTTPException as exc:
                return self._show(request, "refused.html", exc.status_code, why=exc.detail)

        return answer

    def _require_admin(self, request: Request) -> Principal:
        """Return the caller.

        Raises:
            HTTPException: The caller may not administer the service.
        """
        principal = self._principal_of(request)
        if principal is ANONYMOUS and not self._is_private:
            why = "This page needs a token if other machines reach the service."
            raise HTTPException(403, f"{why} Make one: auth token new NAME --scope {ADMIN}")
        if not principal.holds(ADMIN):
            raise HTTPException(403, f"You need the scope {ADMIN!r}.")
        return principal

    async def _overview(self, request: Request, _: Principal) -> Response:
        is_refreshed = "refresh" in request.query_params
        response = self._show(
            request,
            "overview.html",
            hour=self._history.hour(),
            running=self._history.running,
            plugins=await self._plugins(),
            services=await self._health.services.within(_ANSWER_SECONDS),
            sessions=self._sessions.count,
            most_sessions=self._host.settings.server.max_sessions,
            clients=self._sessions.by_client().most_common(_MAX_ROWS),
            streams=self._in_flight.streams,
            is_refreshed=is_refreshed,
            refresh_seconds=_REFRESH_SECONDS,
        )
        if is_refreshed:
            response.headers["refresh"] = str(_REFRESH_SECONDS)
        return response

    async def _plugins(self) -> list[PluginFacts]:
        health = await self._health.plugins.within(_ANSWER_SECONDS) or {}
        return plugin_facts(self._host, health, self._history.hour().by_item)

    async def _tools(
        self, request: Request, _: Principal, status: int = 200, problem: str = ""
    ) -> Response:
        await self._wait_for_other_worker(request)
        plugins = await self._plugins()
        tools = {tool.item.declared: tool for plugin in plugins for tool in plugin.tools}
        changed = tools.get(request.query_params.get("changed", ""))
        return self._show(
            request, "tools.html", status, plugins=plugins, problem=problem, changed=changed
        )

    async def _switch(self, request: Request, principal: Principal) -> Response:
        form = await _read_form(request)
        tool, action = form.get("tool", ""), form.get("action")
        if action not in ("enable", "disable"):
            raise HTTPException(400, "This form says neither enable nor disable.")
        if self._controls is None:
            raise HTTPException(409, "This service was started without a configuration to change.")
        try:
            await self._controls.switch(tool, principal.name, enabled=action == "enable")
        except RefusedError as exc:
            return await self._tools(request, principal, 409, str(exc))
        return RedirectResponse(f"tools?{urlencode({'changed': tool})}", 303)

    def _show(
        self, request: Request, template: str, status: int = 200, /, **values: Any
    ) -> Response:
        path = request.url.path
        # Addresses are relative, so that the pages work below the path of a proxy, too.
        base = "" if path.startswith(f"{PATH}/") else "admin/"
        now = f"{datetime.now(UTC):%H:%M:%S}"
        page = self._templates.get_template(template)
        shared = {"path": path, "base": base, "now": now, "person": person_of(request)}
        return HTMLResponse(page.render(values, **shared), status, PAGE_HEADERS)

    async def _wait_for_other_worker(self, request: Request) -> None:
        """After a change, wait until this worker has applied the change of another one."""
        if self._host.settings.server.workers == 1 or "changed" not in request.query_params:
            return
        with anyio.move_on_after(_OTHER_WORKER_SECONDS):
            while not self._host.loaded.is_current():  # noqa: ASYNC110  - another process writes it
                await anyio.sleep(0.05)


# This check needs no secret and no state, as a CSRF token in each form would.
def _check_own_page(request: Request) -> None:
    """Refuse a form of another origin: browsers add the password or the cookie to it, too.

    Raises:
        HTTPException: The form has another origin, or none.
    """
    if not is_own_page(request.scope):
        raise HTTPException(403, "A change must come from a form of this page itself.")


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; of several with the same name, the last.

    Raises:
        HTTPException: The body is not a form, or too long.
    """
    if media_type(request) != _FORM:
        raise HTTPException(415, "This address accepts forms of the page only.")
    body = await (await with_body(request, _FORM_BYTES)).body()
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=10)
    except ValueError as exc:
        raise HTTPException(400, f"This form cannot be read: {exc}") from None
    return {name: values[-1] for name, values in fields.items()}


def _duration(seconds: float | None) -> str:
    """Format a duration in milliseconds or seconds."""
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:,.1f} s"
