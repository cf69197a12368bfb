"""Reports of the commands under ``standards-mcp alignment``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from standards_mcp import ToolCaller
from standards_mcp.commands import Report


def ask_report(call: ToolCaller, tool: str, arguments: Mapping[str, Any]) -> Report:
    """Call a tool, and return its Markdown for people and its structure for ``--json``.

    Arguments that are None are left out. The exit code is 1 for a failed call, and 2 for invalid
    arguments.
    """
    answer = call(tool, {name: value for name, value in arguments.items() if value is not None})
    data = answer.structured or {}
    message = str(data.get("message", answer.text)) if answer.is_error else answer.text
    is_invalid = data.get("error_type") == "invalid_input"
    code = (2 if is_invalid else 1) if answer.is_error else 0
    return Report(data, lambda: message, code, answer.notes, is_error=answer.is_error)
