"""Plugins that run in processes of their own, seen from the host.

The host does not import such a plugin: a child process does (`server.isolated`), and is spoken to
over its stdin and stdout. What it contributes looks as if it were local.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, ValidationError

from standards_mcp._utils.environment import basic_environment
from standards_mcp._utils.secrets import long_texts, revealed
from standards_mcp.config.layers import DOT_ENV, ENVIRONMENT, Layers
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Expansion, HiddenText
from standards_mcp.config.models.tools import Kind
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.contributions.collection import Contributions
from standards_mcp.errors import ApiError
from standards_mcp.hookspecs import hookimpl
from standards_mcp.loading.records import PluginInfo, PluginKind
from standards_mcp.plugin import Health, PluginContext, PluginSettings
from standards_mcp.remote.errors import StartAgainError, why_not_valid
from standards_mcp.remote.plugin import RemotePlugin, expanded

from .calls import IsolatedCalls
from .contributions import isolated_prompt, isolated_resource, isolated_tool
from .protocol import CheckHealth, Describe, Description, HealthReport, HostHook, WorkerConfig

if TYPE_CHECKING:
    from standards_mcp.remote.session import OpenSession
    from standards_mcp.remote.transports.stdio import StdioTransport

_TITLES: Final[Mapping[HostHook, str]] = {
    "register_commands": "commands",
    "register_filters": "filters",
    "register_routes": "routes",
    "wrap_tool_call": "wrap_tool_call",
}
_REPORT_SECONDS: Final = 5.0
"""How much longer its tools may take than its lifespan: the process tells of a slow one itself."""


class IsolationSettings(PluginSettings):
    """How a plugin is run.

    Attributes:
        python: The interpreter that runs it.
        processes: How many processes it may have at a time.
        env: Variables for its environment, as the configuration has them.
        worker: What the process must know; it holds secrets.
    """

    python: str = sys.executable
    processes: int
    env: dict[str, HiddenText]
    worker: WorkerConfig = Field(repr=False)

    @property
    def options(self) -> Mapping[str, Any]:
        """The plugin's table."""
        table: Mapping[str, Any] = self.worker.settings["plugins"][self.worker.name]
        return table


def isolate(
    plugins: Iterable[PluginInfo],
    loaded: LoadedSettings,
    state_dir: Path,
    timing: Timing = DEFAULT_TIMING,
) -> list[PluginInfo]:
    """Return the plugins, isolated where the configuration says so, and those it adds.

    A plugin that is isolated already stays as it is.
    """
    found, settings = list(plugins), loaded.settings
    names = {info.name for info in found}
    found += [
        PluginInfo(
            name=name, load=lambda: None, distribution=f"[plugins.{name}]", is_installed=False
        )
        for name, section in settings.plugins.items()
        if section.python and name not in names
    ]
    own = [info.name for info in found if info.is_own]
    return [_isolated(info, loaded, state_dir, timing, own) for info in found]


