"""The process of an isolated plugin: its configuration, its requests, and its end if it hangs.

Calls are MCP requests. The private request `STATUS` and private keys of ``_meta`` carry data for
which MCP has no field. The host and the process (`server.isolated`) share the models of this
module. If data do not fit a model, the process runs another version of the host.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio
from pydantic import BaseModel, ConfigDict, ValidationError

from standards_mcp._utils.secrets import revealed
from standards_mcp.calls.context import HostContext
from standards_mcp.config.layers import DOT_ENV, Layers
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.problems import Problem
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.errors import (
    ApiError,
    CrashedError,
    InvalidInputError,
    NotFoundError,
    TimedOutError,
    ToolError,
)
from standards_mcp.plugin import Health

from .definitions import RefusedError, why_not_valid
from .processes import describe_code, kill_tree

if TYPE_CHECKING:
    from .connection import Connection
    from .transports import StdioTransport

MODULE: Final = "standards_mcp.server.isolated"
"""The module that the process runs with ``python -m``."""
STATUS: Final = "standards-mcp/status"
"""The method of the private request; its parameters are a `StatusRequest`."""
CALLER: Final = "standards-mcp/caller"
"""In the ``_meta`` of a request: the name of the caller."""
FILTER: Final = "standards-mcp/filter"
"""In the ``_meta`` of a tool call: the expression that the host made of the filter arguments."""
TOOLS: Final = "standards-mcp/tools"
"""In the ``_meta`` of ``prompts/get``: the published names of tools, by their declared names."""
LOG_FIELDS: Final = "standards-mcp/log-fields"
"""In the ``_meta`` of a result: the plugin's fields for the host's log line of the call."""
TRIAL_PASSED: Final = 79
"""The exit code of a passed trial. A plugin that ends the process causes another, such as 0."""

HostHook: TypeAlias = Literal[
    "register_commands", "register_filters", "register_routes", "wrap_tool_call"
]
"""A hook that needs the host's process, so that it has no effect in an isolated plugin."""
_ERRORS: Final = {
    error.error_type: error
    for error in (ApiError, CrashedError, InvalidInputError, NotFoundError, TimedOutError)
}


class WorkerConfig(BaseModel):
    """The first line on the stdin of the process. It holds secrets.

    Attributes:
        memory: The memory limit of the process, in bytes.
        settings: The host's settings that concern this plugin, and the tables of plugins that may
            provide services to it.
        folders: The base folders of relative paths, by plugin and key.
        variables: The variables from ``.env`` that set keys of the plugin.
        timing: The host's timing.
        trial: In a trial, the phase in which an earlier start ended. The process exits with
            `TRIAL_PASSED` once the plugin has passed this phase.
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
        declared: The other data fields of its class, as its author set them.
        completers: The arguments or variables with completion.
        output_schema: The schema of a tool's results.
    """

    name: str
    title: str | None
    description: str
    declared: dict[str, Any]
    input_schema: dict[str, Any]
    completers: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None


class DescribedSkill(BaseModel):
    """A skill: the bytes of its files by their paths, so that the host answers all reads."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    needs: tuple[str, ...]
    contents: dict[str, bytes]


class Description(BaseModel):
    """The contributions of a plugin, or the reason why it failed.

    Attributes:
        failure: The reason why the plugin failed, or an empty string.
        problems: The mistakes in its settings that made it fail.
        variables: The environment variables that its settings declare with `Variable`.
        secret: The keys of its table whose values are secrets.
        secret_variables: The variables that set keys with secret values.
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
    skills: tuple[DescribedSkill, ...] = ()


class StatusRequest(BaseModel):
    """The parameters of `STATUS`.

    Attributes:
        describe: True to get the description.
        health: True to run the health check of the plugin.
    """

    describe: bool = False
    health: bool = False


class Status(BaseModel):
    """The answer to `STATUS`.

    Attributes:
        stuck_seconds: Seconds that a function has run on after its call was cancelled, or 0.
    """

    description: Description | None = None
    health: Health | None = None
    stuck_seconds: float


