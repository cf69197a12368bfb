"""``standards-mcp plugins ...``."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import anyio
import click

from standards_mcp._stdout import divert_stdout
from standards_mcp.discovery import PluginRecord, Status
from standards_mcp.errors import describe_exception
from standards_mcp.host import Host
from standards_mcp.masking import mask
from standards_mcp.plugin import Health

from .invocation import Invocation
from .output import print_json, print_table

HEALTH_TIMEOUT: Final = 10.0
"""Seconds for the health checks of all plugins."""
_LATE: Final = Health(
    status="failed", message=f"check_health did not answer within {HEALTH_TIMEOUT:g} seconds"
)


@click.group()
def plugins() -> None:
    """List the installed plugins and check that they work."""


@plugins.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def list_plugins(invocation: Invocation, *, as_json: bool) -> None:
    """List the installed plugins; imports none of them.

    A plugin that failed when the server last started is shown as failed, with the reason.
    """
    host = invocation.host
    host.recall()
    records = list(host.manager.records.values())
    if as_json:
        print_json([_as_data(record) for record in records])
        return
    if not records:
        click.echo("No plugin is installed.")
    print_table((record.name, record.version, record.status, _remark(record)) for record in records)


@plugins.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def check(ctx: click.Context, *, as_json: bool) -> None:
    """Import and start every enabled plugin, and ask it for its health.

    The health checks run side by side, for up to 10 seconds. Exit code 1 when any plugin fails.
    """
    host = ctx.ensure_object(Invocation).loaded_host
    with divert_stdout():
        healths = anyio.run(_healths, host)
    records = list(host.manager.records.values())
    if as_json:
        print_json([_as_data(record) | _health_data(healths, record) for record in records])
    else:
        print_table(
            (record.name, record.version, record.status, _remark(record, healths.get(record.name)))
            for record in records
        )
    failed = any(record.status is Status.FAILED for record in records)
    if failed or any(health.status == "failed" for health in healths.values()):
        ctx.exit(1)


async def _healths(host: Host) -> dict[str, Health]:
    async with host.running():
        checks = {
            record.name: asyncio.ensure_future(_health(host, record))
            for record in host.manager.records.values()
            if record.status is Status.STARTED
        }
        if checks:
            # One that does not end is abandoned, since it may not heed its cancellation either.
            await asyncio.wait(checks.values(), timeout=HEALTH_TIMEOUT)
        found = {name: _result(check) for name, check in checks.items()}
    return {name: health for name, health in found.items() if health is not None}


def _result(check: asyncio.Future[Health | None]) -> Health | None:
    if not check.done():
        return _LATE
    return (
        Health(status="failed", message="it was cancelled") if check.cancelled() else check.result()
    )


async def _health(host: Host, record: PluginRecord) -> Health | None:
    """Return a plugin's health, or None when it tells of none."""
    try:
        for awaitable in host.manager.call(record, "check_health"):
            return _checked(await awaitable, record.secrets)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as exc:  # noqa: BLE001  - the plugin's failure, also a sys.exit
        return Health(status="failed", message=mask(describe_exception(exc), record.secrets))
    return None


def _checked(result: object, secrets: frozenset[str]) -> Health:
    if isinstance(result, Health):
        return replace(result, message=mask(result.message, secrets))
    return Health(status="failed", message=f"check_health returned a {type(result).__name__}")


def _as_data(record: PluginRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "version": record.version,
        "distribution": record.distribution,
        "status": record.status,
        "reason": record.reason,
    }


def _health_data(healths: dict[str, Health], record: PluginRecord) -> dict[str, Any]:
    health = healths.get(record.name)
    return {"health": {"status": health.status, "message": health.message} if health else None}


def _remark(record: PluginRecord, health: Health | None = None) -> str:
    if record.reason:
        return record.reason
    if health:
        return f"{health.status}: {health.message}" if health.message else health.status
    if record.status is Status.DISCOVERED:
        return "not loaded yet; `standards-mcp plugins check` tries it"
    return ""
