"""What prompts say and resources hold, and what completes their arguments, for those who ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from standards_mcp._utils.text import did_you_mean
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

from .call import Call
from .context import HostContext, Principal, Unattended
from .pipeline import Pipeline

_C = TypeVar("_C", bound=Contribution)


class ContentCalls:
    """Answers for the prompts and resources of a host.

    Args:
        visible: Returns what there is for whoever asks; it may change.
        limits: Returns the limits in force.
    """

    def __init__(
        self,
        visible: Callable[[Principal], Selection],
        limits: Callable[[], Limits],
        pipeline: Pipeline,
    ) -> None:
        self._visible = visible
        self._limits = limits
        self._pipeline = pipeline

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str],
        tools: Mapping[str, str] | None = None,
        context: HostContext | None = None,
    ) -> list[Message]:
        """Return what a prompt says, by its published or its declared name.

        Args:
            tools: What the tools that it names are called, where they are those of another host.
            context: Who asks; by default the local user.

        Raises:
            NotServedError: No such prompt is served.
            ToolError: It refused the arguments, failed or did not answer in time.
        """
        context = context or Unattended()
        selection = self._visible(context.principal)
        item = None if tools is None else named(selection.prompts, name)
        item = item or self.prompt(name, context)
        given: dict[str, Any] = {}
        if declared := (*item.prompt.needs, *item.prompt.uses):
            given[TOOLS_ARGUMENT] = selection.tool_names(declared) if tools is None else dict(tools)
        messages: list[Message] = await self._pipeline.get(
            Call(
                item=item,
                function=item.prompt.function,
                render=messages_of,
                arguments=arguments,
                limits=self._limits(),
                context=context,
                given=given,
            )
        )
        return messages

    async def read_resource(self, uri: str, context: HostContext | None = None) -> Contents:
        """Return what a resource holds.

        Raises:
            NotServedError: No resource that is served has this URI.
            ToolError: It refused the variables, failed or did not answer in time.
        """
        context = context or Unattended()
        items = _known(self._visible(context.principal).resources, context)
        served = visible(items)
        found = find_resource(served, uri) or find_resource(items, uri)
        item, variables = found or (None, {})
        item = _served_one("resource", uri, item, (each.resource.uri for each in served))
        return await self.read(item, variables, context)

    async def read(
        self,
        item: RegisteredResource,
        variables: Mapping[str, Any],
        context: HostContext | None = None,
    ) -> Contents:
        """Return what a resource holds for these values of its variables. See `read_resource`."""
        contents: Contents = await self._pipeline.get(
            Call(
                item=item,
                function=item.resource.function,
                render=partial(contents_of, mime_type=item.resource.mime_type),
                arguments=variables,
                limits=self._limits(),
                context=context or Unattended(),
            )
        )
        return contents

    def prompt(self, name: str, context: HostContext) -> RegisteredPrompt:
        """Return a prompt that is served, by its published or its declared name.

        Raises:
            NotServedError: No such prompt is served.
        """
        items = _known(self._visible(context.principal).prompts, context)
        known = (each.published for each in visible(items))
        return _served_one("prompt", name, named(items, name), known)

    def resource(self, uri: str, context: HostContext) -> RegisteredResource:
        """Return a resource that is served, by its URI or its template as declared.

        Raises:
            NotServedError: No resource that is served has it.
        """
        items = _known(self._visible(context.principal).resources, context)
        item = next((each for each in items if each.resource.uri == uri), None)
        known = (each.resource.uri for each in visible(items))
        return _served_one("resource", uri, item, known)

    async def complete(
        self,
        item: RegisteredPrompt | RegisteredResource,
        argument: str,
        typed: str,
        others: Mapping[str, str],
        context: HostContext | None = None,
    ) -> list[str]:
        """Return values for an argument, best first; none where the plugin fails.

        Raises:
            InvalidInputError: There is no such argument.
        """
        refuse_unknown({argument: typed}, item.arguments.schema["properties"])
        completer = item.completers.get(argument)
        if completer is None:
            return []
        call = Call(
            item=item,
            function=partial(completer, typed, others),
            render=_texts,
            arguments={argument: typed},
            limits=self._limits(),
            context=context or Unattended(),
            kind="completion",
        )
        try:
            values: list[str] = await self._pipeline.complete(call)
        except ToolError:
            return []  # the log has it, and the user has not asked for anything yet
        return values


def _known(items: Sequence[_C], context: HostContext) -> Sequence[_C]:
    """Return what the caller may know of, which need not be served."""
    return visible(items) if context.principal.is_restricted else items


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
