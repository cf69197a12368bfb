"""The names by which the host and the process of an isolated plugin speak."""

from __future__ import annotations

from typing import Final

DESCRIBE: Final = "standards_mcp.describe"

CONVERT: Final = "standards_mcp.convert"

FILTER: Final = "standards_mcp_filter"

DESCRIPTION: Final = "standards-mcp/description"
