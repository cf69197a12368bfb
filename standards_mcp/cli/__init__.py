"""The command line. A command's module is imported only when that command is run."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, cast

import click
from click.shell_completion import CompletionItem

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp._utils.streams import fill_closed_streams, flush_or_drop
from standards_mcp._utils.text import did_you_mean
from standards_mcp.config.timing import DEFAULT_TIMING, Timing
from standards_mcp.errors import StandardsMcpError
from standards_mcp.start.launch import Launch

if TYPE_CHECKING:
    from .invocation import Invocation

INTERRUPTED: Final = 130
COMMANDS: Final = {
    "call": "tools:call",
    "config": "config:config",
    "doctor": "doctor:doctor",
    "plugins": "plugins:plugins",
    "prompts": "tools:prompts",
    "resources": "tools:resources",
    "serve": "serve:serve",
    "servers": "servers:servers",
    "skills": "tools:skills",
    "tools": "tools:tools",
}

# Needed before all commands are saved: the commands of these packages have other names.
_COMMAND_OWNERS: Final = {"audit": "service", "auth": "service", "data": "catalog"}
_MAX_HELP_WIDTH: Final = 200
_NO_HELP: Final = "Commands of this plugin."


def own_names() -> list[str]:
    """Return the names of the program's own commands, not of plugins' commands."""
    return [*COMMANDS, *own_entry_points("standards_mcp.commands")]


class OpenGroup(click.Group):
    """A group of commands, with those of other packages in the host's wheel."""

    @property
    def _others(self) -> dict[str, Any]:
        return own_entry_points(f"standards_mcp.commands.{self.name}")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in order."""
        return sorted({*super().list_commands(ctx), *self._others})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of either kind."""
        point = self._others.get(cmd_name)
        return point.load() if point else super().get_command(ctx, cmd_name)


class Process(NamedTuple):
    """One run of the program."""

    timing: Timing
    launch: Launch


