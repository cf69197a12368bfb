"""``standards-mcp doctor``: find the reasons why a client gets no tools, with the remedies."""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import anyio
import click

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp._utils.streams import divert_stdout
from standards_mcp.commands import (
    Finding,
    Level,
    Look,
    Report,
    ServerCommand,
    examples,
    reports,
    table,
)
from standards_mcp.config.layers import key_name
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.problems import check_programs
from standards_mcp.contributions.tools import definition_tokens
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.loading.health import check_health, services_health
from standards_mcp.loading.manager import PluginManager
from standards_mcp.loading.providers import provider_of
from standards_mcp.loading.records import PluginRecord, Status
from standards_mcp.plugin import Health
from standards_mcp.server.handlers import MAX_PAGE_BYTES, definition_bytes, wire_tool

from .invocation import Invocation, this_program
from .transports import service_findings

_PACKAGES: Final = ("standards-mcp", "mcp", "pluggy", "pydantic")
_PORTABLE_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,50}")
_SIGNS: Final = {"ok": "ok", "warning": "!", "error": "ERROR"}
_LOOK: Final[Look] = {"^ok": "good", "^!": "warning", "^ERROR": "bad"}
_LEVELS: Final[dict[str, Level]] = {"ok": "ok", "degraded": "warning", "failed": "error"}
_MANY_TOOLS: Final = 40  # the limit of one client
_FEWER_TOOLS: Final = (
    'Disable some of them: `standards-mcp tools disable GLOB`, or set discovery = "search" in'
    " [tools]."
)
_CORRECT: Final = "Correct it; `standards-mcp config check` reads it again."
_CORRECT_SERVICE: Final = (
    "Correct the reported problem, in the settings of the plugin that provides it."
)
_BY_HAND: Final = "Run `standards-mcp serve` in a terminal, and read its messages."


@click.command(epilog=examples("doctor", "doctor --json"))
@click.pass_context
@reports
def doctor(ctx: click.Context) -> Report:
    """Check everything that a client needs to be served, and suggest corrections.

    Exit code 1 if any check finds an error.
    """
    invocation = ctx.ensure_object(Invocation)
    invocation.mute_failures()
    with divert_stdout():
        findings = anyio.run(_examine, invocation)
    rows = [(_SIGNS[each.level], each.subject, each.text) for each in findings]
    code = 1 if any(finding.level == "error" for finding in findings) else 0
    return Report([*map(dataclasses.asdict, findings)], lambda: table(rows), code, look=_LOOK)


async def _examine(invocation: Invocation) -> list[Finding]:
    """Run all checks and return their findings, good and bad."""
    findings = [_versions()]
    server = ServerCommand()
    try:
        host = invocation.loaded_host
        server = ServerCommand(_program(), (*invocation.options,), host.layers.variables())
        findings += _configuration(host)
        async with host.running():
            await host.manager.wait_started()
            findings += [finding async for finding in _plugins(host)]
            findings += [finding async for finding in _services(host)]
        findings += [*_tools(host), *_start(server, host.manager), *_last_start(invocation)]
    except StandardsMcpError as exc:  # a server fails to start for the same reason
        findings.append(Finding("configuration", "error", str(exc), _CORRECT))
    for check in own_entry_points("standards_mcp.doctor").values():
        findings += check.load()(invocation, server)
    return findings


def _program() -> tuple[str, ...]:
    try:
        return this_program()
    except click.ClickException:  # it runs from uv's cache, which is good enough for a check
        return (sys.executable, "-m", "standards_mcp")


def _versions() -> Finding:
    names = [f"{name} {metadata.version(name)}" for name in _PACKAGES]
    python = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("versions", "ok", f"{python}; {', '.join(names)}")


def _configuration(host: Host) -> Iterator[Finding]:
    file = host.loaded.file
    message = str(file) if file else "no file; all keys have their defaults"
    yield Finding("configuration", "ok", message)
    for warning in host.warnings():
        yield Finding("configuration", "warning", warning, _CORRECT)
    for line in host.exposed_secrets():
        yield Finding("configuration", "warning", line, "Set the variable, and remove the key.")
    for finding in service_findings(host.settings):
        yield Finding("service", "warning", finding.text, _CORRECT)


async def _services(host: Host) -> AsyncGenerator[Finding]:
    # After the plugins, to include the services that their checks have opened.
    for name, health in (await services_health(host.manager)).items():
        level = _LEVELS[health.status]
        facts = (f"{key} {value}" for key, value in health.facts.items() if isinstance(value, str))
        message = "; ".join((health.message or health.status, *facts))
        yield Finding(f"service {name}", level, message, "" if level == "ok" else _CORRECT_SERVICE)


async def _plugins(host: Host) -> AsyncGenerator[Finding]:
    healths = await check_health(host.manager)
    for record in host.manager.records.values():
        subject = f"plugin {record.name}"
        health = healths.get(record.name) or Health(status="ok")
        if record.status is Status.FAILED:
            fix = _fix_for(record, host.settings, "correct it, update it")
            yield Finding(subject, "error", record.reason, fix)
        elif health.status == "ok":
            yield Finding(subject, "ok", record.reason or health.message or str(record.status))
        else:
            level = _LEVELS[health.status]
            message = health.message or f"it reports the status {health.status}"
            provider = provider_of(record)
            is_unapproved = provider is not None and provider.unapproved
            default = "approve it" if is_unapproved else "correct the reported problem"
            fix = _fix_for(record, host.settings, default)
            yield Finding(subject, level, message, fix)


