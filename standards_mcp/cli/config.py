"""``standards-mcp config ...``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import click
from pydantic import BaseModel

from standards_mcp._utils.full_disk import reason_of
from standards_mcp._utils.streams import divert_stdout
from standards_mcp.commands import Report, examples, print_json, print_text, reports
from standards_mcp.config.layers import key_name, leaves, toml_key, toml_value
from standards_mcp.config.loading import config_paths, file_text
from standards_mcp.config.problems import (
    Problem,
    check_programs,
    check_urls_and_state_dir,
    folder_problems,
)
from standards_mcp.config.schema import config_schema, config_template
from standards_mcp.contributions.overrides import value_problems
from standards_mcp.errors import StandardsMcpError
from standards_mcp.files import replace_text
from standards_mcp.host import Host
from standards_mcp.loading.construction import shown_values
from standards_mcp.loading.providers import provider_of
from standards_mcp.loading.records import Status

from .invocation import Invocation
from .transports import service_findings


@click.group()
def config() -> None:
    """Show, check and write the configuration."""


@config.command(
    epilog=examples("config init", "config init ~/.config/standards-mcp/standards-mcp.toml")
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--force", is_flag=True, help="Replace an existing file; a copy is kept.")
@click.pass_obj
def init(invocation: Invocation, /, file: Path | None, *, force: bool) -> None:
    """Write a template FILE with every key commented out at its default.

    FILE is by default the one of --config or STANDARDS_MCP_CONFIG, or else standards-mcp.toml in
    this folder.
    """
    if file and invocation.config and file != invocation.config:
        raise click.UsageError(f"--config names {invocation.config}, and FILE is {file}; give one")
    file = file or config_paths(invocation.config)[0]
    if file.exists() and not force:
        raise click.ClickException(f"{file} already exists; use --force to replace it")
    try:
        old_keys = _keys_set_in(file)
        # --config may name the new file, which does not exist yet.
        readable_invocation = invocation if file.exists() else replace(invocation, config=None)
        backup = replace_text(file, config_template(_models(readable_invocation)))
    except OSError as exc:
        raise click.ClickException(f"{file} cannot be written: {reason_of(exc)}") from None
    print_text(f"Wrote {file}" + (f"; the old file is {backup.name}" if backup else ""))
    if old_keys:
        print_text(
            f"Settings removed by the new file: {', '.join(old_keys)}. The server may now expose "
            "more; set them again if needed."
        )


@config.command(epilog=examples("config show --origin", "--profile teacher config show --json"))
@click.option("--origin", is_flag=True, help="Add the source of each value.")
@click.pass_obj
@reports
def show(invocation: Invocation, *, origin: bool) -> Report:
    """Print the values in force, as TOML; secrets are masked."""
    host = invocation.loaded_host
    values = shown_values(host.settings, host.manager.records.values(), host.secrets())
    layers = host.layers
    sources = {path: layers.origin(path) or "default" for path in values}
    data = [
        {"key": ".".join(map(toml_key, path)), "value": value, "origin": sources[path]}
        for path, value in values.items()
    ]
    lines, table = list[str](), tuple[str, ...]()
    for path, value in sorted(values.items(), key=lambda item: len(item[0]) > 1):
        if path[:-1] != table:
            table = path[:-1]
            lines.append(f"\n[{'.'.join(map(toml_key, table))}]")
        line = f"{toml_key(path[-1])} = {toml_value(value)}"
        lines.append(f"{line:<44}  # {sources[path]}" if origin else line)
    return Report(data, lambda: "\n".join(lines))


@config.command(epilog=examples("config check"))
@click.pass_context
def check(ctx: click.Context) -> None:
    """Read the configuration as `serve` does, and report its mistakes.

    Exit code 1 if a plugin fails, a pattern matches nothing, a tool refuses the value of an
    override, a folder or a program is missing, or the service over HTTP could not start; 2 if the
    file is invalid. A plugin's secret in the file is reported, but is not a failure. Isolated
    plugins and servers are not started: `plugins check` does that.
    """
    invocation = ctx.ensure_object(Invocation)
    invocation.mute_failures()
    host = invocation.loaded_host
    failed = [
        f"plugin {record.name}: {record.reason}"
        for record in host.manager.records.values()
        if record.status is Status.FAILED
    ]
    checks = (check_programs, check_urls_and_state_dir)
    found = [*_value_problems(host), *(item for find in checks for item in find(host.settings))]
    found += _folder_problems(host)
    lines = [problem.line(host.loaded.layers) for problem in found]
    findings = list(service_findings(host.settings))
    errors = [finding.text for finding in findings if finding.level == "error"]
    warnings = [finding.text for finding in findings if finding.level == "warning"]
    problems = [*failed, *host.warnings(), *lines, *errors]
    for line in (*problems, *host.exposed_secrets(), *warnings):
        print_text(line)
    if problems:
        ctx.exit(1)
    print_text(f"ok: {host.loaded.file or 'no file; every key has its default'}")
    records = host.manager.records.values()
    if names := ", ".join(record.name for record in records if provider_of(record)):
        print_text(f"not started: {names}; `standards-mcp plugins check` starts and checks them")


@config.command(epilog=examples("config schema > standards-mcp.schema.json"))
@click.pass_obj
def schema(invocation: Invocation) -> None:
    """Print a JSON Schema of the file, with the keys of every installed plugin.

    An editor for TOML uses it to check and complete the file.
    """
    print_json(config_schema(_models(invocation)))


def _value_problems(host: Host) -> list[Problem]:
    async def find() -> list[Problem]:
        tools, overrides = host.manager.contributions.tools, host.settings.tools.overrides
        try:
            return await value_problems(tools, overrides)
        finally:
            await host.manager.services.aclose()  # a check may have opened one

    with divert_stdout():
        return anyio.run(find)


def _folder_problems(host: Host) -> Iterator[Problem]:
    for record in host.manager.records.values():
        if record.plugin is not None:
            for key, folder in record.plugin.settings.folders_to_make().items():
                yield from folder_problems(("plugins", record.name, key), folder)


def _models(invocation: Invocation) -> dict[str, type[BaseModel]]:
    try:
        records = invocation.loaded_host.manager.records.values()
    except StandardsMcpError:
        return {}  # an invalid file must not prevent its replacement
    return {record.name: record.settings_type for record in records if record.settings_type}


def _keys_set_in(file: Path) -> list[str]:
    """Return the keys that a file sets, or [] if it does not exist or is not TOML."""
    try:
        return [key_name(path) for path, _ in leaves(tomllib.loads(file_text(file))) if path]
    except (FileNotFoundError, ValueError, RecursionError):
        return []
