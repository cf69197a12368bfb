"""What a model is told of the server, by the plugins that serve it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from standards_mcp import Plugin, Tool, hookimpl
from standards_mcp.host import Host

SHARED = "Cite your sources."


def plugin(*names: str, instructions: str) -> type[Plugin[Any]]:
    class Made(Plugin):
        @hookimpl
        def register_tools(self):
            return [Tool(name=name, description=name, function=lambda: "x") for name in names]

    Made.instructions = instructions
    return Made


PLUGINS = {
    "books": plugin("books.find", instructions=f"Call {{books.find}} with a title.\n{SHARED}"),
    "films": plugin("see", "hear", instructions=f"{SHARED}\nSee with {{see}}, hear with {{hear}}."),
    "silent": plugin("hush", instructions=""),
}
BOOKS, FILMS = "Call books_find with a title.", "See with see, hear with hear."


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, f"{BOOKS} {SHARED} {FILMS}"),
        ({"tool_names": "declared"}, f"Call books.find with a title. {SHARED} {FILMS}"),
        ({"plugins": {"books": {"enabled": False}}}, f"{SHARED} {FILMS}"),
        ({"tools": {"disable": ["hear"]}}, f"{BOOKS} {SHARED}"),
        (
            {"tools": {"overrides": {"books.find": {"name": "look_up"}}}},
            f"Call look_up with a title. {SHARED} {FILMS}",
        ),
        ({"tools": {"enable": ["hush"]}}, ""),
    ],
)
def test_a_model_is_told_of_the_tools_that_it_sees(
    make_host: Callable[..., Host], settings: dict[str, Any], expected: str
):
    assert make_host(PLUGINS, **settings).instructions() == expected


def test_a_plugin_that_has_failed_is_not_spoken_of(make_host: Callable[..., Host]):
    host = make_host(PLUGINS)
    host.manager.fail(host.manager.records["books"], "it is gone")
    assert host.instructions() == f"{SHARED} {FILMS}"


def test_instructions_that_are_no_text_fail_their_plugin_and_no_client(
    make_host: Callable[..., Host],
):
    odd: Any = None
    host = make_host({**PLUGINS, "odd": plugin("odd", instructions=odd)})
    assert host.manager.records["odd"].reason == "its instructions must be text"
    assert host.instructions() == f"{BOOKS} {SHARED} {FILMS}"


def test_the_title_names_what_is_served_by_plugin(make_host: Callable[..., Host]):
    books, films, more = (plugin(name, instructions="") for name in ("book", "film", "more"))
    books.title = more.title = "Books"
    plugins = {"books": books, "films": films, "more_books": more}
    assert make_host(plugins).title() == "Books, films"
    assert make_host(plugins, tools={"disable": ["book", "more"]}).title() == "films"
    assert make_host(plugins, tools={"disable": ["*"]}).title() == ""
    films.title = 5  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
    host = make_host(plugins)
    assert host.manager.records["films"].reason == "its title must be text"
    assert host.title() == "Books"