class WorkerCalls:
    """Sends requests to the process, and ends it if it is stuck after a cancelled call.

    A process with a blocked event loop no longer answers. If a plain function never returns, the
    process still answers, but the function occupies a thread and perhaps a core, and only the end
    of the process frees them.

    Args:
        connection: Returns the connection to the process, or raises `ApiError`.
    """

    def __init__(self, connection: Callable[[], Connection], timing: Timing) -> None:
        self._connection = connection
        self._timing = timing
        self._process: StdioTransport | None = None
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._may_begin = asyncio.Event()
        self._may_begin.set()
        self._checks: set[asyncio.Task[None]] = set()

    def watch(self, process: StdioTransport) -> StdioTransport:
        """Note the process that receives the calls from now on, and return it."""
        self._process = process
        return process

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: HostContext | None = None,
        meta: Mapping[str, Any] | None = None,
        /,
    ) -> dict[str, Any]:
        """Return the result of a request. See `Connection.ask`.

        Raises:
            InputRequiredError: The caller's client must ask its user, and send the request again.
            ToolError: The plugin refused the request or failed, or there was no answer.
        """
        await self._may_begin.wait()
        self._in_flight += 1
        self._idle.clear()
        # The process needs the caller, for its cached answers and its rate limits.
        meta = {**(meta or {}), CALLER: caller.caller} if caller else meta
        try:
            return await self._connection().ask(method, params, caller, meta)
        except RefusedError as exc:
            if not exc.refused_type:
                raise
            data = {key: exc.error_data.get(key) for key in ("retry_after", "status", "details")}
            raise _ERRORS.get(exc.refused_type, ToolError)(exc.reason, **data) from None
        except asyncio.CancelledError:
            if self._process:
                check = asyncio.create_task(self._check_stuck(self._process))
                self._checks.add(check)
                check.add_done_callback(self._checks.discard)
            raise
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def health(self) -> Health:
        """Return the health that the plugin reports.

        Raises:
            ToolError: There was no answer, or the answer does not fit the model.
        """
        raw = await self.ask(STATUS, StatusRequest(health=True).model_dump())
        try:
            return Status.model_validate(raw).health or Health(status="ok")
        except ValidationError as exc:
            message = f"the health of an isolated plugin is not valid: {why_not_valid(exc)}"
            raise ApiError(message) from None

    async def _check_stuck(self, process: StdioTransport) -> None:
        """End a process that does not answer, or still runs the function of a cancelled call."""
        await self._stuck_seconds(process)
        await anyio.sleep(self._timing.stuck)
        # Half of the limit, because the process learns of the cancellation a little later.
        while await self._stuck_seconds(process) > self._timing.stuck / 2:
            if self._may_begin.is_set():
                await self._end_between_calls(process)
            await anyio.sleep(self._timing.stuck)

    async def _end_between_calls(self, process: StdioTransport) -> None:
        """End a process once no call runs; new calls wait, so that this happens under load, too."""
        self._may_begin.clear()
        try:
            with anyio.move_on_after(self._timing.drain):
                await self._idle.wait()
            if not self._in_flight and await self._stuck_seconds(process):
                process.kill("it was ended: a function went on after its call was given up")
                await self._connection().reset_backoff()
        finally:
            self._may_begin.set()

    async def _stuck_seconds(self, process: StdioTransport) -> float:
        """Return how long a function has run on; end a process that does not answer."""
        if process is not self._process or not process.is_running:
            return 0.0
        try:
            with anyio.fail_after(self._timing.stuck):
                raw = await self._connection().ask(STATUS, StatusRequest().model_dump())
                return Status.model_validate(raw).stuck_seconds
        except TimeoutError:
            process.kill(f"it was ended: it did not answer within {self._timing.stuck:g} s")
        except (ToolError, ValidationError):
            pass  # the process has ended by itself
        return 0.0


def worker_config(
    name: str,
    loaded: LoadedSettings,
    state_dir: Path,
    timing: Timing,
    own_plugins: Iterable[str],
) -> WorkerConfig:
    """Return the configuration of a plugin's process, without variables.

    Args:
        own_plugins: The plugins that come with the host, as possible providers of services.
    """
    settings = loaded.settings
    tables = {name: settings.section(name).options}
    # Only the process knows which services the plugin needs, and opens them itself.
    for other in {*own_plugins, *settings.services.values()} - {name}:
        section = settings.section(other)
        if section.enabled is not False and not section.is_isolated:
            tables[other] = section.options
    return WorkerConfig(
        name=name,
        memory=settings.section(name).memory_bytes,
        settings={
            "state_dir": str(state_dir),
            "services": dict(settings.services),
            "plugins": {plugin: revealed(options) for plugin, options in tables.items()},
        },
        folders={plugin: _folders(loaded.layers, plugin, tables[plugin]) for plugin in tables},
        timing=timing,
    )


def _folders(layers: Layers, name: str, options: Iterable[str]) -> dict[str, str]:
    """Return a base folder for each key, because only the model knows which values are paths."""
    sources = {key: layers.source(("plugins", name, key)) for key in options}
    return {key: str(layer.folder) for key, layer in sources.items() if layer}


def other_variables(layers: Layers, source: str) -> dict[str, str]:
    """Return a source's variables that do not set keys of the host, by uppercase name."""
    variables = [layer.others for layer in layers.ordered if layer.name == source]
    return dict(variables[0]) if variables else {}


def try_apart(worker: WorkerConfig, phase: str, loaded: LoadedSettings) -> str:
    """Try a plugin in a separate process before the host loads it.

    The process has the rights and the environment variables of the current process.

    Returns:
        How the plugin ended or hung the process; empty if the trial passed.
    """
    variables = other_variables(loaded.layers, DOT_ENV)
    changes = {"memory": None, "variables": variables, "trial": phase}
    config, timing = worker.model_copy(update=changes), worker.timing
    process = subprocess.Popen(  # noqa: S603  - our own program
        [sys.executable, "-P", "-m", MODULE, worker.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin  # noqa: S101  - it is a pipe
    try:
        with suppress(OSError):  # the process has ended already
            process.stdin.write(config.model_dump_json().encode() + b"\n")
            process.stdin.flush()  # not closed: its end would mean that the host has ended
        code = process.wait(timing.trial)
    except subprocess.TimeoutExpired:
        return f"it was not done after {timing.trial:g} s"
    finally:
        kill_tree(process)
        process.wait()
        with suppress(OSError):
            process.stdin.close()
    # The exit code is a special one, because a plugin may exit with 0.
    return "" if code == TRIAL_PASSED else describe_code(code)