def _isolated(
    info: PluginInfo,
    loaded: LoadedSettings,
    state_dir: Path,
    timing: Timing,
    own: Iterable[str],
) -> PluginInfo:
    name, settings = info.name, loaded.settings
    section = settings.section(name)
    if not section.is_isolated or info.kind is PluginKind.ISOLATED:
        return info
    facts = {
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
    return replace(
        info,
        kind=PluginKind.ISOLATED,
        load=partial(type, "IsolatedPlugin", (IsolatedPlugin,), facts),
        settings=isolation,
    )


def worker_config(
    name: str,
    loaded: LoadedSettings,
    state_dir: Path,
    timing: Timing,
    plugins: Iterable[str],
) -> WorkerConfig:
    """Return what a process must know that runs a plugin, without variables.

    Args:
        plugins: The plugins that come with the host, which may provide services to it.
    """
    settings = loaded.settings
    tables = {name: settings.section(name).options}
    # Which services it needs, only the process finds out; it opens its own of each.
    for other in {*plugins, *settings.services.values()} - {name}:
        section = settings.section(other)
        if section.enabled is not False and not section.is_isolated:
            tables[other] = section.options
    return WorkerConfig(
        name=name,
        memory=settings.section(name).memory_bytes,
        settings={
            "state_dir": str(state_dir),
            "services": dict(settings.services),
            "plugins": {each: revealed(options) for each, options in tables.items()},
        },
        folders={each: _folders(loaded.layers, each, tables[each]) for each in tables},
        timing=timing,
    )


def _folders(layers: Layers, name: str, options: Iterable[str]) -> dict[str, str]:
    """Return where relative paths start, by the plugin's keys: only its model knows which are."""
    found = {key: layers.source(("plugins", name, key)) for key in options}
    return {key: str(layer.folder) for key, layer in found.items() if layer}


def other_variables(layers: Layers, source: str) -> dict[str, str]:
    """Return the variables of a source, by their names in capitals, that are not the host's."""
    found = [layer.others for layer in layers.ordered if layer.name == source]
    return dict(found[0]) if found else {}


def in_process(name: str) -> str:
    """Return what to do to load a plugin in the host's process."""
    return f"load it in the host's process: take isolate and python out of [plugins.{name}]"


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
        self._calls = IsolatedCalls(lambda: self.connection, self.timing)
        self._declared = frozenset[str]()
        expansion, table = Expansion(), ("plugins", context.name, "env")
        self._env = {
            name: expanded(expansion, value, *table, name) for name, value in settings.env.items()
        }
        self._env_secrets = frozenset(expansion.secrets)
        identity = [settings.python, self.version, [context.name]]
        super().__init__(settings, context, identity, self.timing.start + _REPORT_SECONDS)

    @hookimpl
    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Keep it running, and look after it. See `RemotePlugin.lifespan`."""
        async with super().lifespan():
            try:
                yield
            finally:
                self._calls.stop()

    async def fetch(self, session: OpenSession, kinds: Collection[Kind]) -> dict[str, Any]:
        """Ask the process what the plugin contributes. See `RemotePlugin.fetch`.

        Raises:
            ApiError: The process runs another version of the host.
        """
        del kinds  # one answer describes them all
        from mcp import MCPError  # noqa: PLC0415  - imported with the session
        from mcp_types import METHOD_NOT_FOUND  # noqa: PLC0415  - as above

        try:
            answer = await session.request(Describe.method)
        except MCPError as exc:
            if exc.code == METHOD_NOT_FOUND:
                raise self._other_version(exc.message) from None
            raise
        told = self._description(answer.get("value"))
        declared = self._declared.union(told.variables)
        if self._given(declared) != self._given(self._declared):
            self._declared = declared
            raise StartAgainError  # it has read its settings without them
        return told.model_dump(mode="json")

    def read(self, listing: Mapping[str, Any]) -> None:
        """Take over what the process says that the plugin contributes. See `RemotePlugin.read`."""
        told, name, calls = self._description(listing), self.context.name, self._calls
        self.problems = told.problems
        lines = "; ".join(each.line(self.layers) for each in told.problems)
        self.failure = lines or told.failure
        self._ineffective = told.ineffective
        self.title, self.instructions = told.title, told.instructions
        self._declared = self._declared.union(told.variables)
        options = self.settings.options
        named = [text for given in self._given(told.secret_variables) for text in given.values()]
        self.secrets = self._env_secrets | long_texts(
            [options[key] for key in told.secret if key in options] + named
        )
        self.contributions = Contributions(
            tuple(isolated_tool(name, each, calls) for each in told.tools),
            tuple(isolated_prompt(name, each, calls) for each in told.prompts),
            tuple(isolated_resource(name, each, calls) for each in told.resources),
        )

    @property
    def notice(self) -> str:
        """The parts of the plugin that need the host's process. See `Provider`."""
        if not self._ineffective:
            return ""
        parts = ", ".join(_TITLES[hook] for hook in self._ineffective)
        why = f"these parts have no effect because the plugin is isolated: {parts}"
        return f"{why}; to use them, {in_process(self.context.name)}"

    def _description(self, listing: object) -> Description:
        try:
            return Description.model_validate(listing)
        except ValidationError as exc:
            raise self._other_version(why_not_valid(exc)) from None

    def _other_version(self, reason: str) -> ApiError:
        return ApiError(
            f"the standards-mcp that {self.settings.python} has describes plugins in another way "
            f"({reason}); install the version there that runs here"
        )

    async def health(self) -> Health:
        """Return how the plugin says that it is."""
        if self.failure:
            return Health(status="failed", message=self.failure)
        report: HealthReport = await self._calls.request(CheckHealth())
        health = report.health
        # Commands are refused when they are asked for. The rest is missing in silence.
        if health.status == "failed" or not {*self._ineffective} - {"register_commands"}:
            return health
        message = f"{health.message}; {self.notice}" if health.message else self.notice
        return Health(status="degraded", message=message)

    def _given(self, names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the variables with these names: those of the environment, and of ``.env``."""
        known = {name.upper() for name in names}
        environment, dot_env = (
            {name: text for name, text in variables.items() if name in known}
            for variables in (
                other_variables(self.layers, ENVIRONMENT),
                other_variables(self.layers, DOT_ENV),
            )
        )
        return environment, dot_env

    def connect(self) -> StdioTransport:
        """Return a new process. See `RemotePlugin.connect`."""
        from standards_mcp.remote.transports.processes import new_mark  # noqa: PLC0415  - not at every start
        from standards_mcp.remote.transports.stdio import Command, StdioTransport  # noqa: PLC0415  - imports the SDK

        settings, mark = self.settings, new_mark()
        environment, dot_env = self._given(self._declared)
        worker = self.settings.worker.model_copy(update={"variables": dot_env})
        command = Command(
            program=settings.python,
            args=("-m", "standards_mcp.server.isolated.process", self.context.name),
            env={**basic_environment(), **environment, **self._env, **mark},
            first_line=worker.model_dump_json().encode() + b"\n",
            most_processes=settings.processes,
            mark=mark,
            # Only the process knows which of them are secret.
            secrets=long_texts(settings.options),
        )
        return self._calls.watch(StdioTransport(self.context.name, command))
