"""The size of the answer to a search for an activity, in short and in full detail.

    python benchmarks/answers.py

The peer is the answer in full: it has the text of each standard twice, and the headings above it.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import anyio

from standards_mcp.calls.steps.output import definition_tokens, tokens
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
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
    """Print the median size of an answer with five results."""
    sizes: dict[str, list[int]] = {"full": [], "short": []}
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(state_dir=Path(folder))
        services = {Catalog: open_local(Path(folder) / "catalog")}
        host = Host(LoadedSettings(settings, None), services=services)
        host.load()
        async with host.running():
            for activity in ACTIVITIES:
                for detail, found in sizes.items():
                    arguments = {"activity": activity, "detail": detail}
                    found.append(tokens((await host.call_tool(TOOL, arguments)).text))
            item = host.visible().find(TOOL)
    full, short = (statistics.median(found) for found in sizes.values())
    print(f"full   {full:7,.0f} tokens")
    print(f"short  {short:7,.0f} tokens, {short / full:.2f} of full")
    if item:
        print(f"the definition of the tool: {definition_tokens(item):,} tokens")


if __name__ == "__main__":
    anyio.run(main)
