"""The plugin: the views, linked to the tools whose answers they show."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from standards_mcp import Plugin, Resource, Route, hookimpl

from .pages import TOOLS, explore_page, page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

_VIEWS: Final = {
    "results": ("Standards found", ("find_relevant_standards",)),
    "standard": ("A standard and its place", ("get_standard_details",)),
    "check": ("A lesson with its codes checked", ("check_alignment",)),
    "comparison": ("Two editions side by side", ("compare_standards",)),
    "coverage": ("What a unit covers", ("check_coverage",)),
    "tree": ("The tree of standards", ("browse_standards",)),
}


class ViewsPlugin(Plugin):
    """Shows the answers of the tools as pages inside the chat, in clients with MCP Apps."""

    title = "Views of standards"

    @hookimpl
    def register_commands(self) -> Iterable[click.Command]:
        """Return ``standards-mcp views explore``."""
        from .explore import explore

        return [explore]

    async def explore(self, request: Request) -> Response:
        """Show the page to search and browse, with what its caller may use."""
        from starlette.responses import HTMLResponse

        text, policy = explore_page(request.state.tools)
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    @hookimpl
    def register_routes(self) -> Iterable[Route]:
        """Return the page of the service over HTTP."""
        return [Route(path="/explore", function=self.explore, is_page=True, tools=TOOLS)]

    @hookimpl
    def register_resources(self) -> Iterable[Resource]:
        """Return the views."""
        return [
            Resource(
                uri=f"ui://standards/{name}.html",
                name=f"views.{name}",
                title=title,
                description="A page that clients with MCP Apps show for the answers of a tool.",
                function=partial(page, name),
                view_of=tools,
                meta={"ui": {"prefersBorder": False, "csp": {}}},
                fixed=True,
            )
            for name, (title, tools) in _VIEWS.items()
        ]
