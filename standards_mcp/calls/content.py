"""Get prompts, read resources, and complete their arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from standards_mcp._utils.text import did_you_mean
from standards_mcp.contributions.arguments import refuse_unknown
from standards_mcp.contributions.base import Completion, Contribution
from standards_mcp.contributions.prompts import (
    TOOLS_ARGUMENT,
    PromptAnswer,
    RegisteredPrompt,
    prompt_answer,
)
from standards_mcp.contributions.resources import (
    Contents,
    RegisteredResource,
    contents_of,
    find_resource,
)
from standards_mcp.contributions.schemas import short
from standards_mcp.contributions.selection import Selection, named, visible
from standards_mcp.errors import NotServedError, ToolError

from .call import Call
from .context import HostContext, Principal
from .pipeline import Pipeline

_MAX_COMPLETIONS: Final = 100
_MAX_COUNTED: Final = 100_000
_C = TypeVar("_C", bound=Contribution)
_T = TypeVar("_T")


class ContentCalls:
    """Calls the prompts and resources of a host.

    Args:
        visible: Returns the current selection of a principal; it may change between calls.
    """

    def __init__(self, visible: Callable[[Principal], Selection], pipeline: Pipeline) -> None:
        self._visible = visible
        self._pipeline = pipeline

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str], context: HostContext | None = None
    ) -> PromptAnswer:
        """Return the messages of a prompt, found by its published or its declared name.

        Args:
            context: The caller's context; by default the local user.

        Raises:
            NotServedError: No such prompt is served.
            InputRequiredError: The client must ask its user, and ask for the prompt again.
            ToolError: The prompt refused the arguments, failed or did not answer in time.
        """
        context = context or HostContext()
        with self._reporting_refusals("prompt", name, arguments, context):
            item = self.prompt(name, context)
        host_arguments: dict[str, Any] = {item.context: context} if item.context else {}
        if declared := (*item.prompt.needs, *item.prompt.uses):
            names = self._visible(context.principal).tool_names(declared)
            host_arguments[TOOLS_ARGUMENT] = names
        answer: PromptAnswer = await self._pipeline.get(
            Call(
                item=item,
                function=item.prompt.function,
                render=prompt_answer,
                arguments=arguments,
                context=context,
                host_arguments=host_arguments,
            )
        )
        return answer

    async def read_resource(self, uri: str, context: HostContext | None = None) -> Contents:
        """Return the contents of a resource.

        Raises:
            NotServedError: No resource is served under this URI.
            ToolError: The resource refused the variables, failed or did not answer in time.
        """
        context = context or HostContext()
        with self._reporting_refusals("resource", uri, {}, context):
            item, variables = self.resource_at(uri, context)
        contents: Contents = await self._pipeline.get(
            Call(
                item=item,
                function=item.resource.function,
                render=partial(contents_of, resource=item.resource),
                arguments=variables,
                context=context,
            )
        )
        return contents

    def resource_at(
        self, uri: str, context: HostContext
    ) -> tuple[RegisteredResource, dict[str, Any]]:
        """Return the served resource under a URI, and the values of its variables.

        Raises:
            NotServedError: No resource is served under this URI.
        """
        items = _mentionable(self._visible(context.principal).resources, context)
        served = visible(items)
        # Visible ones first: a hidden resource must not shadow a template that fits the URI, too.
        # Hidden ones are looked up only for an error that says why they are not served.
        match = find_resource(served, uri) or find_resource(items, uri)
        item, variables = match or (None, {})
        served_uris = (each.resource.uri for each in served)
        return _require_served("resource", uri, item, served_uris), variables

    async def subscribe(
        self,
        uri: str,
        subscribe: Callable[[RegisteredResource, str], Awaitable[_T]],
        context: HostContext,
    ) -> _T:
        """Call *subscribe* for the resource under a URI, and return its result.

        Raises:
            NotServedError: No resource is served under this URI.
            ToolError: *subscribe* failed or did not answer in time.
        """
        with self._reporting_refusals("subscription", uri, {}, context):
            item, _ = self.resource_at(uri, context)
        call = Call(
            item=item,
            function=partial(subscribe, item, uri),
            render=lambda result: result,
            arguments={"uri": uri},
            context=context,
            kind="subscription",
        )
        result: _T = await self._pipeline.complete(call)
        return result

    @contextmanager
    def _reporting_refusals(
        self, kind: str, name: str, arguments: Mapping[str, Any], context: HostContext
    ) -> Generator[None]:
        """Report a request for an unknown name to observers."""
        try:
            yield
        except NotServedError:
            self._pipeline.recording.refused(kind, name, arguments, context)
            raise

    def prompt(self, name: str, context: HostContext) -> RegisteredPrompt:
        """Return a served prompt by its published or its declared name.

        Raises:
            NotServedError: No such prompt is served.
        """
        items = _mentionable(self._visible(context.principal).prompts, context)
        served_names = (item.published for item in visible(items))
        return _require_served("prompt", name, named(items, name), served_names)

    def resource(self, uri: str, context: HostContext) -> RegisteredResource:
        """Return a served resource by its declared URI or template.

        Raises:
            NotServedError: No such resource is served.
        """
        items = _mentionable(self._visible(context.principal).resources, context)
        served = visible(items)
        # If two resources have one URI, the second is hidden.
        item = next((item for item in (*served, *items) if item.resource.uri == uri), None)
        return _require_served("resource", uri, item, (each.resource.uri for each in served))

    async def complete(
        self,
        item: RegisteredPrompt | RegisteredResource,
        argument: str,
        typed: str,
        others: Mapping[str, str],
        context: HostContext | None = None,
    ) -> Completion:
        """Return values for an argument, best first; an empty list if the plugin fails.

        Args:
            typed: The text that the user has typed so far.
            others: The other arguments that the user has filled in.

        Raises:
            InvalidInputError: There is no such argument.
        """
        refuse_unknown({argument: typed}, item.arguments.schema["properties"])
        declared = item.prompt if isinstance(item, RegisteredPrompt) else item.resource
        completer = declared.complete.get(argument)
        if completer is None:
            return _completion(())
        call = Call(
            item=item,
            function=partial(completer, typed, others),
            render=_completion,
            arguments={argument: typed},
            context=context or HostContext(),
            kind="completion",
        )
        try:
            completion: Completion = await self._pipeline.complete(call)
        except ToolError:
            # The failure is in the log; a user who is still typing needs no error.
            return _completion(())
        return completion


def _mentionable(items: Sequence[_C], context: HostContext) -> Sequence[_C]:
    """Return the items that errors may mention; restricted callers must not see hidden ones."""
    return visible(items) if context.principal.is_restricted else items


def _require_served(kind: str, name: str, item: _C | None, served_names: Iterable[str]) -> _C:
    if item is None:
        raise NotServedError(f"Unknown {kind}: {short(name)}{did_you_mean(name, served_names)}")
    if item.hidden_reason:
        raise NotServedError(
            f"{name} is not served here ({item.hidden_reason}). Ask the administrator."
        )
    return item


def _completion(answer: Completion | Iterable[object]) -> Completion:
    if isinstance(answer, Completion):  # from another server
        is_cut = len(answer.values) > _MAX_COMPLETIONS
        has_more = True if is_cut else answer.has_more
        return answer._replace(values=answer.values[:_MAX_COMPLETIONS], has_more=has_more)
    values = [str(value) for value in islice(answer, _MAX_COUNTED)]
    total = len(values) if len(values) < _MAX_COUNTED else None
    has_more = len(values) > _MAX_COMPLETIONS
    return Completion(values[:_MAX_COMPLETIONS], total=total, has_more=has_more)