class _Commands(click.Group):
    """The host's own commands, then the commands of plugins under the plugins' names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        params, process = ctx.params, _process(ctx)
        if not ctx.resilient_parsing:  # that is completion by the shell
            from .invocation import Invocation, parse_overrides

            parse_overrides(params["overrides"])  # checked now, to raise a usage error
            ctx.obj = Invocation(
                config=params["config"],
                pairs=params["overrides"],
                profile=params["profile"],
                verbosity=params["verbose"],
                timing=process.timing,
                launch=process.launch,
            )
            ctx.obj.configure_logging()
            ctx.call_on_close(ctx.obj.close)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as exc:
            from .invocation import as_click_error

            raise as_click_error(exc, ctx) from exc

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_saved_helps(ctx) or self._load_helps(ctx))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete[:1] == "-":
            return super().shell_complete(ctx, incomplete)
        texts = _saved_helps(ctx) or self._load_helps(ctx)
        return [
            CompletionItem(name, help=text)
            for name, text in sorted(texts.items())
            if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        texts = _saved_helps(ctx)
        if texts is None:
            _invocation(ctx).configure_logging(silent=True)
            texts = self._load_helps(ctx)
        room = formatter.width - 6 - max(map(len, texts))
        with formatter.section("Commands"):
            rows = [(name, _shortened(text, room)) for name, text in sorted(texts.items())]
            formatter.write_dl(rows)

    def _load_helps(self, ctx: click.Context) -> dict[str, str]:
        """Load all plugins, and return the help of each command in one line."""
        own = {name: cast("click.Command", self.get_command(ctx, name)) for name in own_names()}
        try:
            contributed = _plugin_commands(ctx, own)
        except StandardsMcpError:
            contributed = {}  # help and completion must work even if the configuration is invalid
        return {name: _short_help(command) for name, command in {**contributed, **own}.items()}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            # click suggests loaded commands only.
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"{exc.message.rstrip('.')}{hint}", ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if ctx.resilient_parsing:
            _invocation(ctx)  # the arguments of the command are completed with it
        if target := COMMANDS.get(cmd_name):
            module, _, name = target.partition(":")
            return cast(
                "click.Command",
                getattr(importlib.import_module(f"standards_mcp.cli.{module}"), name),
            )
        if point := own_entry_points("standards_mcp.commands").get(cmd_name):
            return cast("click.Command", point.load())
        try:
            command = _plugin_command(ctx, cmd_name)
        except StandardsMcpError:
            if ctx.resilient_parsing:
                return None
            raise
        if command or ctx.resilient_parsing:
            return command
        if reason := _reason_for_no_command(cmd_name, ctx):
            raise click.ClickException(reason)
        return None


def _process(ctx: click.Context) -> Process:
    """Return the process of a command, before and after the global options are parsed."""
    if ctx.obj is None:
        return Process(DEFAULT_TIMING, Launch(()))
    return Process(ctx.obj.timing, ctx.obj.launch)


def _invocation(ctx: click.Context) -> Invocation:
    """Return the invocation; for help and completion, make one from the unparsed options."""
    from .invocation import Invocation

    if not isinstance(ctx.obj, Invocation):
        process = _process(ctx)
        values = dict(process.launch.options)
        config = ctx.params.get("config") or values.get("--config")
        pairs = tuple(value for name, value in process.launch.options if name == "--set")
        file = Path(config) if config else None
        ctx.obj = Invocation(file, pairs, values.get("--profile"), 0, *process)
        if ctx.resilient_parsing:
            ctx.obj.configure_logging(silent=True)
    return ctx.obj


def _saved_helps(ctx: click.Context) -> dict[str, str] | None:
    """Return the help of each command in one line, or None without a valid snapshot."""
    # A shell completes words that are not arguments of this process.
    if ctx.resilient_parsing and ctx.params.get("config"):
        return None
    saved = _process(ctx).launch.commands()
    return None if saved is None else {name: text for name, (_, text) in saved.items()}


def _owner_of(name: str, ctx: click.Context) -> str | None:
    """Return the plugin of a command, by default the one with its name, or None."""
    saved = {key: plugin for key, (plugin, _) in (_process(ctx).launch.commands() or {}).items()}
    plugin = (_COMMAND_OWNERS | saved).get(name, name)
    return plugin if plugin in _invocation(ctx).host.manager.records else None


def _reason_for_no_command(name: str, ctx: click.Context) -> str:
    """Return why the plugin *name* has no command, or "" for an unknown plugin."""
    from standards_mcp._utils.installation import HOST, install_command, own_plugins
    from standards_mcp.loading.records import PluginKind, Status

    invocation = _invocation(ctx)
    name = _owner_of(name, ctx) or _COMMAND_OWNERS.get(name, name)
    record = invocation.host.manager.records.get(name)
    if record is None:
        package = f"{HOST}-{name}"
        command = install_command(package) if name in own_plugins() else ""
        return f"{package} is not installed; run `{command}`" if command else ""
    if record.info.kind is PluginKind.ISOLATED and record.status is not Status.DISABLED:
        from standards_mcp.remote.isolated import in_process

        fix = in_process(name)
        if invocation.host.settings.section(name).python is None:
            once = f"standards-mcp --set plugins.{name}.isolate=false {name} ..."
            fix = f"{fix}, or do so for one run: `{once}`"
        return f"plugin {name!r} is isolated, so its commands cannot run; {fix}"
    if not record.reason:
        return f"plugin {name!r} has no commands"
    if record.status is Status.FAILED:  # the log has the reason
        return f"plugin {name!r} failed, so it has no commands"
    return f"plugin {name!r} is {record.status}: {record.reason}"


def _plugin_command(ctx: click.Context, name: str) -> click.Command | None:
    """Return a command of a plugin, and import only that plugin if it is known.

    All other plugins are loaded if the command calls a tool.
    """
    if owner := _owner_of(name, ctx):
        host = _invocation(ctx).host
        host.load(only=(owner,))  # loads the providers of its services, too
        commands = host.manager.commands(own_names(), (owner,))
        if name in commands or host.manager.records[owner].reason:
            return commands.get(name)
    return _plugin_commands(ctx).get(name)


def _plugin_commands(
    ctx: click.Context, own: Mapping[str, click.Command] | None = None
) -> dict[str, click.Command]:
    """Import all plugins, and return the commands that they contribute.

    Args:
        own: The host's own commands, to save all commands for the next start.
    """
    invocation = _invocation(ctx)
    host = invocation.loaded_host
    commands = host.manager.commands(own_names())
    if own is not None and not ctx.resilient_parsing:
        from standards_mcp.snapshot_writing import store_commands

        owners = {record.command: name for name, record in host.manager.records.items()}
        saved = {
            name: (owners.get(name, ""), _short_help(command))
            for name, command in {**commands, **own}.items()
        }
        store_commands(host, invocation.launch, invocation.sources, saved)
    return commands


def _short_help(command: click.Command) -> str:
    """Return the help of a command in one line."""
    return command.get_short_help_str(_MAX_HELP_WIDTH) or _NO_HELP


def _shortened(text: str, room: int) -> str:
    return click.Command(None, help=text).get_short_help_str(room)


_EPILOG: Final = """
\b
Exit codes:
  0    found or done
  1    nothing found, or failed
  2    bad usage, input or configuration
  130  interrupted

