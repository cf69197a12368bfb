"""Tool search: clients list few tools, and find and call the others by two tools of the host.

A call through `CALL_TOOL` is a call of the tool that it names: `ToolSearch.inner_call` returns that
call before anything is counted or logged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Annotated, Any, Final, NoReturn, TypeAlias, cast

from pydantic import Field

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import Override, first_match
from standards_mcp.errors import InvalidInputError
from standards_mcp.plugin import Tool

from .overrides import apply_override
from .tools import UNTRUSTED_TEXT, RegisteredTool, definition_tokens, read_tool, stems

log = logging.getLogger(__name__)

SEARCH_TOOLS: Final = "search_tools"
CALL_TOOL: Final = "call_tool"
ALWAYS_LOAD: Final = "anthropic/alwaysLoad"
"""In the ``_meta`` of a tool: True if clients that load tools late should load it at once."""
SEARCH_INSTRUCTIONS: Final = (
    f"Most tools are not listed: find them with {SEARCH_TOOLS}, and call them with {CALL_TOOL}."
)
"""The first sentence of the server's instructions to clients that search."""
Scorer: TypeAlias = Callable[[str], Sequence[float]]
OpenRanking: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], Scorer]
"""Takes definitions of tools; returns a function that scores each of them for a query."""

_RESULTS: Final = 5
_MAX_RESULTS: Final = 20
_MAX_ENCODED_CHARS: Final = 16_384
_Query = Annotated[
    str,
    Field(description="What the tool should do, in a few words.", min_length=1, max_length=1_000),
]
_Results = Annotated[
    int, Field(description="The number of tools to return.", ge=1, le=_MAX_RESULTS)
]
_Name = Annotated[str, Field(description=f"The name of a tool that {SEARCH_TOOLS} found.")]
_Arguments = Annotated[
    dict[str, Any] | None,
    Field(description="The arguments of that tool, as its inputSchema describes them."),
]


def needs_search(
    tools: Sequence[RegisteredTool], settings: Settings, discovery: str | None
) -> bool:
    """Return True if clients search for tools.

    Args:
        tools: The tools that the caller may use.
        discovery: The setting for the caller, or None.
    """
    budget = settings.tools.search_above
    if discovery is None and budget is not None:
        return sum(map(definition_tokens, tools)) > budget
    return discovery == "search"


def with_always_load(item: RegisteredTool, settings: Settings) -> RegisteredTool:
    """Return a tool, with `ALWAYS_LOAD` if the admin always lists it."""
    if not first_match(item.names, settings.tools.always_listed):
        return item
    return replace(item, tool=replace(item.tool, meta={**item.tool.meta, ALWAYS_LOAD: True}))


