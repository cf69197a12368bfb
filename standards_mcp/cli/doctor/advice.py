"""What to do about a plugin that fails, from its record and the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from standards_mcp.config.layers import key_name
from standards_mcp.config.models.settings import Settings
from standards_mcp.config.programs import check_programs
from standards_mcp.loading.records import PluginRecord


def fix_for(record: PluginRecord, settings: Settings, otherwise: str) -> str:
    """Return what to do about a plugin that fails.

    Args:
        otherwise: What to do if nothing more is known than that it fails.
    """
    fixes = "; ".join(dict.fromkeys(_fixes(record, settings))) or otherwise
    disable = f"disable it: `standards-mcp plugins disable {record.name}`."
    return f"{fixes[:1].upper()}{fixes[1:]}, or {disable}"


def _fixes(record: PluginRecord, settings: Settings) -> Iterator[str]:
    for each in record.problems:
        yield each.fix or f"correct {key_name(each.path)}"
    for problem in check_programs(settings):
        if problem.path[1] == record.name:
            yield problem.fix
