"""Changes of the configuration file by the admin page, and their reload."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from anyio import to_thread

from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.transports import (
    Host,
    HostServer,
    ReloadOptions,
    Settings,
    change_config,
    file_to_change,
    reload_from_sources,
    settings_without_profile,
)

from .actions import Actions, RefusedError


class UnconfirmedError(Exception):
    """A change was not made, because its effects must be confirmed.

    Attributes:
        effects: The effects, in sentences.
        key: Confirms these effects, and no others.
    """

    def __init__(self, effects: Sequence[str]) -> None:
        super().__init__(" ".join(effects))
        self.effects = effects
        self.key = hashlib.sha256(str(self).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change of the configuration file.

    Attributes:
        question: Asks for the confirmation.
        facts: The action and its object, for the log and the audit log.
        edit: Returns the new text of the file; raises a `StandardsMcpError` to refuse the change.
        review: Returns, from the settings before and after, the effects to confirm; raises a
            `RefusedError` to refuse the change.
    """

    question: str
    facts: Mapping[str, object]
    edit: Callable[[str], str]
    review: Callable[[Settings, Settings], list[str]]


class Controls:
    """Change the configuration of a running service.

    Args:
        server: Notifies clients of changed lists.

    Attributes:
        reloading: Options for reloads.
    """

    def __init__(
        self,
        host: Host,
        reloading: ReloadOptions,
        server: HostServer,
        actions: Actions,
    ) -> None:
        self.reloading = reloading
        self._host, self._server, self._actions = host, server, actions

    async def apply(self, change: ConfigChange, caller: str, confirmed: str) -> None:
        """Make a change, and reload the configuration in all processes.

        Args:
            confirmed: The `UnconfirmedError.key` of the effects that the caller has confirmed.

        Raises:
            RefusedError: The change failed.
            UnconfirmedError: It has other effects, and is not made.
        """
        edit = partial(self._edit_file, change, confirmed)
        # Only what is confirmed is announced.
        await to_thread.run_sync(partial(edit, dry_run=True))
        fields = {"caller": caller, **change.facts}
        self._actions.announce("configuration is about to change", fields)
        is_changed = await to_thread.run_sync(edit)
        if is_changed:
            self._actions.note("configuration changed", fields)
        try:
            await reload_from_sources(self._host, self.reloading, self._server.notify_changed)
        except (StandardsMcpError, OSError) as exc:
            start = "The file is changed, but the" if is_changed else "The"
            raise RefusedError(
                f"{start} configuration is refused, and the old one stays in force until the file"
                f" is corrected and reloaded. {exc}"
            ) from None
        self.reloading.tell_others()

    def _edit_file(self, change: ConfigChange, confirmed: str, *, dry_run: bool = False) -> bool:
        """Change the configuration file; return False if no change was needed."""
        sources = self.reloading.sources

        def edit(text: str) -> str:
            after = change.edit(text)
            effects = change.review(
                settings_without_profile(sources, text), settings_without_profile(sources, after)
            )
            unconfirmed = UnconfirmedError(effects)
            if effects and unconfirmed.key != confirmed:
                raise unconfirmed
            return after

        try:
            file = file_to_change(sources)
        except (ConfigError, OSError) as exc:
            why = "The file has mistakes, and nothing is changed; correct them first."
            raise RefusedError(f"{why} {exc}") from None
        try:
            return change_config(file, sources, edit, dry_run=dry_run).changes
        except StandardsMcpError as exc:
            raise RefusedError(f"Nothing is changed. {exc}") from None
        except (OSError, UnicodeDecodeError) as exc:
            why = f"{file} cannot be changed: {exc}."
            raise RefusedError(f"{why} See who may write the file and its folder.") from None
