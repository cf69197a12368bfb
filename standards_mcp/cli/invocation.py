"""One run of the command line: its global options, and the host once a command needs it."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, Final

import anyio
import click

from standards_mcp._utils import full_disk
from standards_mcp._utils.installation import host_source
from standards_mcp._utils.logs import configure_logging
from standards_mcp._utils.secrets import looks_secret, mask
from standards_mcp._utils.streams import divert_stdout, own_stderr
from standards_mcp._utils.text import describe_exception, printable
from standards_mcp.commands import ServerCommand, print_text
from standards_mcp.config.layers import merged, nested, parse_toml, statement_keys, variable_name
from standards_mcp.config.loading import (
    LoadedSettings,
    Sources,
    find_config,
    user_config_file,
)
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.errors import ConfigError, StandardsMcpError, UnknownToolError
from standards_mcp.host import Host
from standards_mcp.plugin import ToolResult
from standards_mcp.start.launch import Launch

_SILENT: Final = logging.CRITICAL + 1

_REPORTERS: Final = ("standards_mcp.loading.manager", "standards_mcp.host")
"""The loggers of failed plugins and of warnings."""


@dataclass(eq=False)
class Invocation:
    """The global options and their host. Plugins' commands get this object as a `ToolCaller`."""

    config: Path | None = None
    pairs: tuple[str, ...] = ()
    profile: str | None = None
    verbosity: int = 0
    timing: Timing = DEFAULT_TIMING
    launch: Launch = field(default_factory=lambda: Launch(()))

    @cached_property
    def host(self) -> Host:
        """A host with nothing imported yet."""
        return Host(self.load_settings(), timing=self.timing)

    def load_settings(self) -> LoadedSettings:
        """Read the configuration again.

        Raises:
            ConfigError: The configuration is invalid.
        """
        return self.sources.load()

    @property
    def sources(self) -> Sources:
        """The sources of the configuration."""
        chosen = {"profile": self.profile} if self.profile else {}
        return Sources(self.config, parse_overrides(self.pairs) | chosen)

    @property
    def options(self) -> list[str]:
        """The options with which another process has the configuration of this one."""
        file = find_config(self.config)
        # The user's own file is found from every working directory, so it is not named.
        options = ["--config", str(file.resolve())] if file and file != user_config_file() else []
        options += ["--profile", self.profile] if self.profile else []
        return options + [part for pair in self.pairs for part in ("--set", pair)]

    @cached_property
    def loaded_host(self) -> Host:
        """The host with its plugins loaded."""
        self.host.load()
        return self.host

    @cached_property
    def listed_host(self) -> Host:
        """The host with all tools known. MCP servers with unknown tools are started for this."""

        async def list_tools(host: Host) -> None:
            async with host.running():
                await host.manager.wait_listed()

        if not all(source.is_known for source in self.loaded_host.manager.providers()):
            with divert_stdout():
                anyio.run(list_tools, self.loaded_host)
        return self.loaded_host

    @cached_property
    def _calls(self) -> tuple[asyncio.Runner, AsyncExitStack]:
        """One event loop for all calls of tools, and the plugins that run in it."""
        return asyncio.Runner(), AsyncExitStack()

    def close(self) -> None:
        """Stop the plugins that calls have started."""
        if "_calls" in vars(self):
            runner, running = self._calls
            with divert_stdout(), runner:
                runner.run(running.aclose())

    @property
    def own_names(self) -> list[str]:
        """The names of the commands that come with the host."""
        from . import own_names

        return own_names()

    @property
    def settings(self) -> Settings:
        """The settings of this run."""
        return self.host.settings

    def change_settings(
        self,
        values: Callable[[Settings], Mapping[tuple[str, ...], object]],
        *,
        check: Callable[[Settings], None],
        report: Callable[[str], None] = print_text,
    ) -> None:
        """Set keys of the configuration file. See `ServerCommands`."""
        from standards_mcp.config.edits import with_checked_values

        from .config_edits import edit_config

        edit = partial(with_checked_values, sources=self.sources, values=values, check=check)
        edit_config(self.sources, edit, report=report)

    def server_command(self, profile: str | None = None) -> ServerCommand:
        """Return the command that starts a server with this configuration. See `ServerCommands`."""
        if profile:
            return replace(self, profile=profile).server_command()
        variables = self._variables()
        self._refuse_secrets()
        return ServerCommand(this_program(), (*self.options,), variables)

    def _variables(self) -> dict[str, str]:
        """Return the variables that set a key, including the own variables of plugins."""
        # A failing plugin does not matter here, so it is not logged.
        self.configure_logging(silent=True)
        try:
            return self.loaded_host.layers.variables()
        except StandardsMcpError:  # the client will show it; the variables of the host are enough
            return self.host.layers.variables()
        finally:
            self.configure_logging()

    def _refuse_secrets(self) -> None:
        """Refuse a secret on the command line of the server, which every process can read."""
        secrets = self.secrets()
        for key, _, text in (pair.partition("=") for pair in self.pairs):
            path = keys_of(key)
            if any(map(looks_secret, path)) or mask(text, secrets) != text:
                raise click.UsageError(
                    f"--set {key}: other users can read the command line of the server, so do not "
                    f"put a secret there; use --env {variable_name(path)}=..."
                )

    def configure_logging(
        self, *, serving: bool = False, silent: bool = False, without: Collection[str] = ()
    ) -> None:
        """Log for people, for programs if *serving*, or not at all if *silent*."""
        level = logging.INFO if serving else logging.WARNING
        configure_logging(
            _SILENT if silent else max(logging.DEBUG, level - 10 * self.verbosity),
            self.secrets,
            plain=not serving,
            tracebacks=self.verbosity > 1,
            stream=own_stderr() if serving else None,
            without=without,
        )

    def mute_failures(self, *, warnings: bool = True) -> None:
        """Do not log failed plugins and *warnings*, because the command reports them itself."""
        if not self.verbosity:
            self.configure_logging(without=_REPORTERS if warnings else _REPORTERS[:1])

    def secrets(self) -> frozenset[str]:
        """Return the secrets that are known so far."""
        return self.host.secrets() if "host" in vars(self) else frozenset()

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool in the same way as for a client.

        Raises:
            click.UsageError: The tool is unknown.
        """
        host, (runner, running) = self._host_for(name), self._calls

        async def call() -> ToolResult:
            # A command does not wait for the lifespan of an unrelated plugin.
            await running.enter_async_context(host.running(host.plugins_behind(name)))
            return await host.call_tool(name, arguments)

        try:
            with divert_stdout():
                return runner.run(call())
        except UnknownToolError as exc:
            raise click.UsageError(f"{exc} (`standards-mcp tools` lists them)") from None

    def _host_for(self, tool: str) -> Host:
        """Return the host with the plugins loaded that a call of *tool* needs.

        A snapshot of an earlier start has their names; without it, all plugins are loaded.
        """
        plugins = None if "loaded_host" in vars(self) else self.launch.plugins_behind(tool)
        records = self.host.manager.records
        if plugins is not None and records.keys() >= set(plugins):
            self.host.load(only=plugins)
            if self.host.visible().find(tool) and all(records[name].plugin for name in plugins):
                return self.host
        host = self.loaded_host
        if plugins is None:
            from standards_mcp.snapshot_writing import store_tools

            store_tools(host, self.launch, self.sources)
        return host


class _Failure(click.ClickException):
    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(printable(self.message), file=file, err=True)


class _ConfigFailure(_Failure):
    exit_code = 2


def as_click_error(cause: Exception, ctx: click.Context) -> click.ClickException:
    """Return the error that click prints: one line, and with ``-vv`` the traceback above it.

    The exit code is 2 for an invalid configuration, else 1.
    """
    invocation = ctx.ensure_object(Invocation)
    line = str(cause)
    if not isinstance(cause, StandardsMcpError):
        reason = f"{describe_exception(cause)}; for more, put -vv before the command"
        if full_disk.is_full(cause):
            reason = full_disk.MESSAGE
        line = f"{ctx.invoked_subcommand} failed: {reason}"
    above = traceback.format_exception(cause) if invocation.verbosity > 1 else ()
    message = mask("".join([*above, f"standards-mcp: {line}"]), invocation.secrets())
    return (_ConfigFailure if isinstance(cause, ConfigError) else _Failure)(message)


def this_program() -> tuple[str, ...]:
    """Return the absolute command that starts this installation.

    Raises:
        click.ClickException: The installation is in a cache that may be emptied at any time.
    """
    interpreter = Path(sys.executable)
    if "archive-v0" in interpreter.parts:  # the cache of uvx
        install = shlex.join(("uv", "tool", "install", host_source()))
        raise click.ClickException(
            "standards-mcp runs from uv's cache, which may be emptied at any time; install it with "
            f"`{install}` and run it from there"
        )
    script = interpreter.with_name("standards-mcp" + interpreter.suffix)
    if script.exists():
        return (str(script),)
    return (str(interpreter), "-m", "standards_mcp")


def parse_overrides(pairs: Iterable[str]) -> dict[str, Any]:
    """Return settings such as ``a.b=1`` as nested values; a value that is not TOML is text.

    Raises:
        click.UsageError: A pair has no key or no ``=``.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        path, equals, text = pair.partition("=")
        keys = keys_of(path)
        if not equals or not all(keys):
            raise click.UsageError(f"--set {pair}: write KEY=VALUE, for example tools.timeout=10")
        values = merged(values, nested(keys, _toml_value(text)))
    return values


def keys_of(path: str) -> list[str]:
    """Return the keys of a path such as ``tools.overrides."a.b".timeout``."""
    with suppress(ValueError, RecursionError):  # not a TOML key; validation reports it
        if keys := statement_keys(parse_toml(f"{path} = 0")):
            return [*keys]
    return path.strip().split(".")


def _toml_value(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        return text
