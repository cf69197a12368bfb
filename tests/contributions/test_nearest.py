"""Which tool is meant by a name that no tool has."""

from __future__ import annotations

import pytest

from standards_mcp import Tool
from standards_mcp.contributions.tools import nearest_tool, read_tool

TOOLS = {
    "find_relevant_standards": (
        "search",
        "Find the standards that an activity meets. For one of them call get_standard_details.",
    ),
    "get_standard_details": (
        "lookup",
        "Get everything about one standard by its code. To search, find_relevant_standards.",
    ),
    "browse_standards": ("resources", "Walk down from sets to standards."),
    "web.fetch": ("web", "Download a page. It searches nothing."),
}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("search_standards", "find_relevant_standards"),
        ("find_relevent_standards", "find_relevant_standards"),
        ("lookup", "get_standard_details"),
        ("walk_sets", "browse_standards"),
        ("download_page", "web_fetch"),
        ("zzzzz", ""),
        ("", ""),
        ("sing_it", ""),
    ],
)
def test_the_tool_that_is_meant_is_found_by_its_words(name: str, meant: str):
    def function() -> str:
        return ""

    tools = [
        read_tool(plugin, Tool(name=each, description=text, function=function))
        for each, (plugin, text) in TOOLS.items()
    ]
    assert nearest_tool(name, tools) == meant
