"""Run a plugin through its lifecycle, as a host would, and collect its faults."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import traceback
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import httpx2
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS, TextContent

from standards_mcp._utils.text import describe_exception
from standards_mcp.config.timing import DEFAULT_TIMING
from standards_mcp.errors import NotServedError, StandardsMcpError, ToolError
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginRecord
from standards_mcp.plugin import Health, Plugin, PluginContext

from . import Allowed, Uses
from .advice import declaration_faults, needs_faults, settings_faults, view_faults
from .imports import import_faults
from .serving import PluginUnderTest, connected, route_client
from .side_effects import LoopMonitor, SideEffects

_ROUND_SUFFIXES: Final = ("", " the second time")
_PLUGIN_FAILURES: Final = (Exception, SystemExit, asyncio.CancelledError)
"""Exceptions of a plugin that do not stop the check."""


class _UnknownToolError(Exception):
    """No plugin has the called tool."""


def faults_of(tested: PluginUnderTest, uses: Uses, allow: Allowed) -> list[str]:
    """Return a sentence for each broken rule, with the correction.

    Raises:
        RuntimeError: An event loop is already running.
    """
    _require_no_loop()
    effects = SideEffects()
    for fault in import_faults(tested.plugin_type, allow):
        effects.add(fault)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            _check_declarations(tested, Path(folder), effects, allow)
            asyncio.run(_check_life(tested, Path(folder), effects, uses, allow))
        finally:
            effects.restore()
    return list(effects.faults)


def _require_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("call check_plugin from a plain test function, not from an async one")


def _check_declarations(
    tested: PluginUnderTest, folder: Path, effects: SideEffects, allow: Allowed
) -> None:
    if hasattr(tested.plugin_type, "settings_type"):  # the host reports any other class
        for fault in settings_faults(tested.plugin_type.settings_type):
            effects.add(fault)
    try:
        host = tested.host(folder)
        with effects.phase("its __init__"):
            plugin = _construct(tested, host)
    except Exception:  # noqa: BLE001  - `_check_life` repeats this, and reports the reason
        return
    with effects.phase("one of its register hooks"):
        faults = list(declaration_faults(plugin, tested.name, allow.destructive))
    for fault in faults:
        effects.add(fault)


def _construct(tested: PluginUnderTest, host: Host) -> Plugin[Any]:
    options = host.settings.section(tested.name).options
    context = PluginContext(
        name=tested.name,
        state_dir=host.state_dir / "probe",
        open_service=host.manager.services.open,
    )
    return tested.plugin_type(tested.plugin_type.settings_type.model_validate(options), context)


async def _check_life(
    tested: PluginUnderTest, folder: Path, effects: SideEffects, uses: Uses, allow: Allowed
) -> None:
    monitor = LoopMonitor(tested.plugin_type.__module__.partition(".")[0], allow.blocked_seconds)
    try:
        host = tested.host(folder)
        host.load()
        host.manager.commands()
        record = host.manager.records[tested.name]
        own, tools = record.contributions, [item.declared for item in host.visible().tools]
        for fault in needs_faults((*own.prompts, *own.resources, *own.skills), tools):
            effects.add(fault)
        with monitor.watching():
            if await _starts_and_stops(record, effects, allow.start_seconds):
                async with connected(host, uses.generation, uses.client) as client:
                    await _check_health(record, effects)
                    await _check_uses(host, client, uses, effects)
                    async with route_client(host, tested.name) as http_client:
                        for method, path in uses.requests:
                            request = _request(http_client, method, path)
                            await _check_use(f"route {method} {path}", request, effects)
    except StandardsMcpError as exc:
        effects.add(getattr(exc, "reason", str(exc)))
    for location in monitor.locations:
        limit = f"{allow.blocked_seconds * 1000:g} ms"
        effects.add(
            f"it blocks the event loop for more than {limit} at {location}; make the function "
            "plain, or await asyncio.to_thread(...)"
        )


async def _starts_and_stops(
    record: PluginRecord, effects: SideEffects, start_seconds: float
) -> bool:
    """Enter and leave the plugin's lifespan twice; return True if it does not fail."""
    enter: Any = getattr(record.plugin, "lifespan", nullcontext)
    for suffix in _ROUND_SUFFIXES:
        async with effects.detect_leftovers():
            try:
                with effects.phase("its lifespan"):
                    lifespan = enter()
                    async with _within(start_seconds, "start"):
                        await lifespan.__aenter__()
                with effects.phase("its lifespan"):
                    async with _within(DEFAULT_TIMING.stop, "stop"):
                        await lifespan.__aexit__(None, None, None)
            except _PLUGIN_FAILURES as exc:
                effects.add(f"its lifespan fails{suffix}: {describe_exception(exc)}")
                return False
    return True


