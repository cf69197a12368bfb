"""Show the pages of plugins on the admin page, and start their imports."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from standards_mcp.errors import StandardsMcpError
from standards_mcp.transports import Host, Principal
from standards_mcp_service.bodies import media_type, read_form

from .actions import Actions, RefusedError
from .contributed import AdminPage, Importer, Table, pages_of
from .jobs import Jobs
from .uploads import FORM, receive

log = logging.getLogger("standards_mcp.service")

_REFRESH_SECONDS: Final = 2
_CONTENT_SECONDS: Final = 10.0
_PREFIXES: Final = ("http://", "https://")


class Show(Protocol):
    """Renders a template as the answer to a request."""

    def __call__(
        self, request: Request, template: str, status: int = 200, /, **values: Any
    ) -> Response:
        """Return the page of the template with these values."""
        ...


class PluginPage:
    """A page of a plugin."""

    def __init__(
        self, host: Host, plugin: str, page: AdminPage, actions: Actions, show: Show
    ) -> None:
        self._host, self._plugin, self._page = host, plugin, page
        self._show = show
        self.jobs = Jobs(host.state_dir / "imports" / page.name, page.name, actions)
        self.name, self.title = str(page.name), str(page.title)

    @property
    def is_served(self) -> bool:
        """True unless the plugin has been disabled since the start."""
        return self._host.settings.section(self._plugin).enabled is not False

    async def get(
        self, request: Request, principal: Principal, status: int = 200, problem: str = ""
    ) -> Response:
        """Show the content, the last import, and the form for the next one."""
        del principal
        if not self.is_served:
            raise HTTPException(404, f"The plugin {self._plugin} is disabled.")
        importer = self._page.importer
        state = self.jobs.state() if importer else None
        is_running = state is not None and not state.outcome
        facts, tables, failure = await self._content(is_running=is_running)
        return self._show(
            request,
            "plugin_page.html",
            status,
            page=self._page,
            importer=importer,
            state=state,
            is_running=is_running,
            refresh_seconds=_REFRESH_SECONDS if is_running else None,
            facts=facts,
            tables=tables,
            failure=failure,
            problem=problem,
        )

    async def _content(self, *, is_running: bool) -> tuple[Mapping[str, str], Sequence[Table], str]:
        """Return facts, tables, and why there are none; nothing while an import runs."""
        if is_running:  # the page would read all of the data every two seconds
            return {}, (), ""
        try:
            with anyio.fail_after(_CONTENT_SECONDS):
                return (*await self._page.content(), "")
        except StandardsMcpError as exc:
            return {}, (), str(exc)
        except TimeoutError:
            return {}, (), f"The content did not come within {_CONTENT_SECONDS:.0f} seconds."
        except Exception as exc:
            log.exception("a page of a plugin failed", extra={"plugin": self._plugin})
            return {}, (), f"The plugin failed: {type(exc).__name__}. The log says more."

    async def post(self, request: Request, principal: Principal) -> Response:
        """Start an import, or cancel the running one."""
        importer = self._page.importer
        if importer is None or not self.is_served:
            raise HTTPException(404, "Nothing can be imported here.")
        try:
            if media_type(request) == FORM:
                await self._start(request, principal, importer)
            else:
                form = await read_form(request)
                if form.get("action") != "cancel":
                    raise HTTPException(400, "This form says neither import nor cancel.")
                self.jobs.cancel(form.get("began", ""), principal.name)
        except RefusedError as exc:
            return await self.get(request, principal, 409, str(exc))
        return RedirectResponse(f"{self.name}?refresh=", 303)

    async def _start(self, request: Request, principal: Principal, importer: Importer) -> None:
        lock = self.jobs.reserve()
        try:
            upload = await receive(request, self.jobs.upload_folder, importer.max_bytes)
            source = upload.file or _checked_address(upload.fields.get("address", ""))
            names = {field.name for field in importer.fields}
            values = {key: text for key, text in upload.fields.items() if key in names}
            await self.jobs.start(lock, importer, source, values, principal.name)
        except BaseException:
            self.jobs.abandon(lock)
            raise


def _checked_address(address: str) -> str:
    """Return an address; refuse anything else, such as the path of a file on this machine.

    Raises:
        RefusedError: It is not an address, or has a password, which the logs would show.
    """
    if not address:
        raise RefusedError("Nothing is imported. Choose a file, or enter an address.")
    if not address.casefold().startswith(_PREFIXES):
        raise RefusedError("Nothing is imported. The address must begin with https://.")
    try:
        has_password = "@" in urlsplit(address).netloc
    except ValueError:
        raise RefusedError("Nothing is imported. The address is not valid.") from None
    if has_password:
        raise RefusedError("Nothing is imported. Leave out the user name in the address.")
    return address


def plugin_pages(
    host: Host, taken: Container[str], actions: Actions, show: Show
) -> list[PluginPage]:
    """Return the pages of all plugins, and note the imports that an earlier service left."""
    pages = [
        PluginPage(host, plugin, page, actions, show) for plugin, page in pages_of(host, taken)
    ]
    for page in pages:
        page.jobs.state()
    return pages
