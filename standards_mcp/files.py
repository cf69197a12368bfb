"""Files of plugins: private ones, ones that are replaced as a whole, and errors of a full disk."""

from __future__ import annotations

from standards_mcp._utils import full_disk
from standards_mcp._utils.files import replacing
from standards_mcp._utils.private import (
    FILE_MODE,
    open_private,
    private_folder,
    restrict,
    write_private,
)

__all__ = [
    "FILE_MODE",
    "full_disk",
    "open_private",
    "private_folder",
    "replacing",
    "restrict",
    "write_private",
]
