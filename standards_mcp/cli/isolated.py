"""Commands of isolated plugins: `isolated_process` runs them in the plugin's own interpreter."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anyio
import click

from standards_mcp.errors import PluginError
from standards_mcp.loading.manager import PluginManager
from standards_mcp.loading.records import Status
from standards_mcp.remote.isolated.plugin import IsolatedPlugin


def isolated_commands(manager: PluginManager, verbosity: int) -> dict[str, click.Command]:
    """Return a command under the name of each isolated plugin that may have some."""
    return {
        record.name: _command(record.name, plugin, verbosity)
        for record in manager.records.values()
        if isinstance(plugin := record.plugin, IsolatedPlugin) and plugin.has_commands
        if record.status is not Status.FAILED
    }


def _command(name: str, plugin: IsolatedPlugin, verbosity: int) -> click.Command:
    @click.command(
        name,
        help=f"Commands of the plugin {name}, which is isolated.",
        add_help_option=False,  # the plugin has a help of its own
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def command(ctx: click.Context, arguments: Sequence[str]) -> None:
        environment, worker = anyio.run(plugin.command_process)
        # The user's stdin is the command's, and the settings hold secrets: so they are in a file
        # that nobody else may read.
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "plugin.json")
            file.write_text(worker.model_dump_json(), encoding="utf-8")
            program = [plugin.settings.python, "-m", "standards_mcp.cli.isolated_process"]
            try:
                ran = subprocess.run(  # noqa: S603  - the interpreter that the configuration names
                    [*program, str(file), str(verbosity), *arguments],
                    env=environment,
                    check=False,
                )
            except OSError as exc:
                reason = f"[plugins.{name}] python: {plugin.settings.python} cannot be run"
                raise PluginError(name, f"{reason}: {exc.strerror}") from None
        ctx.exit(ran.returncode)

    return command
