"""Where strands go on, by their codes alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_catalog.starter import starter_records
from standards_mcp_catalog.vocabulary.grades import GRADES
from standards_mcp_resources.grades import continuation, grades_name, neighbouring_grade
from standards_mcp_resources.tree import code_order

NEXT = [
    ("K.CC.A.1", "01", (("1.OA", "1.NBT"),)),
    ("CCSS.Math.Content.5.MD.B.2", "06", (("6.G", "6.SP"),)),
    ("5.G.A.1", "06", (("6.G",),)),
    ("7.RP.A.2a", "08", (("8.F", "8.EE"),)),
    ("8.EE.C.7", "09", (("A", "N"),)),
    ("4.NF.C.6", "05", (("5.NF", "5.NBT"),)),
    ("5-PS1-1", "06", (("3.5.PS1", "MS.PS1"),)),
    ("1-LS1-1", "02", (("2.LS1", "K.2.LS1", "3.LS1", "4.LS1", "5.LS1", "3.5.LS1"),)),
    ("1B-AP-10", "06", (("2.AP",),)),
    ("3B-AP-10", "12", ()),
    ("8.SP", "09", (("S",),)),
    ("W.4.9b", "05", (("W.5.9",), ("W.5",))),
    ("RST.6-8.3", "09", (("RST.9-10.3",), ("RST.9-10",))),
    ("SL.11-12.1", "10", (("SL.9-10.1",), ("SL.9-10",))),
    ("MP3", "05", ()),
    ("HSN-VM.A.1", "09", ()),
    ("8.G.A.1", "Graduate", ()),
    ("B.3.1", "04", ()),
    ("", "04", ()),
]
PREVIOUS = [
    ("3.NF.A.1", "02", (("2.G",),)),
    ("6.NS.A.1", "05", (("5.NBT", "5.NF"),)),
    ("5.NBT.B.7", "04", (("4.NBT", "4.NF"),)),
    ("6.EE", "05", (("5.OA",),)),
    ("HSN-RN.A.1", "08", (("8.NS", "8.EE"),)),
    ("HS-LS2-1", "08", (("MS.LS2",),)),
    ("K-LS1-1", "Pre-K", ()),
    ("2-DA-07", "05", (("1B.DA",),)),
    ("8.F.A.1", "07", (("7.RP",),)),
    ("HSG-CO.A.1", "08", (("8.G",),)),
    ("A.REI.3", "08", (("8.EE",),)),
    ("L.1.1", "K", (("L.K.1",), ("L.K",))),
    ("RH.6-8.1", "05", (("RI.5.1",), ("RI.5",))),
    ("RST.6-8.10", "05", (("RI.5.10",), ("RI.5",))),
    ("WHST.6-8.1a", "05", (("W.5.1",), ("W.5",))),
    ("RH.9-10.1", "08", (("RH.6-8.1",), ("RH.6-8",))),
]


@pytest.mark.parametrize(
    ("code", "level", "step", "strands"),
    [(*each[:2], 1, each[2]) for each in NEXT] + [(*each[:2], -1, each[2]) for each in PREVIOUS],
)
def test_a_strand_goes_on_where_its_code_says(
    code: str, level: str, step: int, strands: tuple[tuple[str, ...], ...]
):
    assert continuation(code, level, step).strands == strands


@pytest.mark.parametrize(
    ("code", "level", "expected"),
    [
        ("RL.4.1", "05", "RL.5.1"),
        ("CCSS.ELA-Literacy.RL.8.1", "09", "RL.9-10.1"),
        ("RI.9-10.2", "11", "RI.11-12.2"),
        ("RH.9-10.2", "08", "RH.6-8.2"),
        ("RH.6-8.2", "05", None),
        ("SL.1.1", "K", "SL.K.1"),
        ("L.4.1a", "05", None),
        ("D2.Eco.1.3-5", "06", "D2.ECO.1.6.8"),
        ("D4.3.9-12", "12", None),
        ("3.NF.A.1", "04", None),
        ("CCRA.R.1", "05", None),
    ],
)
def test_the_same_standard_has_the_same_number_in_language_arts_and_the_c3_framework(
    code: str, level: str, expected: str | None
):
    assert continuation(code, level, 1).code == expected


def test_nearly_every_standard_of_language_arts_goes_on_in_the_next_grade():
    known = {each for record in starter_records() for each in record.alt_statement_notations}
    missing = set[str]()
    for record in starter_records():
        if record.subject != "English Language Arts":
            continue
        level = neighbouring_grade(record.education_levels, 1)
        found = continuation(record.statement_notation or "", level or "", 1).code
        if level and found and found not in known:
            missing.add(found.rpartition(".")[0])
    # Foundational skills end with grade 5.
    assert "RF.6" in missing
    assert {each.partition(".")[0] for each in missing} <= {"RF", "W", "L", "RL"}


@pytest.mark.parametrize(
    ("levels", "after", "before"),
    [
        (["03"], "04", "02"),
        (["09", "10"], "11", "08"),
        (["K"], "01", "Pre-K"),
        (["09", "10", "11", "12"], None, "08"),
        (["Pre-K"], "K", None),
        (["Graduate"], None, None),
        ([], None, None),
    ],
)
def test_the_grade_after_and_before(levels: list[str], after: str | None, before: str | None):
    assert (neighbouring_grade(levels, 1), neighbouring_grade(levels, -1)) == (after, before)


def test_grades_are_named_as_a_sentence_needs_them():
    assert grades_name(["K", "01", "02"]) == "kindergarten to grade 2"
    assert grades_name(["Graduate"]) == "Graduate"
    assert grades_name([]) == "no grade"


def test_numbers_in_codes_count_as_numbers():
    codes = ["3.NF.10", "3.NF.9", None, "3.NF", "K.1", "12.A"]
    assert sorted(codes, key=code_order) == ["3.NF", "3.NF.9", "3.NF.10", "12.A", "K.1", None]


@given(st.text(max_size=30), st.sampled_from(GRADES), st.sampled_from([1, -1]))
def test_any_code_goes_on_somewhere_or_nowhere(code: str, level: str, step: int):
    found = continuation(code, level, step)
    assert all(strands and all(strands) for strands in found.strands)


@given(st.lists(st.text(max_size=8) | st.none(), max_size=6))
def test_any_codes_have_an_order(codes: list[str | None]):
    assert len(sorted(codes, key=code_order)) == len(codes)
