"""Which standards are retired, and what replaces them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.relations import Retirement, retirements, told_of

pytestmark = pytest.mark.anyio
TODAY = "2030-06-15"


def standard(id_: str, **fields: Any) -> StandardRecord:
    data = {
        "_id": id_, "content": f"Depth 0: {id_}", "statement_notation": f"Q.{id_}",
        "standard_set_id": "S", "standard_set_title": "Set", "subject": "Counting",
        "jurisdiction_id": "J", "jurisdiction_title": "J",
    }  # fmt: skip
    return StandardRecord.from_dict(data | fields)


async def retired(folder: Path, *records: StandardRecord) -> dict[str, Retirement]:
    catalog = LocalCatalog(folder / "catalog", "none")
    await catalog.upsert(records)
    try:
        return await retirements(catalog, records, TODAY)
    finally:
        await catalog.aclose()


async def test_retired_is_what_its_source_says_what_ended_and_what_is_replaced(tmp_path: Path):
    found = await retired(
        tmp_path,
        standard("A", publication_status="Deprecated"),
        standard("B", status_end_date="2030-06-15T00:00:00"),
        standard("C", replaced_by=["F"]),
        standard("D", publication_status="Adopted", status_end_date="2031-01-01"),
        standard("E"),
        standard("F"),
    )
    assert {id_: each.status for id_, each in found.items()} == {
        "A": "Deprecated", "B": "Expired", "C": "Superseded",
    }  # fmt: skip
    assert found["C"].in_force == ("F",)
    assert found["A"].told("Q.A") == "Q.A is retired (Deprecated); no successor is known"
    assert found["C"].told("Q.C") == "Q.C is retired (Superseded); replaced by Q.F"
    assert found["B"].to_dict() == {
        "status": "Expired", "ended": "2030-06-15T00:00:00", "replaced_by": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("successors", "told"),
    [
        ([], "replaced by B (not loaded here)"),
        ([standard("B", publication_status="Deprecated")], "replaced by Q.B (retired too)"),
        ([standard("B")], "replaced by Q.B"),
    ],
    ids=["not loaded", "over", "in force"],
)
async def test_a_successor_is_told_as_what_it_is(
    tmp_path: Path, successors: list[StandardRecord], told: str
):
    found = await retired(tmp_path, standard("A", replaced_by=["B"]), *successors)
    assert found["A"].told("Q.A") == f"Q.A is retired (Superseded); {told}"


async def test_an_end_is_an_iso_date_and_a_year_or_month_ends_with_its_last_day(tmp_path: Path):
    over = ["2030-06-15", "2030-06-14 23:59", "2030-05", "2029"]
    not_over = [
        "2030-06-16",
        "2030-06",
        "2030",
        "06/30/2029",
        "20290630",
        "2029-13-01",
        "0000",
        "x",
    ]
    records = [standard(end, status_end_date=end) for end in over + not_over]
    assert list(await retired(tmp_path, *records)) == over


async def test_the_new_standard_alone_may_say_what_it_replaces(tmp_path: Path):
    found = await retired(tmp_path, standard("A"), standard("B", replaces=["A"]))
    assert list(found) == ["A"]
    (successor,) = found["A"].to_dict()["replaced_by"]
    assert successor == {
        "_id": "B", "statement_notation": "Q.B", "loaded": True, "in_force": True, "origin": "Set",
    }  # fmt: skip


async def test_a_chain_is_followed_to_what_is_in_force(tmp_path: Path):
    found = await retired(
        tmp_path,
        standard("A", replaced_by=["B"]),
        standard("B", replaced_by=["C", "D"]),
        standard("C"),
        standard("D", publication_status="Withdrawn"),
    )
    assert [each.identifier for each in found["A"].successors] == ["B", "C", "D"]
    assert found["A"].in_force == ("C",)
    assert found["A"].told("Q.A").endswith("replaced by Q.C")


async def test_a_circle_and_a_long_chain_end(tmp_path: Path):
    circle = [standard("A", replaced_by=["B"]), standard("B", replaced_by=["A"])]
    chain = [standard(f"N{each}", replaced_by=[f"N{each + 1}"]) for each in range(40)]
    found = await retired(tmp_path, *circle, *chain, standard("N40"))
    assert [each.identifier for each in found["A"].successors] == ["B"]
    assert found["A"].told("Q.A") == "Q.A is retired (Superseded); replaced by Q.B (retired too)"
    assert len(found["N0"].successors) == 10
    assert found["N0"].told("Q.N0").endswith("replaced by Q.N1 (retired too)")
    assert "N40" not in found


async def test_of_many_a_few_are_told(tmp_path: Path):
    records = [standard(f"N{each}", publication_status="retired") for each in range(5)]
    told = list(told_of(records, await retired(tmp_path, *records)))
    assert len(told) == 4
    assert told[-1] == "2 more are retired (see retired)"
