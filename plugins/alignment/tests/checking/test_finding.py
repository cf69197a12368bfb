"""Texts that may be codes, and texts that only look like codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_alignment.checking import finding
from standards_mcp_alignment.checking.finding import Candidate, Evidence
from standards_mcp_alignment.checking.forms import Form, form_of


def candidates(text: str) -> list[Candidate]:
    return list(finding.candidates(text))


CERTAIN, FAMILIAR, EXACT = Evidence.CERTAIN, Evidence.FAMILIAR, Evidence.EXACT


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (
            "We meet 3.NF.A.1 and CCSS.ELA-Literacy.RL.4.3 today.",
            ["3.NF.A.1", "CCSS.ELA-Literacy.RL.4.3"],
        ),
        (
            "**3.NF.A.1**, _RL.4.3_, [MS-PS1-4](page), `D2.Eco.1.3-5`",
            ["3.NF.A.1", "RL.4.3", "MS-PS1-4", "D2.Eco.1.3-5"],
        ),
        ("(1B-AP-10); 3.OA.A.1/3.OA.A.2.", ["1B-AP-10", "3.OA.A.1", "3.OA.A.2"]),
        ("RL.4.1-3", ["RL.4.1", "RL.4.2", "RL.4.3"]),
        ("3.NF.A.3a-c", ["3.NF.A.3a", "3.NF.A.3b", "3.NF.A.3c"]),
        ("RL.4.1-RL.4.3", ["RL.4.1", "RL.4.3"]),
        ("RST.9-10.1", ["RST.9-10.1"]),
        ("Standards: 3NF1; MP3, SS.4.1b", ["3NF1", "MP3", "SS.4.1b"]),
        ("## Standards (CCSS)\n\n- 4MD9\n- 3NF1", ["4MD9", "3NF1"]),
        ("| Day | Standard |\n|---|---|\n| 1 | SS.4.1b |", ["SS.4.1b"]),
        ("TEKS 3.4A, 3.5B and 3.6", ["3.4A", "3.5B", "3.6"]),
        ("\u00a7110.5(b)(3) and 111.6(b)(4)(A)", ["\u00a7110.5(b)(3)", "111.6(b)(4)(A)"]),
        ("Standard number 3.NF.A.1", ["3.NF.A.1"]),
        ("NY-3.NF.1", ["NY-3.NF.1"]),
    ],
)
def test_codes_are_found_in_the_ways_that_teachers_write_them(text: str, codes: list[str]):
    assert [each.text for each in candidates(text) if each.evidence is CERTAIN] == codes


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("SOL 3.5", "SOL 3.5"),
        ("NGSS: MS-PS1-4", "NGSS MS-PS1-4"),
        ("Ohio standard 3.NF.1", "Ohio 3.NF.1"),
        ("NY 3.NF.1", "NY 3.NF.1"),
        ("George Washington. (3.NF.1)", "3.NF.1"),
        ("SOL 3.5, then 7.G.B.4", "7.G.B.4"),
    ],
)
def test_a_label_before_a_code_belongs_to_it(text: str, asked: str):
    assert candidates(text)[-1].asked == asked


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("the standard 3.G of this unit", [EXACT]),
        ("Use 3.NF.A.1 and 3.G", [CERTAIN, EXACT]),
        ("Standards: 3.5, 4.7A", [EXACT, EXACT]),
        ("Standards: 3.5 hours", []),
        ("SS.4.1b today", [FAMILIAR]),
        ("S7L1.b today", [EXACT]),
        ("Standards: 3.NF.A.1\nMaterials: M4-12-B3", [CERTAIN, FAMILIAR]),
    ],
)
def test_less_clear_texts_need_the_catalog(text: str, evidence: list[Evidence]):
    assert [each.evidence for each in candidates(text)] == evidence


@pytest.mark.parametrize(
    "text",
    [
        "H2O and C2H4",
        "Room 3.G.2",
        "Rm. 4.NF.1",
        "version 3.NF.1",
        "v5.NF.B",
        "see Figure 3.NF.1",
        "Table 4.NF.2",
        "https://example.org/3.NF.A.1",
        "k.cc.1@example.org",
        "lesson_3.NF.A.1_v2.docx",
        "4.MD.A.1.pdf",
        "John 3:16",
        "x=3.G.2",
        "a 5G network",
        "an MP3 player",
        "K-12 schools",
        "Highway W.4.2",
        "Serial number 3.NF.A.1",
        "8:15-9:00",
        "3.14",
        "C:\\units\\3.OA.A.1",
        "www.example.org/MS-LS1-1",
        "10.30 to 11.15",
        "well-known",
        "3.5-oz cups",
    ],
)
def test_other_texts_are_not_certain(text: str):
    assert [each for each in candidates(text) if each.evidence is CERTAIN] == []


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("3.NF.A.1", Form.CERTAIN),
        ("2.NF.A.1", Form.CERTAIN),
        ("5-PS9-1", Form.CERTAIN),
        ("K.CC.A", Form.CERTAIN),
        ("3.Nf3", Form.COMPACT),
        ("l.4.1", Form.COMPACT),
        ("3NF1", Form.COMPACT),
        ("A-REI", Form.HEADING),
        ("RL.4", Form.HEADING),
        ("PS1.A", Form.NAMED),
        ("3F2504E0-4F89-41D3-9A0C-0305E82C3301", Form.NAMED),
        ("SS.3.4b", Form.SHAPED),
        ("2.4.1", Form.SHORT),
        ("10:15", None),
        ("12", None),
        ("word", None),
        ("9" * 50 + ".a.1" + "b" * 20, None),
    ],
)
def test_the_form_of_a_text(text: str, form: Form | None):
    assert form_of(text) is form


@given(st.text() | st.text("3.NFA-1() :|\n*_Standards"))
def test_any_text_has_candidates_in_order_and_in_place(text: str):
    found = candidates(text)
    assert [each.start for each in found] == sorted(each.start for each in found)
    assert all(text[each.start : each.end].strip() for each in found)


@pytest.mark.parametrize(
    "text", ["3.NF.A.1 ", "1-", "(", "a_", "SOL ", "Ohio ", "3.5, ", "| ", "Standard "]
)
def test_a_long_line_takes_linear_time(text: str):
    assert len(candidates(text * (100_000 // len(text)))) <= 100_000
