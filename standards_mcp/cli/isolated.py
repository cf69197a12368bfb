"""Commands of isolated plugins: a process of the plugin's own interpreter runs them.

usage: python -m standards_mcp.cli.isolated FILE VERBOSITY [ARGUMENT]...

FILE is the plugin's configuration, which the process deletes. Stdin, stdout and stderr are those of
the user, so what the command reads and prints needs no protocol. It can call the tools of its own
plugin; those of others are not loaded there.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from standards_mcp.commands import print_text
from standards_mcp.errors import PluginError
from standards_mcp.loading.records import Status
from standards_mcp.plugin import ToolResult
from standards_mcp.remote.isolated.plugin import IsolatedPlugin, IsolationSettings
from standards_mcp.remote.isolated.protocol import WorkerConfig

from .failures import failure
from .invocation import Invocation


def isolated_commands(invocation: Invocation) -> dict[str, click.Command]:
    """Return a command under the name of each isolated plugin that may have some."""
    return {
        record.name: _command(record.name, plugin.settings, invocation.verbosity)
        for record in invocation.loaded_host.manager.records.values()
        if isinstance(plugin := record.plugin, IsolatedPlugin) and plugin.has_commands
        if record.status is not Status.FAILED
    }


def _command(name: str, settings: IsolationSettings, verbosity: int) -> click.Command:
    @click.command(
        name,
        help=f"Commands of the plugin {name}, which is isolated.",
        add_help_option=False,  # the plugin has a help of its own
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def command(ctx: click.Context, arguments: Sequence[str]) -> None:
        # The user's stdin is the command's, and the settings hold secrets: so they are in a file
        # that nobody else may read.
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "plugin.json")
            file.write_text(settings.worker.model_dump_json(), encoding="utf-8")
            program = [settings.python, "-m", "standards_mcp.cli.isolated"]
            try:
                ran = subprocess.run(  # noqa: S603  - the interpreter that the configuration names
                    [*program, str(file), str(verbosity), *arguments], check=False
                )
            except OSError as exc:
                reason = f"[plugins.{name}] python: {settings.python} cannot be run"
                raise PluginError(name, f"{reason}: {exc.strerror}") from None
        ctx.exit(ran.returncode)

    return command


def main() -> int:
    """Run a command of the plugin that the arguments of the process describe."""
    file, verbosity, *arguments = sys.argv[1:]
    config = WorkerConfig.model_validate_json(Path(file).read_bytes())
    with suppress(OSError):
        Path(file).unlink()
    invocation = _OwnTools(verbosity=int(verbosity))
    invocation.configure_logging()
    # Imported late: it takes a while, and has nothing to do with the process that calls this one.
    from standards_mcp.server.isolated.hosting import limit_memory, load_host

    limit_memory(config.memory)
    invocation.host = invocation.loaded_host = load_host(config)
    record = invocation.host.manager.records[config.name]
    command = invocation.host.manager.commands().get(config.name)
    if command is None:
        why = record.reason or "it has no commands"
        print_text(f"standards-mcp: plugin {config.name!r}: {why}", err=True)
        return 1
    return _run(command, arguments, invocation)


class _OwnTools(Invocation):
    """An invocation in a process that has loaded one plugin."""

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool of the plugin. See `Invocation`."""
        if self.host.visible().find(name) is None:
            raise click.UsageError(
                f"Unknown tool: {name}. A command of an isolated plugin can call the tools of its "
                "own plugin only, by their declared names"
            )
        return super().__call__(name, arguments)


def _run(command: click.Command, arguments: Sequence[str], invocation: Invocation) -> int:
    try:
        result: object = command.main(
            arguments,
            prog_name=f"standards-mcp {command.name}",
            standalone_mode=False,
            obj=invocation,
        )
    except click.ClickException as exc:
        exc.show()
        return exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except Exception as exc:  # noqa: BLE001  - the plugin's, in one line
        ctx = click.Context(command, obj=invocation)
        ctx.invoked_subcommand = command.name
        shown = failure(exc, ctx)
        shown.show()
        return shown.exit_code
    finally:
        invocation.close()
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
