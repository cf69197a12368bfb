"""The approved definitions of other MCP servers, which the host keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

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
        """Check that all files are JSON; running servers notice that their files have changed."""
        files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.json")}
        for name, data in files.items():
            try:
                json.loads(data)
            except ValueError:
                raise BackupError(f"the approvals {name} are not JSON") from None

        def replace() -> None:
            for name, data in files.items():
                replace_privately(self._folder / name, data)

        yield replace