class ToolSearch:
    """The tools that one caller lists, and the search in the others.

    Args:
        tools: The tools that the caller may use.
        open_ranking: Ranks the tools that are not listed, at the first search.
        is_structured: True if definitions have an output schema.

    Attributes:
        listed: The tools that clients list beside `own`.
        own: `SEARCH_TOOLS` and `CALL_TOOL`.
    """

    def __init__(
        self,
        tools: Sequence[RegisteredTool],
        settings: Settings,
        open_ranking: OpenRanking,
        *,
        is_structured: bool,
    ) -> None:
        self.listed: list[RegisteredTool] = []
        self._others: list[RegisteredTool] = []
        for item in tools:
            (self.listed if _stays_listed(item, settings) else self._others).append(item)
        self._open_ranking, self._is_structured = open_ranking, is_structured
        functions: dict[str, Callable[..., Any]] = {
            SEARCH_TOOLS: self._search,
            CALL_TOOL: self._refuse,
        }
        self.own = [
            apply_override(
                replace(item, tool=replace(item.tool, function=functions[item.declared])),
                Override(),
                settings,
            )
            for item in _own_tools()
        ]

    def __bool__(self) -> bool:
        """True if there is a tool that clients do not list."""
        return bool(self._others)

    def warm_up(self) -> None:
        """Rank the tools once, so that the first search does not wait for the ranking to open."""
        self._scorer(SEARCH_TOOLS)

    def inner_call(
        self, called: str, arguments: Mapping[str, Any]
    ) -> tuple[str, Mapping[str, Any]] | None:
        """Return the name and the arguments in a call of `CALL_TOOL`.

        Returns:
            None for a call of another tool, and for one that `CALL_TOOL` itself refuses.
        """
        if called != CALL_TOOL:
            return None
        name, inner = arguments.get("name"), _as_object(arguments.get("arguments"))
        if not isinstance(name, str) or inner is None or arguments.keys() - {"name", "arguments"}:
            return None
        return None if name == CALL_TOOL or self._asks_user(name) else (name, inner)

    def _search(self, query: str, max_results: int) -> dict[str, Any]:
        scores = self._scorer(query)
        ranked = sorted(range(len(scores)), key=lambda place: -scores[place])[:max_results]
        return {"tools": [self._definition(self._others[place]) for place in ranked]}

    def _definition(self, item: RegisteredTool) -> dict[str, Any]:
        annotations = {key: value for key, value in item.annotations.items() if value is not None}
        definition = {**item.definition, "annotations": annotations}
        if self._is_structured:
            definition["outputSchema"] = item.result.schema
        return {key: value for key, value in definition.items() if value is not None}

    @cached_property
    def _scorer(self) -> Scorer:
        # Without the sentence that many descriptions share.
        texts = [item.description.removesuffix(UNTRUSTED_TEXT) for item in self._others]
        return self._open_ranking(
            [
                {**item.definition, "description": text}
                for item, text in zip(self._others, texts, strict=True)
            ]
        )

    def _refuse(self, name: str, arguments: Mapping[str, Any] | None) -> NoReturn:
        """Raise the reason why `inner_call` returned None for valid arguments."""
        del arguments
        if self._asks_user(name):
            raise InvalidInputError(f"{name} may change something and is listed: call it directly")
        raise InvalidInputError(
            f"name must be the name of a tool that {SEARCH_TOOLS} found, and arguments an object"
        )

    def _asks_user(self, name: str) -> bool:
        # By its own name and annotations, a client can ask its user before a call.
        return any(name in item.names and not item.tool.read_only for item in self.listed)


def _stays_listed(item: RegisteredTool, settings: Settings) -> bool:
    return (
        bool(first_match(item.names, settings.tools.always_listed))
        # Clients find the view of a tool in its listed definition, and views call listed tools.
        or bool(item.view or item.tool.views_only)
        or any(key.partition("/")[0] == "ui" for key in item.tool.meta)
        or not (item.tool.read_only or settings.tools.search_writing)
    )


@cache
def _own_tools() -> tuple[RegisteredTool, ...]:
    """Return the two tools, with functions that only declare the arguments."""

    def search_tools(query: _Query, max_results: _Results = _RESULTS) -> dict[str, Any]:
        raise NotImplementedError

    def call_tool(name: _Name, arguments: _Arguments = None) -> str:
        raise NotImplementedError

    tools = (
        Tool(
            name=SEARCH_TOOLS,
            title="Search tools",
            function=search_tools,
            description=(
                "Find tools that are not listed here. Search before you tell the user that "
                "something is not possible. Returns definitions of tools, the best first; call "
                f"these tools with {CALL_TOOL}."
            ),
            read_only=True,
            open_world=False,
            meta={ALWAYS_LOAD: True},
        ),
        Tool(
            name=CALL_TOOL,
            title="Call a tool",
            function=call_tool,
            description=f"Call a tool that {SEARCH_TOOLS} found.",
            meta={ALWAYS_LOAD: True},
        ),
    )
    return tuple(read_tool("standards-mcp", tool) for tool in tools)


def _as_object(value: object) -> Mapping[str, Any] | None:
    """Return a JSON object, also from a text as some models send it; None for other values."""
    if isinstance(value, str) and len(value) <= _MAX_ENCODED_CHARS:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if value is None:
        return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def open_tool_ranking(definitions: Sequence[Mapping[str, Any]]) -> Scorer:
    """Return a function that scores tools for a query, by shared words if there is no package."""
    try:
        (point,) = own_entry_points("standards_mcp.tool_ranking").values()
        scorer: Scorer = point.load()(definitions)
    except Exception as exc:  # noqa: BLE001  - the search must work without the package
        log.warning("tools are ranked by shared words alone", extra={"reason": str(exc)})
        return shared_words(definitions)
    return scorer


def shared_words(definitions: Sequence[Mapping[str, Any]]) -> Scorer:
    """Score tools by the words that they share with the query, if there is no better ranking."""
    words = [
        stems(f"{tool['name']} {tool['title'] or ''} {tool['description']}") for tool in definitions
    ]
    return lambda query: [len(stems(query) & each) for each in words]
