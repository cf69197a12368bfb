"""The pages on which people sign in and out, and find the entry for their MCP client."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from standards_mcp import ApiError
from standards_mcp.transports import Host, OidcSettings
from standards_mcp_oauth.issuers import UnreachableError
from standards_mcp_service.authorization import Person, person_of
from standards_mcp_service.bodies import read_form
from standards_mcp_service.guards import CHALLENGE, MCP, PRIVATE_PAGE, is_own_page
from standards_mcp_service.html import PAGE_HEADERS, style_sheet, templates_in

from .cookies import Attempt, Cookies
from .guides import TOKEN_VARIABLE, client_guides
from .provider import SIGNED_IN, SIGNED_OUT, Provider

log = logging.getLogger("standards_mcp.service")

_BEGIN: Final = "/sign-in"
_END: Final = "/sign-out"
_LOGOUT: Final = "/backchannel-logout"
_STYLE: Final = f"{_BEGIN}/style.css"
_MAX_PAGE_CHARS: Final = 1_500
"""The cookie of a begun sign-in holds the page, and browsers ignore a long cookie."""
_FOLDER: Final = Path(__file__).parent / "templates"


class NoRightsError(ApiError):
    """A person has signed in, and none of their groups has a scope."""


class People:
    """Let people sign in with a browser.

    Attributes:
        open_paths: The paths that need no token.
    """

    open_paths = (_BEGIN, SIGNED_IN, _END, SIGNED_OUT, _LOGOUT, _STYLE)

    def __init__(self, host: Host, settings: OidcSettings) -> None:
        self._host, self._settings = host, settings
        self._public = settings.public_url.rstrip("/")
        self._provider = Provider(settings)
        identity = f"{settings.issuer} {settings.client_id}"
        folder = host.state_dir / "signed-out"
        key = host.settings.server.state_key
        self._cookies = Cookies(key, identity, folder, settings.lifetime)
        self._templates = templates_in(_FOLDER, host)

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the pages."""
        return [
            Route(_BEGIN, self._begin, methods=["GET"]),
            Route(SIGNED_IN, self._finish, methods=["GET"]),
            Route(_END, self._sign_out, methods=["POST"]),
            Route(SIGNED_OUT, self._signed_out, methods=["GET"]),
            Route(_LOGOUT, self._end_sign_ins, methods=["POST"]),
            Route("/connect", self._connect, methods=["GET"]),
            Route(_STYLE, style_sheet, methods=["GET"]),
        ]

    def person_of(self, request: HTTPConnection) -> Person | None:
        """Return the person whose cookie a request has, or None."""
        return self._cookies.person(request)

    def begin_response(self, scope: Scope) -> Response:
        """Return the response that lets a person sign in, and come back to the same page."""
        path: bytes = scope["raw_path"]
        query: bytes = scope["query_string"]
        page = (path + b"?" * bool(query) + query).decode("ascii", "replace")
        return RedirectResponse(self._public + _begin_path(page), 303, PAGE_HEADERS)

    async def _begin(self, request: Request) -> Response:
        page = _own_path(request.query_params.get("next", ""))
        if "token" in request.query_params:
            return self._ask_for_token(request, page)
        attempt = Attempt(issuer=self._settings.issuer, page=page)
        try:
            url = await self._provider.begin(attempt)
        except ApiError as exc:
            return self._refuse(request, exc, page)
        response = RedirectResponse(url, 303, PAGE_HEADERS)
        self._cookies.begin(request, response, attempt)
        return response

    def _ask_for_token(self, request: Request, page: str) -> Response:
        """Let the browser ask for a token, which it then sends for all pages."""
        if isinstance(request.scope["user"], AuthenticatedUser):
            # With the dot, a page such as /https://a.b is no other address.
            return RedirectResponse(f".{page}", 303, PAGE_HEADERS)
        text = "This page needs a token as the password, with any name."
        response = self._message("Not signed in", text, page, 401)
        response.headers["www-authenticate"] = CHALLENGE
        return response

    async def _finish(self, request: Request) -> Response:
        attempt = self._cookies.attempt(request, request.query_params.get("state", ""))
        if attempt is None:
            why = ApiError("this browser has not begun it, or it took too long")
            return self._refuse(request, why, "/")
        try:
            person = await self._provider.finish(attempt, request.query_params)
            if not any(self._settings.groups.get(name) for name in (*person.groups, "*")):
                raise NoRightsError("none of your groups may use this service")
            response: Response = RedirectResponse(self._public + attempt.page, 303, PAGE_HEADERS)
            self._cookies.sign_in(response, person)
        except ApiError as exc:
            response = self._refuse(request, exc, attempt.page)
        else:
            fields = {"caller": person.client_id, "groups": list(person.groups)}
            log.info("a person has signed in", extra=fields)
        self._cookies.finish(response, attempt)
        return response

    async def _sign_out(self, request: Request) -> Response:
        if not is_own_page(request.scope):
            return self._message("Not signed out", "This must come from a page here.", "/", 403)
        response = RedirectResponse(SIGNED_OUT.removeprefix("/"), 303, PAGE_HEADERS)
        if person := person_of(request):
            self._cookies.sign_out(response, person)
            log.info("a person has signed out", extra={"caller": person.client_id})
        return response

    async def _end_sign_ins(self, request: Request) -> Response:
        """Answer the provider when a person has signed out there (back-channel logout)."""
        form = await read_form(request)
        try:
            key, until = await self._provider.read_logout(form.get("logout_token", ""))
            self._cookies.end(key, until)
        except (ApiError, OSError) as exc:
            client = str(request.client.host) if request.client else ""
            log.info("a logout is refused", extra={"client": client, "reason": str(exc)})
            why = (
                str(exc) if isinstance(exc, ApiError) else "it cannot be kept now; try again later"
            )
            refusal = {"error": "invalid_request", "error_description": why}
            return JSONResponse(refusal, HTTPStatus.BAD_REQUEST, PRIVATE_PAGE)
        log.info("the provider has ended sign-ins", extra={"issuer": self._settings.issuer})
        return Response(headers=PRIVATE_PAGE)

    async def _signed_out(self, request: Request) -> Response:
        if person_of(request):
            return RedirectResponse("connect", 303, PAGE_HEADERS)
        end = await self._provider.end_session_url()
        text = "You have signed out of this service."
        return self._message("Signed out", text, "/", end_session_url=end)

    async def _connect(self, request: Request) -> Response:
        url = self._public + MCP
        offers_login = self._host.settings.server.auth.jwt is not None
        return self._show(
            "connect.html",
            person=person_of(request),
            url=url,
            variable=TOKEN_VARIABLE,
            offers_login=offers_login,
            guides=client_guides(url, offers_login=offers_login),
        )

    def _refuse(self, request: Request, cause: ApiError, page: str) -> Response:
        client = str(request.client.host) if request.client else ""  # none at a Unix socket
        log.info("a sign-in is refused", extra={"client": client, "reason": str(cause)})
        status = HTTPStatus.BAD_REQUEST
        if isinstance(cause, UnreachableError):
            status = HTTPStatus.SERVICE_UNAVAILABLE
        elif isinstance(cause, NoRightsError):
            status = HTTPStatus.FORBIDDEN
        return self._message("Not signed in", f"The sign-in failed: {cause}.", page, status)

    def _message(
        self, title: str, text: str, page: str, status: int = 200, end_session_url: str = ""
    ) -> Response:
        return self._show(
            "message.html",
            status,
            title=title,
            text=text,
            again=_begin_path(page).removeprefix("/"),
            with_token=_begin_path(page, token="").removeprefix("/"),
            end_session_url=end_session_url,
            provider=urlsplit(self._settings.issuer).netloc,
        )

    def _show(self, template: str, status: int = 200, **values: Any) -> Response:
        page = self._templates.get_template(template).render(values)
        return HTMLResponse(page, status, PAGE_HEADERS)


def _own_path(text: str) -> str:
    """Return a path of this service, without its query if it is long, or else the start page."""
    if len(text) > _MAX_PAGE_CHARS:
        text = text.partition("?")[0]
    is_own = len(text) <= _MAX_PAGE_CHARS and re.fullmatch(r"/[!-~]*", text)
    return text if is_own else "/"


def _begin_path(page: str, **fields: str) -> str:
    return f"{_BEGIN}?{urlencode({**fields, 'next': page})}"
