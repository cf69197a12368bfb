"""A catalog of two jurisdictions, and lessons."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from standards_mcp_alignment.correlation import align_command
from standards_mcp_catalog.importing.formats.tabular import read_table
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.records import StandardRecord

TABLE = """\
code,parent,jurisdiction,subject,set_id,grades,label,text
3.NF.A.1,,Aland,Mathematics,Aland-Math,3,Standard,Cut a pizza into equal parts and name one part
3.NF.A.2,,Aland,Mathematics,Aland-Math,3,Standard,Fold paper strips and compare the fractions
4.NF.A.1,,Aland,Mathematics,Aland-Math,4,Standard,Draw pictures of fractions that are equal
4.PS.3.1,,Aland,Science,Aland-Science,4,Standard,Roll balls down a ramp and measure their speed
3.NF.A.1,,Borduria,Mathematics,Borduria-Math,3,Standard,Share a cake fairly among friends
5.SC.1.1,,Borduria,Science,Borduria-Science,5,Standard,Mix salt and water and explain the result
"""


@pytest.fixture
def standards(tmp_path: Path) -> Iterator[LocalCatalog]:
    """A catalog with two jurisdictions that use one code for different standards."""
    catalog = LocalCatalog(tmp_path / "catalog")
    records = read_table(io.BytesIO(TABLE.encode()), "the tests")
    catalog.store.upsert(each for each in records if isinstance(each, StandardRecord))
    yield catalog
    catalog.store.close()


@pytest.fixture
def align(standards: LocalCatalog) -> Callable[..., Result]:
    """Return a function that runs the command on `standards`, and checks its exit code."""

    def run(*arguments: object, status: int = 0) -> Result:
        command = align_command(lambda: standards)
        result = CliRunner().invoke(command, [str(each) for each in arguments])
        assert result.exit_code == status, result.output
        return result

    return run


@pytest.fixture
def lessons(tmp_path: Path) -> Path:
    """A folder with two lessons."""
    folder = tmp_path / "lessons"
    folder.mkdir()
    (folder / "strips.md").write_text(
        "# Strips\n\nGrade: 3\n\nWe fold paper strips and compare the fractions.\n", "utf-8"
    )
    (folder / "ramps.md").write_text(
        "# Ramps\n\nGrade: 4\n\nRoll balls down a ramp; measure their speed.\n", "utf-8"
    )
    return folder


@pytest.fixture
def installed(install: Callable[..., Any]) -> None:
    """Let processes that tests start find the plugin."""
    install(
        "alignment",
        "from standards_mcp_alignment import AlignmentPlugin as AlignmentPlugin",
        version="0.1.0",
    )
