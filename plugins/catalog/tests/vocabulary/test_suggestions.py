from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standards_mcp_catalog.starter import starter_seed
from standards_mcp_catalog.vocabulary.notation import canonical_key, is_common_core
from standards_mcp_catalog.vocabulary.suggestions import nearest

CODES = st.lists(st.sampled_from(["3", "NF", "RL", "A", "9", "12", "XY", "1a"]), max_size=5).map(
    ".".join
)
KEYS = [
    *("3.NF", "3.NF.A", "3.NF.1", "3.NF.2", "3.NF.2.A", "3.MD.1", "4.NF.1", "5.NF.1", "3.F.F.1"),
    *("RL.3.1", "RL.3.10", "RI.3.1", "MP.1", "MP.2", "MS.PS1.1", "MS.PS1.2", "ESS.9"),
    *("A.REI.11", "A.REI.12", "RH.6-8.1", "RL.9-10.1"),
]


@pytest.mark.parametrize(
    ("missed", "suggestions"),
    [
        ("3.NF.9", ["3.NF.2", "3.NF.1", "3.NF.A"]),
        ("3.NF.B.1", ["3.NF.1"]),
        ("NY.3.NF.1", ["3.NF.1"]),
        ("RL.3.11", ["RL.3.10", "RL.3.1"]),
        ("MP.9", ["MP.2", "MP.1"]),
        ("3.NF.A.9", ["3.NF.2", "3.NF.1"]),
        ("A.REI.E.12", ["A.REI.12", "A.REI.11"]),
        ("3.RL.1", ["RL.3.1"]),
        ("RH.7.1", ["RH.6-8.1"]),
        ("10.RL.1", ["RL.9-10.1"]),
        ("XYZ", []),
    ],
)
def test_a_miss_suggests_the_nearest_codes(missed, suggestions):
    found = nearest(missed, KEYS)
    assert found[: len(suggestions)] == suggestions
    assert bool(found) == bool(suggestions)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(CODES.map(canonical_key), st.integers(0, 6))
def test_suggestions_are_few_distinct_and_known(missed, limit):
    found = nearest(missed, [*KEYS, *KEYS], limit)
    assert len(found) == len(set(found)) <= limit
    assert set(found) <= set(KEYS)
    assert found == nearest(missed, reversed(KEYS), limit)


def test_fifty_thousand_codes_are_searched():
    codes = itertools.product(range(12), range(100), range(42))
    many = [f"{grade}.D{domain}.{number}" for grade, domain, number in codes]
    many += [f"S{number}.1.2" for number in range(3000)]
    assert nearest("3.D7.99", many)[0] == "3.D7.41"
    assert nearest("Q.D7.9", many, 1) == ["0.D7.9"]


@pytest.mark.parametrize(
    "foreign",
    ["MS.PS1.1", "111.5.B.3", "6.11.A", "3.SS.31", "S5L2.A", "8.3.12.A", "3.2.4", "K.2.5", "5.24",
     "D2.ECO.7.K.2", "1B.AP.14", "SS.HS.4.3", "RW.3.2.2", "KY.HS.C.5"],
)  # fmt: skip
def test_a_code_in_the_form_of_others_is_near_to_none(foreign: str):
    common = [record.statement_notation or "" for record in starter_seed().records]
    assert nearest(foreign, map(canonical_key, filter(is_common_core, common))) == []


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [("3.MF.1", "3.NF.1"), ("3.NF1.", "3.NF.1"), ("RL.31", "RL.3.1"), ("RSR.9-10.4", "RST.9-10.4")],
)
def test_one_mistyped_character_leads_to_the_code_that_was_meant(mistyped: str, meant: str):
    assert nearest(canonical_key(mistyped), ["3.NF.1", "RL.3.1", "RST.9-10.4"])[:1] == [meant]


def test_nothing_of_another_family_is_near():
    assert nearest("3.PS.1", ["3.NS.1"]) == ["3.NS.1"]
    assert nearest("3.PS2.1", ["3.SP.1", "3.SP2.1", "3.PS2.2"]) == ["3.PS2.2", "3.SP2.1"]
