"""Catalogs for the plugin's tests: the starter set, and two editions of an invented state."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from standards_mcp import ToolResult
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp_alignment import AlignmentPlugin
from standards_mcp_catalog import Catalog, StandardRecord
from standards_mcp_catalog.importing.formats.tabular import read_table
from standards_mcp_catalog.local.catalog import LocalCatalog

# code, parent, grade, text; the title, the edition and the place follow from the table's name.
OLD = """\
3.F,,3,Fractions
3.F.1,3.F,3,Compare two fractions with the same denominator
3.F.2,3.F,3,Place unit fractions on a number line from zero to one
3.F.3,3.F,3,Cut circles into equal slices and name one slice as a fraction
3.M,,3,Measurement
3.M.1,3.M,3,Tell and write the time on a clock to the nearest minute
3.M.2,3.M,3,Estimate the volume of a liquid in liters and measure its mass in grams
3.M.3,3.M,3,Draw picture graphs of survey data
3.M.4,3.M,3,Draw bar graphs with a scale of five
3.M.5,3.M,3,Convert yards into furlongs with a table of old units
4.F,,4,Fractions
4.F.1,4.F,4,Add fractions with the same denominator on a number line
"""
NEW = """\
3.F,,3,Fractions
3.F.1,3.F,3,Compare two fractions with the same denominator
3.F.2,3.F,3,Place unit fractions and mixed numbers on a number line from zero to one
3.M,,3,Measurement
3.M.1,3.M,3,Tell and write the time on a clock to the nearest minute
3.M.2a,3.M,3,Estimate the volume of a liquid in liters
3.M.2b,3.M,3,Measure the mass of a liquid in grams
3.M.3,3.M,3,Draw picture graphs of survey data and bar graphs with a scale of five
3.P.1,3.M,3,Tell which of two spinners is more likely to land on red
4.F,,4,Fractions
4.F.1,4.F,4,Add fractions with the same denominator on a number line
4.F.9,4.F,4,Cut circles into equal slices and name one slice as a fraction
"""
SCIENCE = """\
3.S.1,,3,Roll balls down ramps of several heights and compare their speed
"""


def standards(
    rows: str, place: str, document: str, year: str, subject: str = "Mathematics"
) -> list[StandardRecord]:
    """Return the records of a table with code, parent, grade and text."""
    names = "code,parent,grades,text,jurisdiction,subject,document,edition,set_id"
    lines = [names]
    for row in rows.splitlines():
        code, parent, grade, text = row.split(",", 3)
        set_id = f"{place}-{year}-{subject}-{grade}"
        cells = [code, parent, grade, f'"{text}"', place, subject, document, year, set_id]
        lines.append(",".join(cells))
    table = io.BytesIO("\n".join(lines).encode())
    records = [each for each in read_table(table, "test") if isinstance(each, StandardRecord)]
    assert len(records) == len(lines) - 1
    return records


def all_records() -> list[StandardRecord]:
    return [
        *standards(OLD, "Aland", "Numbers of Aland", "2010"),
        *standards(NEW, "Aland", "Numbers of Aland", "2020"),
        *standards(SCIENCE, "Borduria", "Nature", "2015", "Science"),
    ]


@pytest.fixture
def make_standards() -> Callable[..., list[StandardRecord]]:
    """Return the function that makes records of a table."""
    return standards


@pytest.fixture
def editions() -> list[StandardRecord]:
    """Return the records of the catalog with two editions."""
    return all_records()


@pytest.fixture(scope="session")
def two_editions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCatalog]:
    catalog = LocalCatalog(tmp_path_factory.mktemp("editions") / "catalog")
    anyio.run(catalog.upsert, all_records())
    yield catalog
    anyio.run(catalog.aclose)


@pytest.fixture
def starter(planted: Path) -> Iterator[LocalCatalog]:
    """Return a catalog with the starter set only."""
    catalog = LocalCatalog(planted)
    yield catalog
    catalog.store.close()


Ask = Callable[..., ToolResult]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Return a function that calls a tool of the plugin over a catalog, as a client would."""

    def call(catalog: Catalog, tool: str, /, **arguments: Any) -> ToolResult:
        settings = Settings(state_dir=tmp_path, strict=True)
        installed = [PluginInfo(name="alignment", load=lambda: AlignmentPlugin)]
        host = Host(
            LoadedSettings(settings, None), installed=installed, services={Catalog: catalog}
        )
        host.load()
        return anyio.run(host.call_tool, tool, arguments)

    return call
