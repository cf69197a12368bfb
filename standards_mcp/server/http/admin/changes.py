"""Switches tools by the configuration file, as ``tools enable|disable`` does, and takes it over."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial

from anyio import to_thread

from standards_mcp._utils.files import Edit
from standards_mcp.config.edits import (
    change_config,
    disabled_tools,
    file_to_change,
    with_tool_disabled,
    with_tool_enabled,
)
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.models.tools import Kind, ToolSettings
from standards_mcp.contributions.tools import RegisteredTool
from standards_mcp.contributions.visible.gains import gained
from standards_mcp.errors import ConfigError, NotAuditedError, StandardsMcpError
from standards_mcp.host import Host
from standards_mcp.server.operations.audit import Audit
from standards_mcp.server.reload import Reloading, reload_now

log = logging.getLogger(__name__)


class RefusedError(Exception):
    """A change is not made, or not in force; its text says why."""


class NotAgreedError(Exception):
    """A change would serve more than its button says; its text names that."""


def can_be_enabled(item: RegisteredTool, tools: ToolSettings) -> bool:
    """Tell whether a tool is hidden by what its switch writes and takes back."""
    without = tools.model_copy(
        update={
            "disable": tuple(each for each in tools.disable if each not in item.names),
            "enable": (*tools.enable, item.declared),
        }
    )
    now, then = (
        each.hidden_reason(item.names, read_only=item.tool.read_only) for each in (tools, without)
    )
    return bool(now) and now == item.hidden_reason and not then


class Changes:
    """Changes the configuration of a service that runs.

    Args:
        reloading: Where the configuration comes from; without it, nothing can be changed.
        tell: Tells clients which lists have changed.
        audit: The audit log, if there is one.
    """

    def __init__(
        self,
        host: Host,
        reloading: Reloading | None,
        tell: Callable[[Collection[Kind]], Awaitable[None]],
        audit: Audit | None,
    ) -> None:
        self._host, self._reloading, self._tell, self._audit = host, reloading, tell, audit

    @property
    def are_possible(self) -> bool:
        """Whether it is known where the configuration comes from."""
        return self._reloading is not None

    def is_waiting(self) -> bool:
        """Tell whether the file says something else than what was read from it."""
        return not self._host.loaded.is_current()

    async def switch(self, tool: str, caller: str, *, enabled: bool, agreed: str = "") -> None:
        """Serve a tool, or serve it no longer.

        Args:
            tool: Its declared name.
            agreed: What else may be served then, as `NotAgreedError` has told it.

        Raises:
            RefusedError: It cannot be done.
            NotAgreedError: More than the tool would be served.
        """
        item = next((each for each in self._host.visible().tools if each.declared == tool), None)
        if item is None:
            raise RefusedError(f"There is no tool {tool!r} any more.")

        def edit(text: str) -> str:
            if not enabled:
                return with_tool_disabled(text, tool)
            disabled = disabled_tools(text)
            for name in [each for each in item.names if each in disabled] or [tool]:
                text = with_tool_enabled(text, name)
            return text

        def agree(what: str) -> None:
            if what not in (item.published, agreed):
                raise NotAgreedError(what)

        action = f"tools {'enable' if enabled else 'disable'}"
        self._announce(caller, action, tool=tool)
        # To press the button is to agree to the tool itself.
        gains = self._gains if enabled else None
        done = await self._change(edit, partial(change_config, gains=gains, agree=agree))
        if done.changes:
            self._note(caller, action, tool=tool)
        await self._reload(is_edited=done.changes)

    async def take_over(self, caller: str) -> None:
        """Use what the file says now, in all processes of the service.

        Raises:
            RefusedError: It cannot be used; what was in force stays so.
        """
        self._announce(caller, "reload")
        await self._reload()
        self._note(caller, "reload")

    async def _reload(self, *, is_edited: bool = False) -> None:
        reloading = self._known()
        try:
            await reload_now(self._host, reloading, self._tell)
        except (StandardsMcpError, OSError) as exc:
            how = "The file is changed, but what it says is" if is_edited else "What it says is"
            raise RefusedError(f"{how} refused, so nothing else is in force. {exc}") from None
        reloading.tell_others()

    async def _change(self, edit: Callable[[str], str], change: Callable[..., Edit]) -> Edit:
        sources = self._known().sources
        try:
            file = await to_thread.run_sync(file_to_change, sources)
        except (ConfigError, OSError) as exc:
            why = "The file has mistakes, and nothing is changed; correct them first."
            raise RefusedError(f"{why} {exc}") from None
        try:
            return await to_thread.run_sync(change, file, sources, edit)
        except ConfigError as exc:
            raise RefusedError(f"Nothing is changed. {exc}") from None
        except (OSError, UnicodeDecodeError) as exc:
            why = f"{file} cannot be changed: {exc}."
            raise RefusedError(f"{why} See who may write the file and its folder.") from None

    def _gains(self, before: Settings, after: Settings) -> list[str]:
        return gained(self._host.manager.contributions, before, after)

    def _known(self) -> Reloading:
        if self._reloading is None:
            raise RefusedError("This service was started without a configuration to change.")
        return self._reloading

    def _announce(self, caller: str, action: str, **more: str) -> None:
        fields = {"caller": caller, "action": action, **more}
        try:
            if self._audit:
                self._audit.announce("configuration is about to change", fields)
        except NotAuditedError as exc:
            raise RefusedError(f"Nothing is changed. {exc}") from None

    def _note(self, caller: str, action: str, **more: str) -> None:
        fields = {"caller": caller, "action": action, **more}
        log.info("the configuration is changed", extra=fields)
        if self._audit:
            self._audit.note("configuration changed", fields)
