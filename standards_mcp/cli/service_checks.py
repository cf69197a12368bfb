"""Check ``[server]`` for ``doctor`` and ``config check``, before it is served over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

from standards_mcp.config.models.http import HttpSettings
from standards_mcp.errors import ConfigError


def service_problems(settings: HttpSettings) -> Iterator[str]:
    """Yield what would keep the service from starting."""
    from standards_mcp.server.http.listening import check_exposure, check_workers

    for check in (check_exposure, check_workers):
        try:
            check(settings)
        except ConfigError as exc:
            yield str(exc)
    files = {"uds": settings.uds, "audit.path": settings.audit.path}
    for key, file in files.items():
        if file is not None and not file.parent.is_dir():
            yield f"[server] {key}: there is no folder {file.parent}; make it, or choose another"


def service_warnings(settings: HttpSettings) -> Iterator[str]:
    """Yield what lets in more people than was meant, or none."""
    from standards_mcp.server.http.listening import is_local

    if not is_local(settings) and settings.allowed_hosts and not settings.auth.is_required:
        yield (
            "[server] asks for no token, so everybody who reaches it beyond this machine may use"
            " it; make a token with `standards-mcp auth token new NAME`"
        )
    if settings.auth.required and not (settings.auth.tokens or settings.auth.jwt.issuer):
        yield (
            "[server.auth] required is true, and there is no token; make one with `standards-mcp"
            " auth token new NAME`"
        )
