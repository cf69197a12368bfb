"""Declaring by decorators, as authors do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import pytest
from support.hosts import MakeHost, served

from standards_mcp import (
    InvalidInputError,
    Plugin,
    PluginError,
    Prompt,
    Resource,
    Tool,
    decorators,
    hookimpl,
    prompt,
    resource,
    tool,
)

pytestmark = pytest.mark.anyio


@tool(read_only=True)
def plain(text: str) -> str:
    """Say a text."""
    return text


def bare(text: str) -> str:
    return text


class BooksPlugin(Plugin):
    shelf = ("Emma", "Dune")

    @tool(name="books.find", read_only=True)
    def find(self, title: str) -> list[str]:
        """Find books by a part of their title."""
        return [each for each in self.shelf if title in each]

    @tool
    async def lend(self, title: str) -> str:
        """Lend a book."""
        if title not in self.shelf:
            raise InvalidInputError("There is no such book.")
        return f"{title} is lent"

    @tool(description="Count the books.")
    @staticmethod
    def count() -> int:
        return len(BooksPlugin.shelf)

    @classmethod
    @tool(description="Name the library.")
    def owner(cls) -> str:
        return cls.__name__

    @prompt(needs=("books.find",), complete={"title": lambda typed, _: [f"{typed}a"]})
    def discuss(self, title: str, *, tools: dict[str, str]) -> str:
        """Discuss a book."""
        return f"Find {title} with {tools['books.find']}."

    @resource("books://{number}", mime_type="text/plain")
    def book(self, number: int) -> str:
        """One book."""
        return self.shelf[number]

    @hookimpl
    def register_tools(self) -> list[Any]:
        return [plain, Tool(name="last", description="Be the last.", function=lambda: "last")]


async def test_methods_and_functions_are_served_in_the_order_in_which_they_stand(
    make_host: MakeHost,
):
    host = make_host({"books": BooksPlugin})
    assert served(host) == ["books_find", "lend", "count", "owner", "plain", "last"]
    assert (await host.call_tool("books.find", {"title": "D"})).structured == {"result": ["Dune"]}
    assert (await host.call_tool("lend", {"title": "Emma"})).text == "Emma is lent"
    assert (await host.call_tool("lend", {"title": "Ulysses"})).is_error
    assert (await host.call_tool("count", {})).structured == {"result": 2}
    assert (await host.call_tool("owner", {})).text == "BooksPlugin"
    assert (await host.call_tool("plain", {"text": "x"})).text == "x"
    assert host.visible().find("books.find").tool.read_only
    (message,) = (await host.content.get_prompt("discuss", {"title": "Emma"})).messages
    assert message.text == "Find Emma with books_find."
    assert (await host.content.read_resource("books://1")).data == "Dune"


def test_a_decorated_function_is_called_as_it_is():
    plugin = BooksPlugin.__new__(BooksPlugin)
    assert plain("x") == "x"
    assert plugin.find("E") == ["Emma"]
    assert BooksPlugin.count() == plugin.count() == 2
    assert plain.__name__ == "plain"


async def test_declarations_are_inherited_and_an_override_is_decorated_again(make_host: MakeHost):
    class More(BooksPlugin):
        @tool
        def gain(self) -> str:
            """Gain a book."""
            return "gained"

        def lend(self, title: str) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
            return title

        @tool(name="books.find", read_only=True)
        def find(self, title: str) -> list[str]:
            """Find one book."""
            return super().find(title)[:1]

    host = make_host({"books": More})
    assert served(host) == ["books_find", "count", "owner", "gain", "plain", "last"]
    result = await host.call_tool("books.find", {"title": ""})
    assert result.structured == {"result": ["Emma"]}


def test_what_other_decorators_wrap_stays_declared(make_host: MakeHost):
    def logged(function: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> str:
            return f"logged {function(*args, **kwargs)}"

        return wrapper

    class Logged(Plugin):
        @logged
        @tool
        def work(self) -> str:
            """Work hard."""
            return "work"

        @property
        def never(self) -> str:
            raise RuntimeError("properties are not read")

    assert served(make_host({"logged": Logged})) == ["work"]


async def test_methods_complete_arguments_and_variables(make_host: MakeHost):
    class Atlas(Plugin):
        towns = ("Oslo", "Odense")

        def complete_town(self, typed: str, _others: Mapping[str, str]) -> list[str]:
            return [each for each in self.towns if each.startswith(typed)]

        @staticmethod
        def complete_year(typed: str, _others: Mapping[str, str]) -> list[str]:
            return [f"{typed}26"]

        @prompt(complete={"town": complete_town, "year": complete_year})
        def visit(self, town: str, year: str) -> str:
            """Plan a visit."""
            return f"Plan a visit to {town} in {year}."

        @resource("atlas://{town}", complete={"town": complete_town})
        def town(self, town: str) -> str:
            """One town."""
            return town

    class Larger(Atlas):
        def complete_town(self, typed: str, _others: Mapping[str, str]) -> list[str]:
            return [*super().complete_town(typed, _others), "Bergen"]

    for plugin, expected in ((Atlas, ["Odense"]), (Larger, ["Odense", "Bergen"])):
        host = make_host({"atlas": plugin})
        (visit,), (town,) = host.visible().prompts, host.visible().resources
        assert (await host.content.complete(visit, "town", "Od", {})).values == expected
        assert (await host.content.complete(visit, "year", "20", {})).values == ["2026"]
        assert (await host.content.complete(town, "town", "Od", {})).values == expected


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: tool(readonly=True)(len), "decorates a function"),
        (lambda: tool(readonly=True)(lambda: 1), "unexpected keyword argument 'readonly'"),
        (lambda: tool("find"), r"@tool decorates a function, not 'find'; write @tool\(name=...\)"),
        (lambda: tool(functools.cache(len)), "not <functools.* put it directly above the function"),
        (lambda: resource(lambda: 1), "a resource needs its URI"),
        (lambda: prompt(5), "@prompt decorates a function, not 5"),
    ],
)
def test_a_mistake_is_told_where_it_is_written(declare: Any, message: str):
    with pytest.raises(TypeError, match=message):
        declare()


@pytest.mark.parametrize(
    ("hook", "item", "message"),
    [
        ("register_tools", bare, "a function, bare, which is not decorated with @tool"),
        ("register_prompts", plain, "a function, plain, which is not decorated with @prompt"),
        ("register_resources", len, "len, which is not decorated with @resource"),
        ("register_tools", "plain", "returned a str$"),
    ],
)
def test_a_function_that_is_not_declared_is_told_by_its_hook(
    make_host: MakeHost, hook: str, item: object, message: str
):
    plugin = type("Bare", (Plugin,), {hook: hookimpl(lambda _: [item])})
    with pytest.raises(PluginError, match=message):
        make_host({"bare": plugin}, strict=True)


@pytest.mark.parametrize(
    ("options", "declared"),
    [
        (decorators.ToolOptions, Tool),
        (decorators.PromptOptions, Prompt),
        (decorators.ResourceOptions, Resource),
    ],
)
def test_decorators_take_every_field_of_what_they_declare(options: Any, declared: Any):
    known = {each.name for each in fields(declared)} - {"function", "uri"}
    assert options.__annotations__.keys() == known
