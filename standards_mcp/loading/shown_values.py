"""The values in force, as people may see them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from standards_mcp._utils.secrets import MASK, looks_secret, masked_data
from standards_mcp.config.layers import leaves
from standards_mcp.config.models.settings import PluginSection, Settings

from .records import PluginKind, PluginRecord


def shown_values(
    settings: Settings, records: Iterable[PluginRecord], secrets: Iterable[str]
) -> dict[tuple[str, ...], Any]:
    """Return every value that is set, by the keys that lead to it; secrets are masked.

    A model declares which of its values are secret; others are taken for secret by their names.
    """
    values = settings.model_dump(mode="json", exclude={"plugins"})
    plugins: dict[str, Any] = {}
    for record in records:
        if record.info.kind is PluginKind.SERVER:
            continue  # its table is one of the host's own
        section = settings.section(record.name)
        keys = section.model_dump(mode="json", include=set(PluginSection.model_fields))
        if record.plugin is not None and record.info.kind is not PluginKind.ISOLATED:
            own = record.plugin.settings.model_dump(mode="json", fallback=str)
        else:  # only the plugin knows which of its keys are secret
            own = dict.fromkeys(section.options, MASK)
        plugins[record.name] = keys | own
    masked = masked_data(values | {"plugins": plugins}, secrets)
    return {
        path: MASK if value and any(map(looks_secret, path)) else value
        for path, value in leaves(masked)
        if value is not None
    }
