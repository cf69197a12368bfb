"""The requests by which the host and the process of an isolated plugin speak, beside MCP's own.

Tools are called by MCP's ``tools/call``, so that progress, questions and cancellation are the
protocol's, and changes are told by its notification. The rest MCP has no word for, or no room: a
prompt, for one, must be told what tools are called outside. Both sides share these models; where
they do not fit, the process runs another version of the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from standards_mcp.config.problems import Problem
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.contributions.base import Completion
from standards_mcp.plugin import Health, Message

CALLER: Final = "standards-mcp/caller"
"""In the ``_meta`` of a call: the name of who calls."""
LOG_FIELDS: Final = "standards-mcp/log-fields"
"""In the ``_meta`` of a result: what the plugin adds to the host's log line of the call."""
TRIAL_PASSED: Final = 79
"""The exit code of a trial; a plugin that ends the process has another one, such as 0 or 1."""
FILTER_ARGUMENT: Final = "standards_mcp_filter"
"""The argument of a call with the expression that the host made of the values of filters."""


HostHook: TypeAlias = Literal[
    "register_commands", "register_filters", "register_routes", "wrap_tool_call"
]
"""A hook that needs the host's process, so that it has no effect in an isolated plugin."""


class WorkerConfig(BaseModel):
    """The first line of the process's stdin; it holds secrets.

    Attributes:
        memory: The most that it may use, in bytes.
        settings: The host's settings that are about this plugin, and the tables of plugins that may
            provide services to it.
        folders: Where relative paths start, by the plugin and the key.
        variables: Those of ``.env`` that set keys of the plugin.
        timing: The host's.
        trial: A trial: the phase in which an earlier start ended. The process ends with
            `TRIAL_PASSED` once the plugin is loaded, and in the phase ``starting`` has started.
    """

    name: str
    memory: int | None
    settings: dict[str, Any]
    folders: dict[str, dict[str, str]] = {}
    variables: dict[str, str] = {}
    timing: Timing = DEFAULT_TIMING
    trial: Literal["", "loading", "starting"] = ""


class Described(BaseModel):
    """A tool, a prompt or a resource.

    Attributes:
        declared: The other fields of its class that are data.
        completers: The arguments or variables that can be completed.
        output_schema: That of a tool's answers.
    """

    name: str
    title: str | None
    description: str
    declared: dict[str, Any]
    input_schema: dict[str, Any]
    completers: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None


class Description(BaseModel):
    """What the plugin contributes.

    Attributes:
        failure: Why it cannot be served, or an empty string.
        problems: Those in its settings for which it cannot.
        variables: The variables of their own that its keys have, see `Variable`.
        secret: The keys of its table whose values are secrets.
        secret_variables: The variables that set such keys.
        title: See `standards_mcp.Plugin`.
        instructions: See `standards_mcp.Plugin`.
        ineffective: The hooks of the plugin that have no effect.
    """

    failure: str = ""
    problems: tuple[Problem, ...] = ()
    variables: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    secret_variables: tuple[str, ...] = ()
    title: str = ""
    instructions: str = ""
    ineffective: tuple[HostHook, ...] = ()
    tools: tuple[Described, ...] = ()
    prompts: tuple[Described, ...] = ()
    resources: tuple[Described, ...] = ()


class Held(BaseModel):
    """What a resource holds.

    Attributes:
        data: Its text; of bytes, their base64.
    """

    data: str
    is_text: bool
    mime_type: str


class HealthReport(BaseModel):
    """How the plugin is.

    Attributes:
        stuck_seconds: For how long a function has gone on after its call was cancelled.
    """

    health: Health
    stuck_seconds: float


class Request(BaseModel):
    """A request: its fields are the parameters.

    Attributes:
        method: What it is called on the wire.
        result: The type of its result.
    """

    method: ClassVar[str]
    result: ClassVar[Any]

    @classmethod
    def encode_result(cls, value: object) -> dict[str, Any]:
        """Return a result as it is sent."""
        return {"value": TypeAdapter(cls.result).dump_python(value, mode="json")}

    @classmethod
    def decode_result(cls, raw: Mapping[str, Any]) -> Any:
        """Return a result that was sent.

        Raises:
            pydantic.ValidationError: It is not of this version.
        """
        return TypeAdapter(cls.result).validate_python(raw.get("value"))


class Describe(Request):
    """What does the plugin contribute?"""

    method = "standards-mcp/describe"
    result = Description


class GetPrompt(Request):
    """What does a prompt say?

    Attributes:
        tools: What the tools that it names are called outside, by their declared names.
        input_responses: The replies to what it has asked, as in MCP's own ``prompts/get``.
        request_state: What came with its questions, likewise.
    """

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)

    method = "standards-mcp/get-prompt"
    result = list[Message]
    name: str
    arguments: dict[str, Any]
    tools: dict[str, str]
    input_responses: dict[str, Any] | None = None
    request_state: str | None = None


class ReadResource(Request):
    """What does a resource hold, for these values of its variables?"""

    method = "standards-mcp/read-resource"
    result = Held
    name: str
    variables: dict[str, Any]


class Complete(Request):
    """Which values may an argument have, best first? See `standards_mcp.plugin.Completer`."""

    method = "standards-mcp/complete"
    result = Completion
    kind: Literal["prompt", "resource"]
    name: str
    argument: str
    typed: str
    others: dict[str, str]


class CheckHealth(Request):
    """How is the plugin?

    Attributes:
        ping: Do not ask the plugin: that the process answers is enough, and what is stuck.
    """

    method = "standards-mcp/health"
    result = HealthReport
    ping: bool = False
