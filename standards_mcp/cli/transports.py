"""Find the transports of ``serve`` that installed packages announce, and check their settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from standards_mcp._utils.installation import OWN, SERVICE, canonical, install_command
from standards_mcp._utils.text import describe_exception
from standards_mcp.commands import Finding
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import first_match
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.loading.discovery import entry_points
from standards_mcp.server.auditing import log_opener
from standards_mcp.transports import Transport

STDIO: Final = "stdio"
_HTTP: Final = "http"
_GROUP: Final = "standards_mcp.transports"
_FOR_STDIO_TOO: Final = {"audit", "snapshot", "telemetry"}
"""The keys of ``[server]`` that have an effect without the service."""


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
    if not points and name == _HTTP:
        raise StandardsMcpError(f"--transport {name} is in the package {_missing_service()}")
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


def _missing_service() -> str:
    return f"{SERVICE}, which is not installed; run `{install_command(SERVICE)}`"


def service_findings(settings: Settings) -> Iterator[Finding]:
    """Yield errors that prevent a start with any transport, and warnings."""
    keys = sorted(settings.server.model_fields_set - _FOR_STDIO_TOO)
    if keys and _HTTP not in transport_names():
        without = f"[server] {', '.join(keys)}: without effect, because they are for the package"
        yield Finding("service", "warning", f"{without} {_missing_service()}")
    trusted = {p.name for p in entry_points(_GROUP) if _is_trusted(str(p.dist.name), settings)}
    for name in sorted(trusted):
        try:
            yield from load_transport(name, settings).check(settings)
        except Exception as exc:  # noqa: BLE001  - the check is code of a plugin
            reason = str(exc) if isinstance(exc, StandardsMcpError) else describe_exception(exc)
            yield Finding(f"transport {name}", "error", reason)
    path = settings.server.audit.path
    if path is None:
        return
    try:
        log_opener()
    except StandardsMcpError as exc:
        yield Finding("audit", "error", str(exc))
    if not path.parent.is_dir():
        missing = f"[server] audit.path: the folder {path.parent} does not exist"
        yield Finding("audit", "error", f"{missing}; make it, or choose another")
