"""Find the transports of ``serve`` that installed packages announce, and check their settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from standards_mcp._utils.entry_points import OWN, own_entry_points
from standards_mcp._utils.installation import canonical, install_command, missing_service
from standards_mcp._utils.text import describe_exception
from standards_mcp.commands import Finding, Level
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import first_match
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.loading.discovery import entry_points
from standards_mcp.transports import Transport

STDIO: Final = "stdio"
_GROUP: Final = "standards_mcp.transports"
_FOR_STDIO: Final = {"snapshot", "telemetry"}  # these keys of [server] need no service


def transport_names() -> list[str]:
    """Return the names of stdio and of all installed transports."""
    return [STDIO, *sorted({point.name for point in entry_points(_GROUP)})]


def load_transport(name: str, settings: Settings) -> Transport:
    """Import a transport.

    Raises:
        click.BadParameter: No installed package has the transport.
        ConfigError: ``trusted`` does not allow its package.
        StandardsMcpError: Its package is missing, cannot be imported, or is not the only one.
    """
    points = [point for point in entry_points(_GROUP) if point.name == name]
    if not points and name == "http":
        raise StandardsMcpError(f"--transport {name}: {missing_service()}")
    if not points:
        names = ", ".join(map(repr, transport_names()))
        raise click.BadParameter(f"{name!r} is not one of {names}.", param_hint="'--transport'")
    packages = [str(point.dist.name) for point in points]
    if len(points) > 1:
        both = " and ".join(sorted(packages))
        raise StandardsMcpError(f"{both} have a transport {name!r} each; uninstall all but one")
    if not _is_trusted(packages[0], settings):
        raise ConfigError(f"transport {name!r}: trusted has no pattern for {packages[0]!r}")
    try:
        transport: Any = points[0].load()
    except Exception as exc:  # a package may raise anything while it is imported
        command = install_command(packages[0], replace=True)
        reason = f"cannot be imported: {describe_exception(exc)}; run `{command}`"
        raise StandardsMcpError(f"the transport {name!r} of {packages[0]} {reason}") from exc
    if not isinstance(transport, Transport):
        raise StandardsMcpError(f"the transport {name!r} of {packages[0]} is not a Transport")
    return transport


def _is_trusted(package: str, settings: Settings) -> bool:
    name = canonical(package)
    return name in OWN or bool(first_match((name,), map(canonical, settings.trusted)))


def service_findings(settings: Settings) -> Iterator[Finding]:
    """Yield errors that prevent a start with any transport, and warnings."""
    keys = ", ".join(sorted(settings.server.model_fields_set - _FOR_STDIO))
    if keys and not own_entry_points("standards_mcp.audit"):
        level: Level = "warning" if settings.server.audit.path is None else "error"
        yield Finding("service", level, f"[server] {keys}: {missing_service()}")
    trusted = {p.name for p in entry_points(_GROUP) if _is_trusted(str(p.dist.name), settings)}
    for name in sorted(trusted):
        try:
            yield from load_transport(name, settings).check(settings)
        except Exception as exc:  # noqa: BLE001  - the check is code of a plugin
            reason = str(exc) if isinstance(exc, StandardsMcpError) else describe_exception(exc)
            yield Finding(f"transport {name}", "error", reason)
