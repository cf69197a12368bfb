"""A small catalog of our own for the tests of the plugins.

Heavy plugins are tested where they are installed, see scripts/check.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

from standards_mcp import Plugin, ToolResult
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.testing import Connect
from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.testing import small_catalog

Ask = Callable[..., ToolResult]

collect_ignore = [
    package.parent.parent.name
    for package in Path(__file__).parent.glob("*/standards_mcp_*/__init__.py")
    if find_spec(package.parent.name) is None
]

ROWS = [
    # id, code, grade, subject, state, parent, text
    ("A" * 32, "3.NF", "03", "Mathematics", "Aland", None, "Fractions"),
    ("B" * 32, "3.NF.A", "03", "Mathematics", "Aland", "A", "Fractions are numbers"),
    ("C" * 32, "3.NF.A.1", "03", "Mathematics", "Aland", "B", "Cut a pizza into equal slices"),
    ("D" * 32, "3.NF.A.2", "03", "Mathematics", "Aland", "B", "Fractions on a number line"),
    ("E" * 32, "4.NF.A.1", "04", "Mathematics", "Aland", None, "Equal fractions by drawing"),
    ("F" * 32, "3.NF.1", "03", "Mathematics", "Borduria", None, "Share a cake in equal pieces"),
    ("0" * 32, "RL.3.1", "03", "English Language Arts", "Aland", None, "Ask about a story"),
    ("1" * 32, "RL.3.9", "03", "English Language Arts", "Borduria", None, "Ask about a story"),
    ("2" * 32, None, "05", "Science", "Aland", None, "Mix water and salt and weigh both"),
]


def records() -> list[StandardRecord]:
    ids = {row[0][0]: row[0] for row in ROWS}
    texts = {row[0]: row[6] for row in ROWS}
    parents = {row[0]: ids.get(row[5] or "") for row in ROWS}

    def ancestors(identifier: str) -> list[str]:
        parent = parents[identifier]
        return [*ancestors(parent), parent] if parent else []

    return [
        StandardRecord.from_dict(
            {
                "_id": identifier,
                "content": "\n".join(
                    f"Depth {depth}: {texts[item]}"
                    for depth, item in enumerate([*ancestors(identifier), identifier])
                ),
                "standard_set_id": f"{state}-{grade}",
                "standard_set_title": f"{subject} {grade}",
                "subject": subject,
                "education_levels": [grade],
                "jurisdiction_id": state,
                "jurisdiction_title": state,
                "statement_notation": code,
                "parent_id": parents[identifier],
                "ancestor_ids": ancestors(identifier),
                "child_ids": [item for item, parent in parents.items() if parent == identifier],
                "depth": len(ancestors(identifier)),
                "description": text,
                "text_status": "official",
            }
        )
        for identifier, code, grade, subject, state, _, text in ROWS
    ]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Return random numbers; the report of a failed test has their seed."""
    seed = random.randrange(10**9)  # noqa: S311
    request.node.add_report_section("setup", "chance", f"random.Random({seed})")
    return random.Random(seed)  # noqa: S311


@pytest.fixture(scope="session")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCatalog]:
    catalog = LocalCatalog(tmp_path_factory.mktemp("catalog"))
    anyio.run(catalog.upsert, records())
    yield catalog
    anyio.run(catalog.aclose)


@pytest.fixture
def ten_records(tmp_path: Path) -> Iterator[LocalCatalog]:
    """Return the catalog of the kit; `catalog` is one for all tests, with more to tell apart."""
    catalog = small_catalog(tmp_path / "ten-records")
    yield catalog
    catalog.store.close()


@pytest.fixture
def connect(connect: Connect, ten_records: LocalCatalog) -> Connect:
    """Return the kit's function, which serves a plugin with the ten records unless told."""
    return partial(connect, services={Catalog: ten_records})


@pytest.fixture
def ask(catalog: LocalCatalog, tmp_path: Path) -> Ask:
    """Return a function that calls the one tool of a plugin as a client would."""

    own = catalog

    def call(
        plugin: type[Plugin[Any]],
        name: str,
        /,
        options: Any = None,
        catalog: Catalog = own,
        **arguments: Any,
    ):
        settings = Settings(state_dir=tmp_path, plugins={"tested": options or {}}, strict=True)
        installed = [PluginInfo(name="tested", load=lambda: plugin)]
        services = {Catalog: catalog}
        host = Host(LoadedSettings(settings, None), installed=installed, services=services)
        host.load()
        return anyio.run(host.call_tool, name, arguments)

    return call