Lists exit with 0 even if they show plugins that failed. `config check`,
`plugins check` and `doctor` exit with 1 if a plugin failed.

\b
Examples:
  standards-mcp search "telling time to the minute" --grade 3
  standards-mcp lookup 3.NF.A.1
  standards-mcp --config school.toml serve
  standards-mcp install claude-desktop
"""


@click.group(cls=_Commands, invoke_without_command=True, epilog=_EPILOG)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Configuration file; by default it is looked for in the usual places.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key, for example tools.read_only=true. May be repeated.",
)
@click.option("--profile", metavar="NAME", help="Use [profiles.NAME] of the configuration.")
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="Log more to stderr: -v the steps, -vv everything, with tracebacks.",
)
@click.version_option(package_name="standards-mcp", prog_name="standards-mcp")
@click.pass_context
def cli(ctx: click.Context, /, **options: Any) -> None:
    """Serve the tools, prompts, resources and skills of plugins by the Model Context Protocol.

    Without a command, it serves MCP over stdio like `serve`.
    """
    del options  # `_Commands` has read them: commands are looked up before this runs
    if ctx.invoked_subcommand not in (None, "serve"):
        gc.enable()
    if ctx.invoked_subcommand is None:
        from .serve import serve

        ctx.invoke(serve)


def main(timing: Timing = DEFAULT_TIMING, launch: Launch | None = None) -> NoReturn:
    """Run the command line and end the process."""
    fill_closed_streams()
    code = _exit_code(timing, launch)
    logging.shutdown()
    if (failure := flush_or_drop()) and not code:
        code = _report_write_error(failure)
    stuck = [t for t in threading.enumerate() if not t.daemon and t is not threading.main_thread()]
    if stuck:
        # A tool that overran its deadline still runs in its thread. Python would wait for it.
        os._exit(code)
    sys.exit(code)


def _exit_code(timing: Timing, launch: Launch | None) -> int:
    """Run the command line; return its exit code, 1 if the output cannot be written."""
    if sys.stdout is None:
        click.echo("standards-mcp: stdout is closed, so there is nowhere to write to", err=True)
        return 1
    try:
        return run(timing=timing, launch=launch)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit:  # from click, if the output was closed by its reader
        return 1
    except OSError as exc:
        return _report_write_error(exc)


def _report_write_error(failure: OSError) -> int:
    from standards_mcp._utils.full_disk import reason_of

    if not isinstance(failure, BrokenPipeError):
        subject = failure.filename or "the output cannot be written"
        click.echo(f"standards-mcp: {subject}: {reason_of(failure)}", err=True)
    return 1


def run(
    arguments: Sequence[str] | None = None,
    timing: Timing = DEFAULT_TIMING,
    launch: Launch | None = None,
) -> int:
    """Run the command line on *arguments*, by default the arguments of the process.

    Returns:
        The exit code: 0 found or done, 1 nothing found or failed, 2 bad usage, input or
        configuration, 130 interrupted.
    """
    if arguments is None:
        arguments = sys.argv[1:]
    process = Process(timing, launch or Launch(arguments))
    try:
        result: object = cli.main(
            arguments, prog_name="standards-mcp", standalone_mode=False, obj=process
        )
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except click.Abort:
        return INTERRUPTED
    return result if isinstance(result, int) else 0
