"""Plugins that run in a process of their own.

A child process imports the plugin (`server.isolated`), and the host calls the plugin's tools,
prompts and resources there. The process checks all arguments except filters, so messages about
wrong arguments are the same as for a plugin in the host's process.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from standards_mcp._utils.secrets import long_texts
from standards_mcp.calls.context import CALL, HostContext
from standards_mcp.config.layers import DOT_ENV, ENVIRONMENT, Layers
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Expansion, HiddenText
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.contributions.arguments import (
    Arguments,
    UncheckedArguments,
    filter_arguments,
    refuse_unknown,
)
from standards_mcp.contributions.base import common_fields
from standards_mcp.contributions.prompts import TOOLS_ARGUMENT, PromptAnswer, RegisteredPrompt
from standards_mcp.contributions.resources import RegisteredResource, template_of
from standards_mcp.contributions.results import Result
from standards_mcp.contributions.schemas import Schema, SchemaError
from standards_mcp.contributions.selection import Contributions
from standards_mcp.contributions.skills import files_of, skill_of
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import ApiError
from standards_mcp.loading.records import PluginInfo, PluginKind
from standards_mcp.plugin import (
    Filter,
    Health,
    PluginContext,
    PluginSettings,
    Prompt,
    Resource,
    Tool,
    ToolResult,
)

from .definitions import completers, prompt_answer, tool_result, why_not_valid
from .plugin import RemotePlugin, expanded
from .processes import basic_environment, new_mark
from .resources import WholeUri, resource_reader
from .worker import (
    FILTER,
    LOG_FIELDS,
    MODULE,
    STATUS,
    TOOLS,
    Described,
    Description,
    HostHook,
    StatusRequest,
    WorkerCalls,
    WorkerConfig,
    other_variables,
    worker_config,
)

if TYPE_CHECKING:
    from .session import OpenSession
    from .transports import StdioTransport

# These parts need the host's process. With private requests to the child process, each search of
# another plugin would need a round trip for a filter, a route would lose its streams, and a command
# would reach only its own plugin's tools.
_PART_NAMES: Final[Mapping[HostHook, str]] = {
    "register_commands": "commands",
    "register_filters": "filters",
    "register_routes": "routes",
    "wrap_tool_call": "wrap_tool_call",
}
_REPORT_SECONDS: Final = 5.0
"""Extra time for the start, because the process itself reports a lifespan that is too slow."""
_T = TypeVar("_T", Tool, Prompt, Resource)


class IsolationSettings(PluginSettings):
    """The settings of an isolated plugin's process.

    Attributes:
        python: The interpreter that runs the plugin.
        processes: The most processes that the plugin may have at a time.
        env: Variables for its environment, unexpanded.
        worker: The configuration for the process; this holds secrets.
    """

    python: str = sys.executable
    processes: int
    env: dict[str, HiddenText]
    worker: WorkerConfig = Field(repr=False)

    @property
    def options(self) -> Mapping[str, Any]:
        """The plugin's table in the configuration."""
        table: Mapping[str, Any] = self.worker.settings["plugins"][self.worker.name]
        return table


def isolate(
    plugins: Iterable[PluginInfo],
    loaded: LoadedSettings,
    state_dir: Path,
    timing: Timing = DEFAULT_TIMING,
) -> list[PluginInfo]:
    """Isolate the configured plugins, and add those that only another interpreter has installed.

    A plugin that is isolated already stays unchanged.
    """
    settings, infos = loaded.settings, {info.name: info for info in plugins}
    own = [info.name for info in infos.values() if info.is_own]
    for name, section in settings.plugins.items():
        if section.python and name not in infos:
            infos[name] = PluginInfo(
                name=name, load=lambda: None, distribution=f"[plugins.{name}]", is_installed=False
            )
    for name, info in infos.items():
        section = settings.section(name)
        if not section.is_isolated or info.kind is PluginKind.ISOLATED:
            continue
        attributes = {
            "required": section.required or settings.strict,
            "version": info.version,
            "layers": loaded.layers,
            "timing": timing,
        }
        isolation = IsolationSettings(
            python=section.python or sys.executable,
            processes=section.processes,
            env=section.env,
            worker=worker_config(name, loaded, state_dir, timing, own),
        )
        infos[name] = replace(
            info,
            kind=PluginKind.ISOLATED,
            load=partial(type, "IsolatedPlugin", (IsolatedPlugin,), attributes),
            settings=isolation,
        )
    return list(infos.values())


def in_process(name: str) -> str:
    """Return the advice for loading a plugin in the host's process."""
    return f"load it in the host's process: take isolate and python out of [plugins.{name}]"