def _fix_for(record: PluginRecord, settings: Settings, default: str) -> str:
    """Return the fix for a failed plugin: the fixes of its problems, or *default*."""
    fixes = [item.fix or f"correct {key_name(item.path)}" for item in record.problems]
    fixes += [item.fix for item in check_programs(settings) if item.path[1] == record.name]
    text = "; ".join(dict.fromkeys(fixes)) or default
    text = f"{text[:1].upper()}{text[1:]}"
    if settings.section(record.name).required:  # the server does not start without it
        return f"{text}."
    return f"{text}, or disable it: `standards-mcp plugins disable {record.name}`."


def _tools(host: Host) -> Iterator[Finding]:
    served = host.visible().visible_tools
    for item in served:
        if not _PORTABLE_NAME.fullmatch(item.published):
            fix = 'Set tool_names = "portable", or give it another name in its override.'
            message = f"some clients refuse the whole server because of the name {item.published!r}"
            yield Finding("tools", "warning", message, fix)
    listed = host.visible().listed_tools
    if (size := sum(map(definition_bytes, map(wire_tool, listed)))) > MAX_PAGE_BYTES:
        message = (
            f"the list has {size:,} bytes; many clients read only the first {MAX_PAGE_BYTES:,}"
        )
        yield Finding("tools", "warning", message, _FEWER_TOOLS)
    cost = sum(definition_tokens(item) for item in listed)
    message = (
        f"{len(served)} served, {len(listed)} listed, about {cost:,} tokens of a model's context"
    )
    if not served:
        fix = "Run `standards-mcp tools`: it shows the reasons."
        yield Finding("tools", "error", "no tool is served", fix)
    elif len(listed) > _MANY_TOOLS:
        yield Finding("tools", "warning", message, _FEWER_TOOLS)
    else:
        yield Finding("tools", "ok", message)


def _start(server: ServerCommand, manager: PluginManager) -> Iterator[Finding]:
    """Start a server like a client, and check its tools, its time and its stdout."""
    began = time.perf_counter()
    try:
        ran = subprocess.run(  # noqa: S603  - this installation's own command
            # Without a snapshot, the list of tools shows that the server itself works.
            [*server.program, *server.options, "--set", "server.snapshot=false", "serve"],
            input=_handshake(),
            capture_output=True,
            timeout=manager.timing.trial,
            check=False,
        )
    except OSError as exc:
        yield Finding("start", "error", str(exc), _BY_HAND)
        return
    except subprocess.TimeoutExpired:
        message = f"the server did not end within {manager.timing.trial:g} seconds"
        yield Finding("start", "error", _slow_start(message, manager)[0], _BY_HAND)
        return
    seconds = time.perf_counter() - began
    lines = ran.stdout.decode(errors="replace").splitlines()
    if stray := [line for line in lines if not _is_message(line)]:
        message = f"not a message of the protocol: {stray[0][:80]!r}"
        yield Finding("stdout", "error", message, "Disable plugins one by one to find its source.")
    if not any('"tools"' in line for line in lines):
        last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
        message = f"the server gave no list of tools; its last words: {''.join(last)[:200]}"
        yield Finding("start", "error", message, _BY_HAND)
        return
    message = f"from start to end with a list of tools in {seconds:.1f} s; stdout is clean"
    if seconds <= manager.timing.slow_server:
        yield Finding("start", "ok", message)
    else:
        yield Finding("start", "warning", *_slow_start(message, manager))


def _last_start(invocation: Invocation) -> Iterator[Finding]:
    """Say whether the last start over stdio was answered from a snapshot, and why not."""
    if not invocation.host.settings.server.snapshot:
        message = "off, by [server] snapshot = false"
    elif (note := invocation.launch.last_note()) is None:
        message = "no server over stdio has stored one in this folder yet"
    elif note:
        message = f"the last start was not answered from it: {note}"
    else:
        message = "the last start was answered from it"
    yield Finding("snapshot", "ok", message)


def _slow_start(message: str, manager: PluginManager) -> tuple[str, str]:
    """Return *message* with the slow plugins, and the fix; without any, to compile bytecode."""
    slow = [each for each in manager.records.values() if each.seconds >= manager.timing.slow_plugin]
    if not slow:
        folder = Path(__file__).parents[2]
        return message, f'Compile the bytecode: `"{sys.executable}" -m compileall "{folder}"`.'
    took = ", ".join(f"plugin {each.name!r} took {each.seconds:.1f} s" for each in slow)
    names = " and ".join(each.name for each in slow)
    return f"{message}; when it was loaded here, {took}", f"Correct, update or disable {names}."


def _is_message(line: str) -> bool:
    try:
        return bool(json.loads(line)["jsonrpc"] == "2.0")
    except (ValueError, KeyError, TypeError):
        return False


def _handshake() -> bytes:
    """Return the messages of a client that lists the tools, one on each line."""
    client = {"name": "standards-mcp doctor", "version": "1"}
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    messages: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": start},
        {"method": "notifications/initialized", "params": {}},
        {"id": 1, "method": "tools/list", "params": {}},
    ]
    return "".join(json.dumps({"jsonrpc": "2.0"} | each) + "\n" for each in messages).encode()
