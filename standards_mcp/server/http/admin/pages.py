"""The routes and templates of the admin page. Texts of plugins and requests are always escaped."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlencode

import anyio
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from standards_mcp._utils.secrets import mask
from standards_mcp._utils.text import readable
from standards_mcp.calls.context import Principal
from standards_mcp.config.models.http import ADMIN
from standards_mcp.host import Host
from standards_mcp.server.http.authorization import ANONYMOUS
from standards_mcp.server.http.bodies import media_type, with_body
from standards_mcp.server.http.guards import is_own_origin
from standards_mcp.server.http.health import Health
from standards_mcp.server.http.listening import is_private
from standards_mcp.server.http.sessions import Sessions
from standards_mcp.server.reload import waiting_for_restart

from .controls import (
    Controls,
    NotAgreedError,
    PluginFacts,
    RefusedError,
    config_tables,
    plugin_facts,
    served_tokens,
)
from .history import History, Hour, calls_chart, duration, latency_chart

PATH: Final = "/admin"
_TOOLS: Final = f"{PATH}/tools"
_CONFIGURATION: Final = f"{PATH}/configuration"
_FORM: Final = "application/x-www-form-urlencoded"
_FORM_BYTES: Final = 16_384
_SHOWN: Final = 20
_REFRESH_SECONDS: Final = 10
_ANSWER_SECONDS: Final = 1.0
_OTHER_WORKER_SECONDS: Final = 2.0
_FOLDER: Final = Path(__file__).parent / "templates"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # With "no-referrer", browsers would omit the origin of a POST, which is checked.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
_UNITS: Final = (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1))
_Page: TypeAlias = Callable[[Request, Principal], Awaitable[Response]]


class Admin:
    """Show the state of a service, and switch its tools.

    Args:
        principal_of: Returns the caller of a request.
        streams: Returns the number of open streams.
    """

    def __init__(
        self,
        host: Host,
        principal_of: Callable[[Request], Principal],
        controls: Controls,
        health: Health,
        sessions: Sessions,
        streams: Callable[[], int],
    ) -> None:
        self._host, self._principal_of, self._controls = host, principal_of, controls
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
        """Return the caller.

        Raises:
            HTTPException: The caller may not administer the service.
        """
        principal = self._principal_of(request)
        if principal is ANONYMOUS and not self._is_open:
            why = "This page needs a token if other machines reach the service."
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
            can_change=self._controls.are_possible,
        )

    async def _switch(self, request: Request, principal: Principal) -> Response:
        form = await read_form(request)
        tool, action = form.get("tool", ""), form.get("action")
        if action not in ("enable", "disable"):
            raise HTTPException(400, "This form says neither enable nor disable.")
        try:
            await self._controls.switch(
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
            is_waiting=self._controls.is_waiting(),
            needs_restart=waiting_for_restart(self._host),
            problem=problem,
            is_changed="changed" in request.query_params,
            can_change=self._controls.are_possible,
        )

    async def _take_over(self, request: Request, principal: Principal) -> Response:
        await read_form(request)
        try:
            await self._controls.take_over(principal.name)
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
        """Wait until this worker has applied the change of another one."""
        if self._host.settings.server.workers == 1:
            return
        with anyio.move_on_after(_OTHER_WORKER_SECONDS):
            while self._controls.is_waiting():  # noqa: ASYNC110  - another process writes the file
                await anyio.sleep(0.05)


# A browser also sends the token with forms of other sites. A token in each form would need a secret
# and a state.
def check_own_page(request: Request) -> None:
    """Refuse a form of another origin, because browsers add the password to it, too.

    Raises:
        HTTPException: The form has another origin, or none.
    """
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin") or not is_own_origin(request.scope):
        raise HTTPException(403, "A change must come from a form of this page itself.")


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; the last one of several with the same name.

    Raises:
        HTTPException: The body is not a form, or too long.
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


class Templates:
    """Render the templates of this package.

    Args:
        shared: Values for all templates.
    """

    def __init__(self, **shared: Any) -> None:
        self._environment = Environment(
            autoescape=True,
            loader=FileSystemLoader(_FOLDER),
            undefined=StrictUndefined,
            finalize=_plain,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "breakable": _breakable,
            "duration": duration,
            "span": _span,
        }
        self._shared = shared
        self._style = (_FOLDER / "style.css").read_text(encoding="utf-8")

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        now = f"{datetime.now(UTC):%H:%M:%S}"
        text = self._environment.get_template(template).render(self._shared, now=now, **values)
        return HTMLResponse(text, status, _HEADERS)

    def style(self) -> Response:
        """Return the style sheet."""
        headers = _HEADERS | {"cache-control": "private, max-age=300"}
        return Response(self._style, headers=headers, media_type="text/css")


def _span(seconds: int) -> str:
    """Return a long time in two units."""
    for name, size, smaller, part in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {name} {seconds % size // part} {smaller}"
    return f"{seconds} s"


def _breakable(name: str) -> Markup:
    """Allow line breaks in a long name after its underscores."""
    return escape(readable(name)).replace("_", Markup("_<wbr>"))


def _plain(value: object) -> object:
    """Make control characters visible, such as a change of the text direction."""
    return readable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