@asynccontextmanager
async def _within(seconds: float, verb: str) -> AsyncGenerator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as exc:
        if limit.expired():
            raise TimeoutError(f"it does not {verb} within {seconds:g} seconds") from exc
        raise


async def _check_health(record: PluginRecord, effects: SideEffects) -> None:
    check: Any = getattr(record.plugin, "check_health", None)
    if check is None:
        return
    try:
        with effects.phase("its check_health"):
            async with _within(DEFAULT_TIMING.health, "answer"):
                health = await check()
    except _PLUGIN_FAILURES as exc:
        effects.add(f"its check_health fails: {describe_exception(exc)}; return Health(...)")
        return
    if not isinstance(health, Health):
        effects.add(f"its check_health returns a {type(health).__name__}; return Health(...)")


async def _check_uses(host: Host, client: Client, uses: Uses, effects: SideEffects) -> None:
    for name, arguments in uses.calls:
        await _check_use(f"tool {name!r}", _call(client, name, arguments), effects)
    for name, arguments in uses.prompts:
        await _check_use(f"prompt {name!r}", host.content.get_prompt(name, arguments), effects)
    for uri in uses.reads:
        await _check_use(f"resource {uri!r}", _read(host, uri, effects), effects)


async def _read(host: Host, uri: str, effects: SideEffects) -> None:
    for fault in view_faults(f"resource {uri!r}", await host.content.read_resource(uri)):
        effects.add(fault)


async def _request(client: httpx2.AsyncClient, method: str, path: str) -> None:
    answer = await client.request(method, path)
    if answer.is_error:
        raise ToolError(f"{answer.status_code} {answer.text}")


async def _check_use(subject: str, use: Awaitable[object], effects: SideEffects) -> None:
    crashes, error = list[str](), ""
    try:
        with effects.phase(subject), _crashes(crashes):
            await use
    except (_UnknownToolError, NotServedError) as exc:
        effects.add(f"{exc}; use a name that the plugin has")
    except ToolError as exc:
        error = str(exc)
    except RuntimeError as exc:  # raised by the SDK's client for an invalid answer
        reason = str(exc).partition(chr(10))[0]
        effects.add(f"{subject} gives an answer that clients refuse: {reason}")
    if crashes:
        effects.add(f"{subject} crashes: {crashes[0]}; raise a ToolError for expected failures")
    elif error:
        effects.add(f"{subject} answers with an error: {error}")


async def _call(client: Client, name: str, arguments: Mapping[str, Any]) -> None:
    try:
        result = await client.call_tool(name, dict(arguments))
    except MCPError as exc:
        is_unknown = exc.code == INVALID_PARAMS
        raise (_UnknownToolError if is_unknown else ToolError)(exc.message) from None
    if result.is_error:
        data: Any = result.structured_content or {}
        text = " ".join(part.text for part in result.content if isinstance(part, TextContent))
        raise ToolError(data.get("message", text))


@contextmanager
def _crashes(descriptions: list[str]) -> Generator[None]:
    """Collect the crashes that the host logs and hides from clients."""

    class _Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and (cause := record.exc_info[1]):
                last = traceback.extract_tb(cause.__traceback__)[-1:]
                where = "".join(f" at {Path(at.filename).name}:{at.lineno}" for at in last)
                descriptions.append(describe_exception(cause) + where)

    log, collector = logging.getLogger("standards_mcp"), _Collector(logging.ERROR)
    log.addHandler(collector)
    try:
        yield
    finally:
        log.removeHandler(collector)
