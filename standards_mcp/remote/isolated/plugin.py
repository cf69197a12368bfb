"""Plugins that run in processes of their own, seen from the host.

The host does not import such a plugin: a child process does, and is spoken to over its stdin and
stdout (`isolated`). What it contributes looks as if it were local.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast

from pydantic import Field, WithJsonSchema

from standards_mcp._utils.secrets import long_texts, revealed
from standards_mcp._utils.text import describe_exception
from standards_mcp.calls.context import CALL, HostContext
from standards_mcp.config.errors import Problem
from standards_mcp.config.layers import Layers
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import PluginSection, Settings
from standards_mcp.contributions.arguments import Arguments, filter_arguments, refuse_unknown
from standards_mcp.contributions.base import common_fields
from standards_mcp.contributions.collection import Contributions, RegisteredFilter
from standards_mcp.contributions.results import Result
from standards_mcp.contributions.schemas import Schema, SchemaError
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.errors import ApiError, InvalidInputError
from standards_mcp.hookspecs import hookimpl
from standards_mcp.loading.records import PluginInfo, PluginKind
from standards_mcp.plugin import Filter, Health, PluginContext, PluginSettings, Tool, ToolResult
from standards_mcp.remote.plugin import RemotePlugin

from .calls import HEALTH, IsolatedCalls
from .contributions import isolated_prompt, isolated_resource
from .protocol import CONVERT, DESCRIBE, DESCRIPTION, FILTER

if TYPE_CHECKING:
    from standards_mcp.remote.stdio import ChildProcess
START_TIMEOUT: Final = 25.0
"""Seconds until its tools are known: those of a lifespan, of which it tells itself, and more."""


class IsolationSettings(PluginSettings):
    """How a plugin is run, and what the host hands over to it.

    Attributes:
        python: The interpreter that runs it.
        processes: How many processes it may have at a time.
        handover: What the child process must know, as JSON; it holds secrets.
    """

    python: str = sys.executable
    processes: int
    handover: dict[str, Any] = Field(repr=False)


def isolate(
    plugins: Iterable[PluginInfo], loaded: LoadedSettings, state_dir: Path
) -> list[PluginInfo]:
    """Return the plugins, isolated where the configuration says so, and those it adds."""
    found, settings = list(plugins), loaded.settings
    names = {info.name for info in found}
    found += [
        PluginInfo(name=name, load=_nothing, distribution=f"[plugins.{name}]", is_installed=False)
        for name, section in settings.plugins.items()
        if section.python and name not in names
    ]
    return [_isolated(info, loaded, state_dir) for info in found]


def _isolated(info: PluginInfo, loaded: LoadedSettings, state_dir: Path) -> PluginInfo:
    settings = loaded.settings
    section = settings.section(info.name)
    if not section.is_isolated:
        return info
    facts = {
        "required": section.required or settings.strict,
        "version": info.version,
        "layers": loaded.layers,
    }
    return replace(
        info,
        kind=PluginKind.ISOLATED,
        load=partial(type, "IsolatedPlugin", (IsolatedPlugin,), facts),
        settings=_isolation(info.name, section, settings, state_dir),
    )


def _nothing() -> object:
    return None


def _isolation(
    name: str, section: PluginSection, settings: Settings, state_dir: Path
) -> IsolationSettings:
    handover = {
        "name": name,
        "memory": section.memory_bytes,
        "settings": {
            "state_dir": str(state_dir),
            "catalog": revealed(settings.catalog),
            "plugins": {name: revealed(section.options)},
        },
    }
    return IsolationSettings(
        python=section.python or sys.executable,
        processes=section.processes,
        handover=handover,
    )


class IsolatedPlugin(RemotePlugin[IsolationSettings]):
    """A plugin in a child process.

    Attributes:
        layers: Where its settings come from, for naming problems in them.
    """

    settings_type = IsolationSettings
    layers: ClassVar[Layers] = Layers()
    is_eager = True
    version: ClassVar[str] = ""

    def __init__(self, settings: IsolationSettings, context: PluginContext) -> None:
        self._calls = IsolatedCalls(lambda: self.connection)
        identity = [settings.python, self.version, sorted(settings.handover["settings"]["plugins"])]
        super().__init__(settings, context, self._make_child, identity, START_TIMEOUT)

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Keep it running, and look after it. See `RemotePlugin.lifespan`."""
        async with super().lifespan():
            try:
                yield
            finally:
                self._calls.stop()

    def read(self, raw: Sequence[dict[str, Any]]) -> None:
        """Take over what the child process says that the plugin contributes.

        Raises:
            ApiError: The process runs another version of the host.
        """
        try:
            self._read(raw)
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise ApiError(
                f"the standards-mcp that {self.settings.python} has describes plugins in another "
                f"way ({describe_exception(exc)}); install the version there that runs here"
            ) from None

    def _read(self, raw: Sequence[dict[str, Any]]) -> None:
        nothing: dict[str, Any] = {}
        found = next((each for each in raw if each.get("name") == DESCRIBE), nothing)
        description: dict[str, Any] = found.get("_meta", {}).get(DESCRIPTION, {})
        told = description.get("problems", ())
        self.problems = tuple(Problem(tuple(path), *about) for path, *about in told)
        lines = "; ".join(each.line(self.layers) for each in self.problems)
        self.failure = lines or str(description.get("failure", ""))
        options = self.settings.handover["settings"]["plugins"][self.context.name]
        secret: list[str] = description.get("secret", [])
        self.secrets = long_texts([options[key] for key in secret if key in options])
        self.notice = str(description.get("notice", ""))
        self.instructions = str(description.get("instructions", ""))
        name, call = self.context.name, self._calls.call
        self.contributions = Contributions(
            tuple(map(self._tool, description.get("tools", ()))),
            tuple(isolated_prompt(name, each, call) for each in description.get("prompts", ())),
            tuple(isolated_resource(name, each, call) for each in description.get("resources", ())),
            tuple(
                RegisteredFilter(name, self._filter(each))
                for each in description.get("filters", ())
            ),
        )

    async def health(self) -> Health:
        """Return how the plugin says that it is."""
        if self.failure:
            return Health(status="failed", message=self.failure)
        answer = await self._calls.call(HEALTH, {})
        told = answer.structured or {}
        if told.get("status") == "ok" and self.notice:
            return Health(status="degraded", message=self.notice)
        message = str(told.get("message", answer.text))
        return Health(status=told.get("status", "failed"), message=message)

    def _tool(self, data: Mapping[str, Any]) -> RegisteredTool:
        tool = Tool(**data["tool"], function=partial(self._call, data["tool"]["name"]))
        schema: Schema = data["input_schema"]
        return RegisteredTool(
            **common_fields(self.context.name, tool, data["tool"]["description"]),
            tool=tool,
            arguments=IsolatedArguments(schema),
            result=Result(None, data["output_schema"], wrapped=False),
            context=CALL,
            extend=partial(_extended, schema),
        )

    def _filter(self, data: Mapping[str, Any]) -> Filter:
        name: str = data["name"]
        annotation: Any = Annotated[Any, WithJsonSchema(data["schema"])]

        async def convert(value: Any) -> Any:
            answer = await self._calls.call(CONVERT, {name: value})
            if answer.is_error:
                raise InvalidInputError(str((answer.structured or {}).get("message", answer.text)))
            return (answer.structured or {})["expression"]

        return Filter(
            name=name,
            annotation=annotation,
            description=data["description"],
            to_expression=cast("Any", convert),
        )

    async def _call(self, name: str, /, **arguments: Any) -> ToolResult:
        caller: HostContext = arguments.pop(CALL)
        return await self._calls.call(name, arguments, caller)

    def _make_child(self) -> ChildProcess:
        from standards_mcp.remote.stdio import ChildProcess, Command  # noqa: PLC0415  - imports the SDK

        settings = self.settings
        command = Command(
            program=settings.python,
            args=("-m", "standards_mcp.server.worker", self.context.name),
            env=dict(os.environ),
            first_line=json.dumps(settings.handover).encode() + b"\n",
            most_processes=settings.processes,
            # Which are secret, only the process knows.
            secrets=long_texts(settings.handover["settings"]["plugins"]),
        )
        return self._calls.watch(ChildProcess(self.context.name, command))


@dataclass(frozen=True, slots=True)
class IsolatedArguments:
    """Arguments that the child process checks; filters alone are the host's.

    Attributes:
        filters: The filters as arguments of their own; None for a tool that accepts none.
    """

    schema: Schema
    filters: Arguments | None = None

    async def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, with the filters combined. See `Arguments.validate`."""
        refuse_unknown(arguments, self.schema["properties"])
        if self.filters is None:
            return dict(arguments)
        names = self.filters.schema["properties"]
        given = {name: value for name, value in arguments.items() if name in names}
        rest = {name: value for name, value in arguments.items() if name not in names}
        expression = (await self.filters.validate(given))["filter"]
        return rest if expression is None else {**rest, FILTER: expression}


def _extended(schema: Schema, filters: tuple[Filter, ...]) -> Arguments:
    """Return the arguments of a tool that accepts filters.

    Raises:
        SchemaError: A filter has the name of one of its arguments.
    """
    own = schema["properties"]
    if clash := {item.name for item in filters} & own.keys():
        raise SchemaError(f"filter {min(clash)!r} has the name of one of its arguments")
    extra = filter_arguments(filters)
    return IsolatedArguments({**schema, "properties": {**own, **extra.schema["properties"]}}, extra)
