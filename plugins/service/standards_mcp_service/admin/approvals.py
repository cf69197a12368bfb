"""Show changed definitions of other MCP servers, and approve the versions that were shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlencode

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from standards_mcp.errors import ToolError
from standards_mcp.transports import (
    Change,
    Host,
    Principal,
    ServerPlugin,
    Status,
    difference,
    reason_of,
    server_of,
)
from standards_mcp_service.bodies import read_form
from standards_mcp_service.health import Health

from .actions import Actions, RefusedError
from .plugin_pages import Show

_MAX_CHARACTERS: Final = 100_000
_MAX_CHANGES: Final = 50
_OPEN_SECONDS: Final = 10.0
_LIST_SECONDS: Final = 3.0


class ShownChange(NamedTuple):
    """A definition that is not approved.

    Attributes:
        is_whole: True if the whole difference is shown, so that it may be approved here.
    """

    title: str
    digest: str
    lines: list[str]
    is_whole: bool


class ShownServer(NamedTuple):
    """A server with definitions that are not approved; *more* are not shown."""

    name: str
    problem: str
    changes: list[ShownChange]
    more: int


class ApprovalsPage:
    """The page with the definitions that are not approved."""

    def __init__(self, host: Host, health: Health, actions: Actions, show: Show) -> None:
        self._host, self._health, self._actions, self._show = host, health, actions, show

    async def get(
        self, request: Request, principal: Principal, status: int = 200, problem: str = ""
    ) -> Response:
        """Show all differences."""
        del principal
        await self._health.plugins.within(_LIST_SECONDS)  # starts the servers
        approved, names = request.query_params.get("approved", ""), dict(self._servers())
        shown = [_shown(name, server) for name, server in names.items()]
        return self._show(
            request,
            "approvals.html",
            status,
            servers=[server for server in shown if server.changes],
            approved=approved if approved in names else "",  # a link could have any text
            problem=problem,
        )

    async def post(self, request: Request, principal: Principal) -> Response:
        """Approve one version of a definition."""
        form = await read_form(request)
        name, digest = form.get("server", ""), form.get("digest", "")
        try:
            await self._approve(name, digest, principal.name)
        except RefusedError as exc:
            return await self.get(request, principal, 409, str(exc))
        return RedirectResponse(f"approvals?{urlencode({'approved': name})}", 303)

    def _servers(self) -> Iterator[tuple[str, ServerPlugin]]:
        for name, record in self._host.manager.records.items():
            server = server_of(record)
            if server and server.approvals and record.status is not Status.FAILED:
                yield name, server

    async def _approve(self, name: str, digest: str, caller: str) -> None:
        """Approve the change with this digest.

        Raises:
            RefusedError: There is no such change, or it cannot be approved.
        """
        server = dict(self._servers()).get(name)
        if server is None:
            raise RefusedError(f"There is no server {name!r} whose definitions need approval.")
        change = await _find(server, digest)
        if change is None:
            why = "The definition has changed since it was shown, or is approved already."
            raise RefusedError(f"Nothing is approved. {why} The page shows the present state.")
        fields = {"caller": caller, "server": name, "item": change.title, "definition": digest}
        self._actions.announce("approval is about to be given", fields)
        try:
            await server.approve([change])
        except OSError as exc:
            why = f"The approval cannot be saved: {reason_of(exc)}."
            raise RefusedError(f"{why} Make the state folder writable.") from None
        self._actions.note("definition approved", fields)

    @property
    def is_current(self) -> bool:
        """True if this worker has read the approvals of the other ones."""
        approvals = [server.approvals for _, server in self._servers() if server.approvals]
        return not any(each.changes and each.is_outdated for each in approvals)


async def _find(server: ServerPlugin, digest: str) -> Change | None:
    """Return the change with a digest; a worker that has not started the server does it now."""

    def find() -> Change | None:
        changes = server.approvals.changes if server.approvals else []
        return next((change for change in changes if change.digest == digest), None)

    change = find()
    if change is None:
        with suppress(ToolError), anyio.move_on_after(_OPEN_SECONDS):
            await server.connection.open()
        change = find()
    return change


def _shown(name: str, server: ServerPlugin) -> ShownServer:
    assert server.approvals  # noqa: S101  - the caller has checked it
    changes, shown = server.approvals.changes, list[ShownChange]()
    for change in changes[:_MAX_CHANGES]:
        sizes = [len(json.dumps(definition)) for definition in (change.before, change.after)]
        is_whole = sum(sizes) <= _MAX_CHARACTERS
        text = difference([change], None if is_whole else _MAX_CHARACTERS)
        title, _, text = text.partition("\n")
        shown.append(ShownChange(title, change.digest, text.split("\n"), is_whole))
    return ShownServer(name, server.approvals.problem, shown, len(changes) - len(shown))
