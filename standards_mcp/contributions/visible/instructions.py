"""The instructions that clients give to the model, joined from those of the plugins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from .selection import Selection

_TOOL: Final = re.compile(r"\{([A-Za-z][\w.-]*)\}")


def joined_instructions(plugins: Mapping[str, str], selection: Selection) -> str:
    """Return the instructions of all plugins with visible contributions, each line once.

    Declared names of tools in braces are replaced by the names that clients see. A line that names
    a tool which is not visible is left out.

    Args:
        plugins: The instructions of each plugin, by its name.
    """
    names = {item.declared: item.published for item in selection.visible_tools}
    texts = (text for plugin, text in plugins.items() if plugin in selection.serving)
    return " ".join(dict.fromkeys(_lines(texts, names)))


def _lines(texts: Iterable[str], names: Mapping[str, str]) -> Iterator[str]:
    for text in texts:
        for line in filter(None, map(str.strip, text.splitlines())):
            if names.keys() >= {*_TOOL.findall(line)}:
                yield _TOOL.sub(lambda match: names[match[1]], line)
