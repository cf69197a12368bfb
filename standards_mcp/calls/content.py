"""What prompts say and resources hold, and what completes their arguments, for those who ask."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from standards_mcp._utils.secrets import mask
from standards_mcp._utils.text import did_you_mean
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.arguments import refuse_unknown
from standards_mcp.contributions.base import Contribution
from standards_mcp.contributions.prompts import TOOLS_ARGUMENT, RegisteredPrompt, messages_of
from standards_mcp.contributions.resources import (
    Contents,
    RegisteredResource,
    contents_of,
    find_resource,
)
from standards_mcp.contributions.selection import Selection, named, visible
from standards_mcp.contributions.tools import Limits
from standards_mcp.errors import NotServedError, ToolError
from standards_mcp.plugin import Message

from .policy import Policy

_T = TypeVar("_T")

_C = TypeVar("_C", bound=Contribution)


class Served(Protocol):
    """A host, as far as it is needed here; what it offers may change."""

    settings: Settings

    @property
    def selection(self) -> Selection:
        """What there is, as the configuration makes it."""
        ...

    def secrets(self) -> frozenset[str]:
        """Return what no message may hold."""
        ...


class ContentCalls:
    """Answers for the prompts and resources of a host."""

    def __init__(self, host: Served, policy: Policy) -> None:
        self._host = host
        self._policy = policy

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str], tools: Mapping[str, str] | None = None
    ) -> list[Message]:
        """Return what a prompt says, by its published or its declared name.

        Args:
            tools: What the tools that it names are called, where they are those of another host.

        Raises:
            NotServedError: No such prompt is served.
            ToolError: It refused the arguments, failed or did not answer in time.
        """
        item = named(self._host.selection.prompts, name)
        if item is None or tools is None:
            known = (each.published for each in visible(self._host.selection.prompts))
            item = _served_one("prompt", name, item, known)
        with self._masked():
            keywords = await item.arguments.validate(arguments)
            if declared := (*item.prompt.needs, *item.prompt.uses):
                own = self._host.selection.tool_names(declared)
                keywords[TOOLS_ARGUMENT] = own if tools is None else dict(tools)
            return await self._provide(item, item.prompt.function, keywords, messages_of)

    async def read_resource(self, uri: str) -> Contents:
        """Return what a resource holds.

        Raises:
            NotServedError: No resource that is served has this URI.
            ToolError: It refused the variables, failed or did not answer in time.
        """
        found = find_resource(visible(self._host.selection.resources), uri)
        item, variables = found or find_resource(self._host.selection.resources, uri) or (None, {})
        known = (each.resource.uri for each in visible(self._host.selection.resources))
        return await self.read(_served_one("resource", uri, item, known), variables)

    async def read(self, item: RegisteredResource, variables: Mapping[str, Any]) -> Contents:
        """Return what a resource holds for these values of its variables. See `read_resource`."""
        render = partial(contents_of, mime_type=item.resource.mime_type)
        with self._masked():
            keywords = await item.arguments.validate(variables)
            return await self._provide(item, item.resource.function, keywords, render)

    async def complete_prompt(
        self, name: str, argument: str, typed: str, others: Mapping[str, str]
    ) -> list[str]:
        """Return values for an argument of a prompt. See `complete`.

        Raises:
            NotServedError: No such prompt is served.
            InvalidInputError: It has no such argument.
        """
        items = self._host.selection.prompts
        known = (each.published for each in visible(items))
        item = _served_one("prompt", name, named(items, name), known)
        return await self.complete(item, argument, typed, others)

    async def complete_resource(
        self, uri: str, argument: str, typed: str, others: Mapping[str, str]
    ) -> list[str]:
        """Return values for a variable of a template. See `complete`.

        Raises:
            NotServedError: No resource that is served has this URI or template.
            InvalidInputError: It has no such variable.
        """
        items = self._host.selection.resources
        item = next((each for each in items if each.resource.uri == uri), None)
        known = (each.resource.uri for each in visible(items))
        return await self.complete(
            _served_one("resource", uri, item, known), argument, typed, others
        )

    async def complete(
        self,
        item: RegisteredPrompt | RegisteredResource,
        argument: str,
        typed: str,
        others: Mapping[str, str],
    ) -> list[str]:
        """Return values for an argument, best first; none where the plugin fails.

        Raises:
            InvalidInputError: There is no such argument.
        """
        refuse_unknown({argument: typed}, item.arguments.schema["properties"])
        completer = item.completers.get(argument)
        if completer is None:
            return []
        try:
            return await self._provide(item, partial(completer, typed, others), {}, _texts)
        except ToolError:
            return []  # the log has it, and who types has not asked yet

    async def _provide(
        self,
        item: Contribution,
        function: Callable[..., Any],
        keywords: Mapping[str, Any],
        render: Callable[[Any], _T],
    ) -> _T:
        tools = self._host.settings.tools
        limits = Limits(timeout=tools.timeout, plugin_concurrency=tools.concurrency)
        return await self._policy.provide(item, function, keywords, render, limits)

    @contextmanager
    def _masked(self) -> Generator[None]:
        """Let no secret out with the message of a `ToolError`."""
        try:
            yield
        except ToolError as exc:
            exc.args = (mask(str(exc), self._host.secrets()),)
            raise


def _served_one(kind: str, name: str, item: _C | None, known: Iterable[str]) -> _C:
    if item is None:
        raise NotServedError(f"Unknown {kind}: {name}{did_you_mean(name, known)}")
    if item.hidden_reason:
        raise NotServedError(
            f"{name} is not served here ({item.hidden_reason}). Ask the administrator."
        )
    return item


def _texts(values: Iterable[object]) -> list[str]:
    return [str(value) for value in values]
