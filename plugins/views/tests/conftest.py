"""The plugins whose answers the views show."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hosts import MakeHost

from standards_mcp.host import Host
from standards_mcp_alignment import AlignmentPlugin
from standards_mcp_catalog.plugin import CatalogPlugin
from standards_mcp_lookup import LookupPlugin
from standards_mcp_resources import ResourcesPlugin
from standards_mcp_search import SearchPlugin
from standards_mcp_views import ViewsPlugin

PLUGINS = {
    "catalog": CatalogPlugin,
    "lookup": LookupPlugin,
    "search": SearchPlugin,
    "resources": ResourcesPlugin,
    "alignment": AlignmentPlugin,
    "views": ViewsPlugin,
}


@pytest.fixture
def host(make_host: MakeHost, starter_catalog: Path) -> Host:
    """A host with the views and the tools that they show."""
    return make_host(PLUGINS, plugins={"catalog": {"path": str(starter_catalog)}})
