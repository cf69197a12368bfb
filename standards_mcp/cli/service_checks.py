"""What ``doctor`` and ``config check`` say of ``[server]``, before somebody serves over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

from standards_mcp.config.models.http import HttpSettings
from standards_mcp.errors import ConfigError


def service_warnings(settings: HttpSettings) -> Iterator[str]:
    """Yield what would keep the service from starting, or let in more people than was meant."""
    from standards_mcp.server.http.sockets import check_exposure, is_local
    from standards_mcp.server.http.workers import check_workers

    for check in (check_exposure, check_workers):
        try:
            check(settings)
        except ConfigError as exc:
            yield str(exc)
    if not is_local(settings) and settings.allowed_hosts and not settings.auth.is_required:
        yield (
            "[server] asks for no token, so everybody who reaches it beyond this machine may use"
            " it; make a token with `standards-mcp auth token new NAME`"
        )
    files = {"uds": settings.uds, "audit.path": settings.audit.path}
    for key, file in files.items():
        if file is not None and not file.parent.is_dir():
            yield f"[server] {key}: there is no folder {file.parent}; make it, or choose another"
    if settings.auth.required and not (settings.auth.tokens or settings.auth.jwt.issuer):
        yield (
            "[server.auth] required is true, and there is no token; make one with `standards-mcp"
            " auth token new NAME`"
        )
