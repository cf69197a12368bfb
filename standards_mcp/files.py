"""Write private files, replace files as a whole, edit files of users, and explain a full disk."""

from __future__ import annotations

from standards_mcp._utils import full_disk
from standards_mcp._utils.files import (
    FILE_MODE,
    Edit,
    diff,
    edit_text,
    open_private,
    private_folder,
    read_text,
    replacing,
    restrict,
    write_private,
)
from standards_mcp._utils.text import BYTE_ORDER_MARK, describe_decoding, keeping_style

__all__ = [
    "BYTE_ORDER_MARK",
    "FILE_MODE",
    "Edit",
    "describe_decoding",
    "diff",
    "edit_text",
    "full_disk",
    "keeping_style",
    "open_private",
    "private_folder",
    "read_text",
    "replacing",
    "restrict",
    "write_private",
]
