"""The approved definitions of other MCP servers, which the host keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from standards_mcp.commands import printable
from standards_mcp.files import private_folder, replace_privately, write_private

from .errors import BackupError

_PATTERN: Final = "*/approved-*.json"


class ApprovalsBackup:
    """Saves and restores the files of approvals; each is replaced as a whole. See `Backup`.

    Args:
        state_dir: The folder of the host's state.
    """

    def __init__(self, state_dir: Path) -> None:
        self._folder = state_dir / "plugins"

    def save(self, folder: Path) -> None:
        """Copy the files of all servers."""
        for path in sorted(self._folder.glob(_PATTERN)):
            target = private_folder(folder / path.parent.name) / path.name
            write_private(target, path.read_bytes())

    @contextmanager
    def restoring(self, folder: Path) -> Generator[Callable[[], None]]:
        """Check all names, and that all files are JSON.

        Running servers notice that their files have changed.

        Raises:
            BackupError: A file has another name than approvals have, or is not JSON.
        """
        approvals = {*folder.glob(_PATTERN)}
        files = dict[Path, bytes]()
        for path in folder.rglob("*"):
            if path.is_dir():
                continue
            name = path.relative_to(folder)
            shown = printable(name.as_posix())
            if path not in approvals:
                raise BackupError(
                    f"the archive has {shown} among the approvals, and no backup has that"
                )
            files[name] = path.read_bytes()
            try:
                json.loads(files[name])
            except (ValueError, RecursionError):
                raise BackupError(f"the approvals {shown} are not JSON") from None

        def replace() -> None:
            for name, data in files.items():
                replace_privately(self._folder / name, data)

        yield replace
