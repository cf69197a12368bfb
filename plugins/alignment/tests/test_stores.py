"""Both tools on the embedded store and on Pinecone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.catalogs import STORES, FilledCatalogs

from standards_mcp_alignment import AlignmentPlugin
from standards_mcp_catalog import Catalog, StandardRecord

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("store", STORES)
async def test_the_tools_answer_on_every_store(
    store: str, editions: list[StandardRecord], make_host: Callable[..., Any], tmp_path: Path
) -> None:
    filled = FilledCatalogs(editions, tmp_path / "filled")
    async with filled.opened(store, tmp_path / "catalog") as catalog:
        host = make_host({"alignment": AlignmentPlugin}, given={Catalog: catalog})
        compared = await host.call_tool(
            "compare_standards", {"left": "Aland 2010", "right": "Aland 2020"}
        )
        checked = await host.call_tool(
            "check_coverage",
            {
                "activities": ["3.M.1", "Draw picture graphs of survey data"],
                "grade": "3",
                "subject": "math",
                "standard_set": "Aland-2020-Mathematics-3",
            },
        )
    assert compared.structured["counts"] == {
        "reworded": 1, "moved": 1, "split": 1, "merged": 1, "new": 1, "gone": 1, "kept": 6,
    }  # fmt: skip
    assert "3.M.1" in [each["code"] for each in checked.structured["standards"] if each["covered"]]
    assert len(checked.structured["standards"]) == 7
