"""The plugin as its neighbours in the host see it."""

from __future__ import annotations

from standards_mcp.testing import check_plugin
from standards_mcp_resources import ResourcesPlugin


def test_the_plugin_keeps_the_rules():
    calls = [
        ("browse_standards", {}),
        ("get_related_standards", {"standard_id": "3.NF.A.1", "relation": "siblings"}),
    ]
    check_plugin(ResourcesPlugin, name="resources", calls=calls)
