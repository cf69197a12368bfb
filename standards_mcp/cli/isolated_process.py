"""The process in which a command of an isolated plugin runs.

usage: python -m standards_mcp.cli.isolated_process FILE VERBOSITY [ARGUMENT]...

FILE is the plugin's configuration, which the process deletes. Stdin, stdout and stderr are those of
the user, so what the command reads and prints needs no protocol. It can call the tools of its own
plugin; those of others are not loaded there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from standards_mcp.commands import print_text
from standards_mcp.plugin import ToolResult
from standards_mcp.remote.isolated.protocol import WorkerConfig
from standards_mcp.server.isolated.hosting import limit_memory, load_host

from .failures import failure
from .invocation import Invocation


def main() -> int:
    """Run a command of the plugin that the arguments of the process describe."""
    file, verbosity, *arguments = sys.argv[1:]
    config = WorkerConfig.model_validate_json(Path(file).read_bytes())
    with suppress(OSError):
        Path(file).unlink()
    invocation = _OwnTools(verbosity=int(verbosity))
    invocation.configure_logging()
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
