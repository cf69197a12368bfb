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


async def test_a_successor_that_is_over_is_told_as_such(tmp_path: Path):
    found = await retired(
        tmp_path,
        standard("A", publication_status="Deprecated", replaced_by=["B"]),
        standard("B", publication_status="Deprecated"),
    )
    told = "Q.A is retired (Deprecated); replaced by Q.B (retired too)"
    assert found["A"].told("Q.A") == told


@pytest.mark.parametrize(
    ("end", "is_over"),
    [
        ("2030-06-15", True),
        ("2030-06-16", False),
        ("2030-06-14 23:59", True),
        ("2030-05", True),
        ("2030-06", False),
        ("2029", True),
        ("2030", False),
        ("06/30/2031", False),
        ("06/30/2029", False),
        ("20290630", False),
        ("2029-13-01", False),
        ("2029-02-30", False),
        ("0000", False),
        ("unknown", False),
    ],
)
async def test_an_end_is_an_iso_date_and_a_year_or_month_ends_with_its_last_day(
    tmp_path: Path, end: str, *, is_over: bool
):
    found = await retired(tmp_path, standard("A", status_end_date=end))
    assert bool(found) == is_over


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


async def test_how_a_chain_goes_on_is_not_claimed_beyond_what_was_followed(tmp_path: Path):
    chain = [standard(f"N{each}", replaced_by=[f"N{each + 1}"]) for each in range(11)]
    catalog = LocalCatalog(tmp_path / "catalog", "none")
    await catalog.upsert([*chain, standard("N11")])
    found = await retirements(catalog, [chain[0]], TODAY)
    assert found["N0"].in_force == ()
    await catalog.aclose()


async def test_a_successor_that_is_not_loaded_is_named(tmp_path: Path):
    found = await retired(tmp_path, standard("A", replaced_by=["Elsewhere"]))
    assert found["A"].told("Q.A").endswith("replaced by Elsewhere (not loaded here)")


async def test_of_many_a_few_are_told(tmp_path: Path):
    records = [standard(f"N{each}", publication_status="retired") for each in range(5)]
    told = list(told_of(records, await retired(tmp_path, *records)))
    assert len(told) == 4
    assert told[-1] == "2 more are retired (see retired)"