# The plugin can send signals to the host. Landlock could forbid this (from Linux 6.12 on), but also
# forbids programs such as sudo in the plugin. A container around the plugin is a better protection.
class IsolatedPlugin(RemotePlugin[IsolationSettings]):
    """A plugin in a child process.

    Attributes:
        layers: The sources of its settings, for messages about invalid settings.
        version: The version of its distribution, a part of its identity.
    """

    settings_type = IsolationSettings
    layers: ClassVar[Layers] = Layers()
    is_eager = True
    version: ClassVar[str] = ""

    def __init__(self, settings: IsolationSettings, context: PluginContext) -> None:
        self._calls = WorkerCalls(lambda: self.connection, self.timing)
        self._variables = frozenset[str]()
        expansion, table = Expansion(), ("plugins", context.name, "env")
        self._env = {
            name: expanded(expansion, value, *table, name) for name, value in settings.env.items()
        }
        self._env_secrets = frozenset(expansion.secrets)
        identity = [settings.python, self.version, [context.name]]
        super().__init__(settings, context, identity, self.timing.start + _REPORT_SECONDS)

    async def fetch(self, session: OpenSession) -> dict[str, Any]:
        """Ask the process for the description of the plugin. See `RemotePlugin.fetch`.

        Raises:
            ApiError: The process runs another version of the host.
        """
        from mcp import MCPError  # noqa: PLC0415  - imported with the session
        from mcp_types import METHOD_NOT_FOUND  # noqa: PLC0415  - as above

        from .connection import StartAgainError  # noqa: PLC0415  - as above

        request = StatusRequest(describe=True).model_dump()
        try:
            answer = await session.request(STATUS, request)
        except MCPError as exc:
            if exc.code == METHOD_NOT_FOUND:
                raise self._other_version(exc.message) from None
            raise
        description = self._description(answer.get("description"))
        variables = self._variables.union(description.variables)
        if self._variable_values(variables) != self._variable_values(self._variables):
            self._variables = variables
            # The process cannot request the values: that would need a second channel before MCP
            # begins.
            raise StartAgainError  # the process has read its settings without these values
        return description.model_dump(mode="json")

    def read(self, listing: Mapping[str, Any]) -> None:
        """Contribute the items of a `Description`. See `RemotePlugin.read`."""
        described, name, calls = self._description(listing), self.context.name, self._calls
        self.problems = described.problems
        lines = "; ".join(problem.line(self.layers) for problem in described.problems)
        self.failure = lines or described.failure
        self._ineffective = described.ineffective
        self.title, self.instructions = described.title, described.instructions
        self._variables = self._variables.union(described.variables)
        options = self.settings.options
        secret_options = [options[key] for key in described.secret if key in options]
        self.secrets = self._env_secrets | long_texts(
            [secret_options, *self._variable_values(described.secret_variables)]
        )
        try:
            skills = tuple(skill_of(name, each.contents, each.needs) for each in described.skills)
        except ValueError as exc:
            raise self._other_version(str(exc)) from None
        self.contributions = Contributions(
            tuple(isolated_tool(name, tool, calls) for tool in described.tools),
            tuple(isolated_prompt(name, prompt, calls) for prompt in described.prompts),
            (*isolated_resources(name, described.resources, calls), *files_of(skills)),
            skills=skills,
        )

    @property
    def notice(self) -> str:
        """The parts of the plugin that need the host's process. See `Provider`."""
        if not self._ineffective:
            return ""
        parts = ", ".join(_PART_NAMES[hook] for hook in self._ineffective)
        why = f"these parts have no effect because the plugin is isolated: {parts}"
        return f"{why}; to use them, {in_process(self.context.name)}"

    def _description(self, listing: object) -> Description:
        try:
            return Description.model_validate(listing)
        except ValidationError as exc:
            raise self._other_version(why_not_valid(exc)) from None

    def _other_version(self, reason: str) -> ApiError:
        return ApiError(
            f"the standards-mcp of {self.settings.python} describes plugins in another format "
            f"({reason}); install the version there that runs here"
        )

    async def health(self) -> Health:
        """Return the health that the plugin reports."""
        if self.failure:
            return Health(status="failed", message=self.failure)
        health = await self._calls.health()
        # A missing command is refused with the reason; other parts are missing silently.
        if health.status == "failed" or not {*self._ineffective} - {"register_commands"}:
            return health
        message = f"{health.message}; {self.notice}" if health.message else self.notice
        return Health(status="degraded", message=message)

    def _variable_values(self, names: Collection[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the variables with these names: from the environment, and from ``.env``."""
        wanted = {name.upper() for name in names}
        environment, dot_env = (
            {name: value for name, value in variables.items() if name in wanted}
            for variables in (
                other_variables(self.layers, source) for source in (ENVIRONMENT, DOT_ENV)
            )
        )
        return environment, dot_env

    def connect(self) -> StdioTransport:
        """Return a new process. See `RemotePlugin.connect`."""
        from .transports import Command, StdioTransport  # noqa: PLC0415  - imports the SDK

        settings, mark = self.settings, new_mark()
        environment, dot_env = self._variable_values(self._variables)
        worker = self.settings.worker.model_copy(update={"variables": dot_env})
        command = Command(
            program=settings.python,
            key="python",
            args=("-m", MODULE, self.context.name),
            env={**basic_environment(), **environment, **self._env, **mark},
            first_line=worker.model_dump_json().encode() + b"\n",
            most_processes=settings.processes,
            mark=mark,
            # All options count as secrets, because only the process knows which of them are.
            secrets=long_texts(settings.options),
        )
        return self._calls.watch(StdioTransport(self.context.name, command))


@dataclass(frozen=True, slots=True)
class FilteredArguments:
    """Arguments that the process checks, and filters that the host combines into one expression.

    Attributes:
        filters: The arguments of the filters.
    """

    schema: Schema
    filters: Arguments

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with one expression for all filters. See `Arguments.validate`."""
        refuse_unknown(arguments, self.schema["properties"])
        names = self.filters.schema["properties"]
        of_filters = {name: value for name, value in arguments.items() if name in names}
        own = {name: value for name, value in arguments.items() if name not in names}
        return {**own, FILTER: (await self.filters.validate(of_filters))["filter"]}


def _declared(kind: type[_T], described: Described, **functions: Any) -> _T:
    """Return the author's declaration, with *functions* that send requests to the process."""
    texts = described.model_dump(include={"name", "title", "description"})
    return TypeAdapter(kind).validate_python({**described.declared, **texts, **functions})


def isolated_tool(plugin: str, described: Described, calls: WorkerCalls) -> RegisteredTool:
    """Return a tool that runs in the process."""

    async def function(**arguments: Any) -> ToolResult:
        caller: HostContext = arguments.pop(CALL)
        meta = {FILTER: arguments.pop(FILTER)} if FILTER in arguments else {}
        params = {"name": described.name, "arguments": arguments}
        raw = await calls.ask("tools/call", params, caller, meta)
        private: dict[str, Any] = raw.get("_meta") or {}
        caller.add_log_fields(**private.pop(LOG_FIELDS, {}))
        result = tool_result(raw)
        only: Mapping[str, Any] = result.content[0] if len(result.content) == 1 else {}
        is_text = only.keys() == {"type", "text"}
        return replace(result, text=only["text"], content=()) if is_text else result

    tool = _declared(Tool, described, function=function)
    return RegisteredTool(
        **common_fields(plugin, tool, described.description),
        tool=tool,
        arguments=UncheckedArguments(described.input_schema),
        result=Result(None, described.output_schema, wrapped=False),
        context=CALL,
        extend=partial(_extended, described.input_schema) if tool.accepts_filters else None,
    )


def _extended(schema: Schema, filters: tuple[Filter, ...]) -> Arguments:
    """Return the arguments of a tool that accepts filters.

    Raises:
        SchemaError: A filter has the name of an argument of the tool.
    """
    own = schema["properties"]
    if clash := {item.name for item in filters} & own.keys():
        raise SchemaError(f"filter {min(clash)!r} has the name of one of its arguments")
    # The host combines filters into one expression, so the process does not have to request them.
    extra = filter_arguments(filters)
    return FilteredArguments({**schema, "properties": {**own, **extra.schema["properties"]}}, extra)


def isolated_prompt(plugin: str, described: Described, calls: WorkerCalls) -> RegisteredPrompt:
    """Return a prompt that runs in the process."""

    async def function(**arguments: Any) -> PromptAnswer:
        caller: HostContext = arguments.pop(CALL)
        meta: dict[str, Any] = {}
        if prompt.needs or prompt.uses:  # any other prompt may have an argument of this name
            meta = {TOOLS: arguments.pop(TOOLS_ARGUMENT)}
        params = {"name": described.name, "arguments": arguments}
        return prompt_answer(await calls.ask("prompts/get", params, caller, meta))

    ref = {"type": "ref/prompt", "name": described.name}
    complete = completers(calls.ask, ref, described.completers)
    prompt = _declared(Prompt, described, function=function, complete=complete)
    return RegisteredPrompt(
        **common_fields(plugin, prompt, described.description),
        prompt=prompt,
        arguments=UncheckedArguments(described.input_schema),
        context=CALL,
    )


def isolated_resources(
    plugin: str, described: Collection[Described], calls: WorkerCalls
) -> tuple[RegisteredResource, ...]:
    """Return the resources that are read in the process."""
    items: dict[str, RegisteredResource] = {}
    # The process tries plain URIs before templates, and both in the order of their declaration.
    for resource in sorted(described, key=lambda resource: "{" in resource.declared["uri"]):
        items[resource.name] = _resource(plugin, resource, calls, tuple(items.values()))
    return tuple(items[resource.name] for resource in described)


def _resource(
    plugin: str, described: Described, calls: WorkerCalls, earlier: tuple[RegisteredResource, ...]
) -> RegisteredResource:
    uri: str = described.declared["uri"]
    template = template_of(uri)
    function = resource_reader(calls.ask, "" if template else uri)
    complete = completers(calls.ask, {"type": "ref/resource", "uri": uri}, described.completers)
    resource = _declared(Resource, described, function=function, complete=complete)
    return RegisteredResource(
        **common_fields(plugin, resource, described.description),
        resource=resource,
        template=WholeUri(template, earlier) if template else None,
        arguments=UncheckedArguments(described.input_schema),
    )
