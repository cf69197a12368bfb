"""The page of the service over HTTP on which a user signs in at a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from html import escape
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from standards_mcp import ApiError, Route

from .login import begin, finish, sign_out

if TYPE_CHECKING:
    from .sign_in import OAuth

_PAGE: Final = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<main><h1>{title}</h1><p>{text}</p>
<form method="post" action="sign-in"><button>Sign in</button></form>
<form method="post" action="sign-out"><button>Sign out</button></form></main></html>
"""
_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    # The address of an answer has the code, so no other server may see it. With "no-referrer",
    # browsers would send the forms without their origin, and the service would refuse them.
    "referrer-policy": "same-origin",
}
_Step = Callable[[Request], Awaitable[Response]]


class Pages:
    """The routes of one server, below ``/plugins/<server>``.

    Args:
        public: The public address of the service.
    """

    def __init__(self, sign_in: OAuth, public: str) -> None:
        self._sign_in, server = sign_in, sign_in.server
        self._title = f"Sign in at {server}"
        self._redirect = f"{public.rstrip('/')}/plugins/{server}/signed-in"

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route(path="/sign-in", function=self.show),
            Route(path="/sign-in", function=self.begin, methods=("POST",)),
            Route(path="/signed-in", function=self.finish),
            Route(path="/sign-out", function=self.sign_out, methods=("POST",)),
        ]

    async def show(self, request: Request) -> Response:
        """Show the state of the caller's sign-in."""
        owner = request.user.display_name
        return self._page(f"{owner}: {self._sign_in.status(owner)}.")

    async def begin(self, request: Request) -> Response:
        """Lead the browser to the authorization server."""
        owner = request.user.display_name
        if owner == "anonymous":
            return self._page("Users without a token cannot be told apart.", 400)
        try:
            url, _ = await begin(self._sign_in, owner, self._redirect)
        except (ApiError, OSError) as exc:
            return self._failure(exc)
        return RedirectResponse(url, 303, _HEADERS)

    async def finish(self, request: Request) -> Response:
        """Take the answer of the authorization server, which must be of the same caller."""
        owner = request.user.display_name
        try:
            await finish(self._sign_in, owner, self._redirect, request.query_params)
        except (ApiError, OSError) as exc:
            return self._failure(exc)
        return await self.show(request)

    async def sign_out(self, request: Request) -> Response:
        """Delete the caller's tokens."""
        await sign_out(self._sign_in, request.user.display_name)
        return await self.show(request)

    def _failure(self, cause: Exception) -> Response:
        reason = cause.strerror if isinstance(cause, OSError) else str(cause)
        return self._page(f"The sign-in failed: {reason}.", 400)

    def _page(self, text: str, status: int = 200) -> Response:
        page = _PAGE.format(title=escape(self._title), text=escape(text))
        return HTMLResponse(page, status, _HEADERS)
