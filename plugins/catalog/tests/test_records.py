"""The order of records in their tree."""

from __future__ import annotations

from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.records import depth_first


def record(id_: str, *child_ids: str) -> StandardRecord:
    return StandardRecord(
        _id=id_,
        content=f"Depth 0: {id_}",
        standard_set_id="set",
        standard_set_title="Set",
        subject="Mathematics",
        jurisdiction_id="Aland",
        jurisdiction_title="Aland",
        child_ids=child_ids,
    )


def test_each_root_is_followed_by_its_subtree_in_the_order_of_its_children():
    records = [record("a", "c", "b"), record("b", "d"), record("c"), record("d"), record("e")]
    by_id = {each.id: each for each in records}
    ordered = depth_first([by_id["e"], by_id["a"]], by_id)
    assert [each.id for each in ordered] == ["e", "a", "c", "b", "d"]


def test_a_record_occurs_once_though_it_is_reached_twice_or_in_a_circle():
    records = [record("a", "b", "unknown"), record("b", "a")]
    ordered = depth_first([*records, *records], {each.id: each for each in records})
    assert [each.id for each in ordered] == ["a", "b"]
