"""The size of the answer to a search for an activity, in short and in full detail.

    python benchmarks/answers.py

The peer is the answer in full: it has the text of each standard twice, and the headings above it.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

import anyio

from standards_mcp._utils.text import BYTES_PER_TOKEN, tokens
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.tools import definition_tokens
from standards_mcp.host import Host
from standards_mcp_catalog import Catalog, open_local

ACTIVITIES = (
    "Students fold paper strips into equal parts and compare the fractions",
    "Measuring the classroom with rulers",
    "Telling time to the minute",
    "Writing a persuasive letter to the principal",
    "Finding the main idea of a text about whales",
    "Graphing the cost of pizza as a linear function",
    "Counting to 100 by ones and by ones",
    "Comparing two poems about the sea",
    "The area of a garden plot",
    "Probability with dice",
)
TOOL = "find_relevant_standards"


async def main() -> None:
    """Print the median size of an answer with five results, and of its fields."""
    sizes: dict[str, list[int]] = {"full": [], "short": []}
    fields: dict[str, list[int]] = defaultdict(lambda: [0] * len(ACTIVITIES))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(state_dir=Path(folder))
        services = {Catalog: open_local(Path(folder) / "catalog")}
        host = Host(LoadedSettings(settings, None), services=services)
        host.load()
        async with host.running():
            for number, activity in enumerate(ACTIVITIES):
                for detail, found in sizes.items():
                    arguments = {"activity": activity, "detail": detail}
                    found.append(tokens((await host.call_tool(TOOL, arguments)).text))
                short = (await host.call_tool(TOOL, {"activity": activity})).structured or {}
                for part in (short, *short["results"]):
                    for name in part.keys() - {"results"}:
                        fields[name][number] += _size(name, part[name])
            item = host.visible().find(TOOL)
    full_size, short_size = (statistics.median(found) for found in sizes.values())
    print(f"full   {full_size:7,.0f} tokens")
    print(f"short  {short_size:7,.0f} tokens, {short_size / full_size:.2f} of full")
    for name, found in sorted(fields.items(), key=lambda item: -statistics.median(item[1])):
        print(f"  {name:20} {statistics.median(found) / BYTES_PER_TOKEN:5,.0f}")
    if item:
        print(f"the definition of the tool: {definition_tokens(item):,} tokens")


def _size(name: str, value: object) -> int:
    """Return the bytes of a field in an answer, with the comma behind it."""
    field = json.dumps({name: value}, ensure_ascii=False, separators=(",", ":"))
    return len(field.encode()) - 1


if __name__ == "__main__":
    anyio.run(main)
