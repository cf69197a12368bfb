"""A pytest plugin for the tests of plugins that use the catalog.

Its one fixture is `catalog`. Give it to the host's kit as
``connect(..., services={Catalog: catalog})``. pytest imports this module at the start of every
session, so it imports next to nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .local.catalog import LocalCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[LocalCatalog]:
    """A catalog of the test's own with ten records, see `standards_mcp_catalog.kit`."""
    from .kit import small_catalog  # noqa: PLC0415  - see the module's docstring

    catalog = small_catalog(tmp_path / "catalog")
    yield catalog
    catalog.store.close()
