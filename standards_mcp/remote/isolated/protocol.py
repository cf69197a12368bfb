"""The requests by which the host and the process of an isolated plugin speak, beside MCP's own.

Tools are called by MCP's ``tools/call``, so that progress, questions and cancellation are the
protocol's, and changes are told by its notification. The rest MCP has no word for, or no room: a
prompt, for one, must be told what tools are called outside. Both sides share these models; where
they do not fit, the process runs another version of the host.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from pydantic import BaseModel

from standards_mcp.config.errors import Mistake
from standards_mcp.plugin import Health, Message

FILTER_ARGUMENT: Final = "standards_mcp_filter"
"""The argument of a call with the expression that the host made of the values of filters."""


class WorkerConfig(BaseModel):
    """The first line of the process's stdin; it holds secrets.

    Attributes:
        memory: The most that it may use, in bytes.
        settings: Those of the host, as far as they are about this plugin.
    """

    name: str
    memory: int | None
    settings: dict[str, Any]


class Params(BaseModel):
    """The parameters of a request."""

    method: ClassVar[str]


class Describe(Params):
    """Asks for the `Description`."""

    method = "standards-mcp/describe"


class ConvertFilters(Params):
    """Asks for the `Expression` of values, by the names of the plugin's filters."""

    method = "standards-mcp/convert-filters"
    values: dict[str, Any]


class GetPrompt(Params):
    """Asks for the `Messages` of a prompt.

    Attributes:
        tools: What the tools that it names are called outside, by their declared names.
    """

    method = "standards-mcp/get-prompt"
    name: str
    arguments: dict[str, Any]
    tools: dict[str, str]


class ReadResource(Params):
    """Asks for the `Held` of a resource, for these values of its variables."""

    method = "standards-mcp/read-resource"
    name: str
    variables: dict[str, Any]


class Complete(Params):
    """Asks for the `Values` of an argument. See `standards_mcp.plugin.Completer`."""

    method = "standards-mcp/complete"
    kind: Literal["prompt", "resource"]
    name: str
    argument: str
    typed: str
    others: dict[str, str]


class CheckHealth(Params):
    """Asks for the `HealthReport`.

    Attributes:
        ping: Do not ask the plugin: that the process answers is enough, and what is stuck.
    """

    method = "standards-mcp/health"
    ping: bool = False


class _Described(BaseModel):
    name: str
    title: str | None
    description: str
    input_schema: dict[str, Any]


class ToolDescription(_Described):
    """A tool. See `standards_mcp.Tool`."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    accepts_filters: bool
    timeout: float | None
    cache_ttl: float
    meta: dict[str, Any]
    output_schema: dict[str, Any] | None


class FilterDescription(BaseModel):
    """A filter, with the schema of its values."""

    name: str
    description: str
    value_schema: dict[str, Any]


class PromptDescription(_Described):
    """A prompt, with the arguments that can be completed. See `standards_mcp.Prompt`."""

    needs: tuple[str, ...]
    uses: tuple[str, ...]
    complete: tuple[str, ...]


class ResourceDescription(_Described):
    """A resource, with the variables that can be completed. See `standards_mcp.Resource`."""

    uri: str
    mime_type: str | None
    complete: tuple[str, ...]


class Description(BaseModel):
    """What the plugin contributes.

    Attributes:
        failure: Why it cannot be served, or an empty string.
        mistakes: Those in its settings for which it cannot.
        secret: The keys of its table whose values are secrets.
        notice: What has no effect, or an empty string.
    """

    failure: str = ""
    mistakes: tuple[Mistake, ...] = ()
    secret: tuple[str, ...] = ()
    notice: str = ""
    tools: tuple[ToolDescription, ...] = ()
    filters: tuple[FilterDescription, ...] = ()
    prompts: tuple[PromptDescription, ...] = ()
    resources: tuple[ResourceDescription, ...] = ()


class Expression(BaseModel):
    """An expression of the filter language; None: any record."""

    expression: dict[str, Any] | None


class Messages(BaseModel):
    """What a prompt says."""

    messages: list[Message]


class Held(BaseModel):
    """What a resource holds.

    Attributes:
        data: Its text; of bytes, their base64.
    """

    data: str
    is_text: bool
    mime_type: str


class Values(BaseModel):
    """Proposed values, best first."""

    values: list[str]


class HealthReport(BaseModel):
    """How the plugin is.

    Attributes:
        stuck_seconds: For how long a function has gone on after its call was cancelled.
    """

    health: Health
    stuck_seconds: float
