"""The switches of the admin page, which change the configuration file and reload it."""

from __future__ import annotations

import logging
from functools import partial

from anyio import to_thread

from standards_mcp.errors import ConfigError, NotAuditedError, StandardsMcpError
from standards_mcp.transports import (
    Host,
    HostServer,
    RegisteredTool,
    ReloadOptions,
    Settings,
    change_config,
    file_to_change,
    gained,
    reload_from_sources,
    with_tool_switched,
)
from standards_mcp_service.audit_log import Audit

log = logging.getLogger("standards_mcp.service")


class RefusedError(Exception):
    """A change was not made, or is not in force; the text says why."""


# Plugins have no switch: enabling one runs its code, and may need a restart.
class Controls:
    """Change the configuration of a running service.

    Args:
        reloading: Options for reloads.
        server: Notifies clients of changed lists.
        audit: The audit log, if there is one.
    """

    def __init__(
        self,
        host: Host,
        reloading: ReloadOptions,
        server: HostServer,
        audit: Audit | None,
    ) -> None:
        self._host, self._reloading, self._server, self._audit = host, reloading, server, audit

    async def switch(self, tool: str, caller: str, *, enabled: bool) -> None:
        """Serve a tool, or stop serving it.

        Args:
            tool: The declared name of the tool.

        Raises:
            RefusedError: The change failed, or would also expose other tools, prompts or resources.
        """
        item = next((item for item in self._host.visible().tools if item.declared == tool), None)
        if item is None:
            raise RefusedError(f"There is no tool {tool!r} any more.")
        fields = {"caller": caller, "tool": tool}
        fields["action"] = f"tools {'enable' if enabled else 'disable'}"
        try:
            if self._audit:
                self._audit.announce("configuration is about to change", fields)
        except NotAuditedError as exc:
            raise RefusedError(f"Nothing is changed. {exc}") from None
        if await to_thread.run_sync(partial(self._edit_file, item, enabled=enabled)):
            log.info("the configuration is changed", extra=fields)
            if self._audit:
                self._audit.note("configuration changed", fields)
        try:
            await reload_from_sources(self._host, self._reloading, self._server.notify_changed)
        except (StandardsMcpError, OSError) as exc:
            raise RefusedError(
                f"The configuration is refused, and the old one stays in force. {exc}"
            ) from None
        self._reloading.tell_others()

    def _edit_file(self, item: RegisteredTool, *, enabled: bool) -> bool:
        """Change the configuration file; return False if no change was needed."""

        def gains(before: Settings, after: Settings) -> list[str]:
            added = gained(self._host.manager.contributions, before, after)
            # Pressing the button confirms the tool itself.
            return [name for name in added if name != item.published]

        def refuse(additions: str) -> None:
            raise RefusedError(
                f"Nothing is changed: this would also serve {additions}. To confirm that, run"
                f" standards-mcp tools enable {item.declared} --yes"
            )

        sources = self._reloading.sources
        try:
            file = file_to_change(sources)
        except (ConfigError, OSError) as exc:
            why = "The file has mistakes, and nothing is changed; correct them first."
            raise RefusedError(f"{why} {exc}") from None
        edit = partial(
            with_tool_switched, declared=item.declared, names=item.names, enabled=enabled
        )
        try:
            result = change_config(file, sources, edit, gains=gains, agree=refuse)
        except ConfigError as exc:
            raise RefusedError(f"Nothing is changed. {exc}") from None
        except (OSError, UnicodeDecodeError) as exc:
            why = f"{file} cannot be changed: {exc}."
            raise RefusedError(f"{why} See who may write the file and its folder.") from None
        return bool(result.changes)
