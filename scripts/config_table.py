"""Print every key of the configuration as a Markdown table, from the settings models.

usage: python scripts/config_table.py [--write]

With --write it goes into docs/configuration.md, between the markers there.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from standards_mcp.config.models.settings import PluginSection
from standards_mcp.config.schema import Key, config_keys
from standards_mcp_catalog.plugin import CatalogPlugin
from standards_mcp_search import SearchPlugin

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"
BEGIN, END = "<!-- keys -->\n", "<!-- end of keys -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put it into docs/configuration.md")
    if not parser.parse_args().write:
        print(table(), end="")
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8", newline="\n")


def table() -> str:
    """Return the table: the host's keys, and those of the plugins that come with it."""
    rows = [("key", "value", "default", "meaning"), ("---",) * 4, *map(_row, _keys())]
    return "".join(f"| {' | '.join(row)} |\n".replace("  ", " ") for row in rows)


def _keys() -> Iterator[Key]:
    own = {"catalog": CatalogPlugin, "search": SearchPlugin}
    tables = {f"plugins.{name}" for name in own}
    for key in config_keys({name: plugin.settings_type for name, plugin in own.items()}):
        # What the host reads of every plugin's table stands in a row for all of them.
        if key.table not in tables or key.name not in PluginSection.model_fields:
            yield key


def _row(key: Key) -> tuple[str, str, str, str]:
    path = f"{key.table}.{key.name}" if key.table else key.name
    return f"`{path}`", key.kind, f"`{key.default}`" if key.default else "", key.description


if __name__ == "__main__":
    main()
