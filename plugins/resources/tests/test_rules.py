"""The plugin as its neighbours in the host see it."""

from __future__ import annotations

import pytest

from standards_mcp.testing import check_plugin
from standards_mcp_catalog import Catalog
from standards_mcp_resources import ResourcesPlugin


@pytest.mark.slow
def test_the_plugin_keeps_the_rules(ten_records: Catalog):
    calls = [
        ("browse_standards", {}),
        ("get_related_standards", {"standard_id": "3.NF.A.1", "relation": "siblings"}),
    ]
    reads = [
        "standards://sets",
        "standards://sets?page=1",
        "standards://sets/Aland-Mathematics-03",
        "standards://standards/3.NF.A.1",
        "standards://standards/3.NF/tree",
        "standards://subjects",
        "standards://grades",
    ]
    check_plugin(
        ResourcesPlugin, name="resources", services={Catalog: ten_records}, calls=calls, reads=reads
    )
