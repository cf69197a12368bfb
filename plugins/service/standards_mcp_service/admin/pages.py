"""The admin page: its routes and templates. Texts of plugins and requests are always escaped."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urlencode

import anyio
from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from standards_mcp.transports import ADMIN, Host, Principal
from standards_mcp_service.authorization import ANONYMOUS, person_of
from standards_mcp_service.bodies import read_form
from standards_mcp_service.guards import InFlight, is_own_page
from standards_mcp_service.health import Health
from standards_mcp_service.html import PAGE_HEADERS, style_sheet, templates_in
from standards_mcp_service.listening import is_private
from standards_mcp_service.sessions import Sessions

from .actions import Actions, RefusedError
from .approvals import ApprovalsPage
from .controls import ConfigChange, Controls, UnconfirmedError
from .facts import History, Hour, PluginFacts, plugin_facts
from .logs import LogPage, RecentLog
from .plugin_pages import plugin_pages
from .switches import plugin_switch, tool_switch
from .tokens import TokensPage

PATH: Final = "/admin"
_TOOLS: Final = f"{PATH}/tools"
_OWN_PAGES: Final = {
    "": "Overview",
    "tools": "Plugins and tools",
    "tokens": "Tokens",
    "approvals": "Approvals",
    "log": "Log",
}
_MAX_ROWS: Final = 20
_MAX_TABLE_ROWS: Final = 500
_REFRESH_SECONDS: Final = 10
_ANSWER_SECONDS: Final = 1.0
_OTHER_WORKER_SECONDS: Final = 3.0
_DONE: Final = frozenset(("changed", "changed_plugin", "approved"))
"""Parameters of the redirects after a form, which another worker may have answered."""
_FOLDER: Final = Path(__file__).parent / "templates"
Page: TypeAlias = Callable[[Request, Principal], Awaitable[Response]]


class Admin:
    """Show the state of a service, and switch its plugins and tools.

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
        self._log_page = LogPage(host, self._recent, self.show)
        self._approvals = ApprovalsPage(host, health, actions, self.show)
        self._tokens = TokensPage(host, self)
        self._plugin_pages = plugin_pages(host, _OWN_PAGES, actions, self.show)
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
        pages: list[tuple[str, str, Page]] = [
            (PATH, "GET", self._overview),
            (_TOOLS, "GET", self._tools),
            (_TOOLS, "POST", self._switch),
            (f"{PATH}/tokens", "GET", self._tokens.get),
            (f"{PATH}/tokens", "POST", self._tokens.post),
            (f"{PATH}/approvals", "GET", self._approvals.get),
            (f"{PATH}/approvals", "POST", self._approvals.post),
            (f"{PATH}/log", "GET", self._log_page.get),
        ]
        for page in self._plugin_pages:
            pages += [(f"{PATH}/{page.name}", "GET", page.get)]
            pages += [(f"{PATH}/{page.name}", "POST", page.post)]
        return [
            *(self._route(path, method, page) for path, method, page in pages),
            # Whoever may not administer the service sees why, on a page with the same style.
            Route(f"{PATH}/style.css", style_sheet, methods=["GET"]),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Keep the last lines of the log while the context is open, and end its import then."""
        with self._recent.attached():
            try:
                yield
            finally:
                for page in self._plugin_pages:
                    await page.jobs.aclose()

    def _route(self, path: str, method: str, page: Page) -> Route:
        """Return the route of a page for admins. A POST must come from a page of the service."""

        async def answer(request: Request) -> Response:
            try:
                principal = self._require_admin(request)
                if request.method == "POST":
                    _check_own_page(request)
                await self._wait_for_other_worker(request)
                return await page(request, principal)
            except HTTPException as exc:
                return self.show(request, "refused.html", exc.status_code, why=exc.detail)

        return Route(path, answer, methods=[method])

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
        hour = self._history.hour()
        return self.show(
            request,
            "overview.html",
            hour=hour,
            running=self._history.running,
            plugins=await self._plugins(hour),
            services=await self._health.services.within(_ANSWER_SECONDS),
            sessions=self._sessions.count,
            most_sessions=self._host.settings.server.max_sessions,
            clients=self._sessions.by_client().most_common(_MAX_ROWS),
            streams=self._in_flight.streams,
            refresh_seconds=_REFRESH_SECONDS,
        )

    async def _plugins(self, hour: Hour) -> list[PluginFacts]:
        health = await self._health.plugins.within(_ANSWER_SECONDS) or {}
        return plugin_facts(self._host, health, hour.by_item)

    async def _tools(
        self, request: Request, _: Principal, status: int = 200, problem: str = ""
    ) -> Response:
        plugins = await self._plugins(self._history.hour())
        tools = {tool.item.declared: tool for plugin in plugins for tool in plugin.tools}
        query = request.query_params
        return self.show(
            request,
            "tools.html",
            status,
            plugins=plugins,
            problem=problem,
            changed=tools.get(query.get("changed", "")),
            changed_plugin={item.record.name: item for item in plugins}.get(
                query.get("changed_plugin", "")
            ),
        )

    async def _switch(self, request: Request, principal: Principal) -> Response:
        form = await read_form(request)
        action, tool, plugin = (form.get(field, "") for field in ("action", "tool", "plugin"))
        if action not in ("enable", "disable"):
            raise HTTPException(400, "This form says neither enable nor disable.")
        enabled, reloading = action == "enable", self.controls.reloading
        try:
            if plugin:
                change = plugin_switch(self._host, reloading, plugin, enabled=enabled)
            else:
                change = tool_switch(self._host, tool, enabled=enabled)
            if question := await self.apply(request, principal, form, change):
                return question
        except RefusedError as exc:
            return await self._tools(request, principal, 409, str(exc))
        changed = {"changed_plugin": plugin} if plugin else {"changed": tool}
        return RedirectResponse(f"tools?{urlencode(changed)}", 303)

    @property
    def controls(self) -> Controls:
        """Changes the configuration.

        Raises:
            HTTPException: The configuration cannot be changed.
        """
        if self._controls is None:
            raise HTTPException(409, "This service was started without a configuration to change.")
        return self._controls

    async def apply(
        self,
        request: Request,
        principal: Principal,
        form: ImmutableMultiDict[str, str],
        change: ConfigChange,
    ) -> Response | None:
        """Make the change of a form; return a page that asks to confirm it, or None if it is made.

        Raises:
            RefusedError: The change failed.
        """
        try:
            await self.controls.apply(change, principal.name, form.get("confirmed", ""))
        except UnconfirmedError as exc:
            fields = [(name, text) for name, text in form.multi_items() if name != "confirmed"]
            return self.show(
                request,
                "confirm.html",
                question=change.question,
                effects=exc.effects,
                fields=[*fields, ("confirmed", exc.key)],
                address=request.url.path.rpartition("/")[2],
            )
        return None

    def show(
        self, request: Request, template: str, status: int = 200, /, **values: Any
    ) -> Response:
        """Return a page of the templates.

        With ``?refresh=``, it reloads itself after the value *refresh_seconds*, if there is one.
        """
        path = request.url.path
        # Addresses are relative, so that the pages work below the path of a proxy, too.
        base = "" if path.startswith(f"{PATH}/") else "admin/"
        now = f"{datetime.now(UTC):%H:%M:%S}"
        page = self._templates.get_template(template)
        seconds = values.get("refresh_seconds") if "refresh" in request.query_params else None
        shared = {"path": path, "base": base, "now": now, "person": person_of(request)}
        text = page.render(values, **shared, is_refreshed=bool(seconds))
        refresh = {"refresh": str(seconds)} if seconds else {}
        return HTMLResponse(text, status, PAGE_HEADERS | refresh)

    async def _wait_for_other_worker(self, request: Request) -> None:
        """After a change, wait until this worker has applied the change of another one."""
        if _DONE.isdisjoint(request.query_params):
            return
        with anyio.move_on_after(_OTHER_WORKER_SECONDS):
            # Another process changes both.
            while not (self._host.loaded.is_current() and self._approvals.is_current):  # noqa: ASYNC110
                await anyio.sleep(0.05)


# This check needs no secret and no state, as a CSRF token in each form would.
def _check_own_page(request: Request) -> None:
    """Refuse a form of another origin: browsers add the password or the cookie to it, too.

    Raises:
        HTTPException: The form has another origin, or none.
    """
    if not is_own_page(request.scope):
        raise HTTPException(403, "A change must come from a form of this page itself.")


def _duration(seconds: float | None) -> str:
    """Format a duration in milliseconds or seconds."""
    if seconds is None:
        return "-"
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:,.1f} s"
