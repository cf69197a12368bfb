from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.records import record

from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.starter import starter_seed
from standards_mcp_catalog.vocabulary.notation import (
    asn_id_of,
    canonical_key,
    codes_in,
    guid_of,
    lookup_keys,
    prefix_keys,
    record_keys,
)

steady = settings(derandomize=True, deadline=None, max_examples=100)

GUID = "1F72443D6AC449C7B959047522ED087B"
DASHED = "1f72443d-6ac4-49c7-b959-047522ed087b"

SPELLINGS = {
    "3.NF.1": [
        "3.NF.1", "3.nf.a.1.", "3-NF-1", "3NF1", "3_NF_A_1", "03.NF.A.01", "(3.NF.A.1)",
        "CCSS.Math.Content.3.NF.A.1", "ccss math 3 nf a 1", "CCSSM 3.NF.1", "CCSS-M 3.NF.1",
        "CC.3.NF.1", "Math.3.NF.A.1", "Common Core 3.NF.A.1", "3\u2013NF\u2014A\u22121",
        "\uff13\uff0e\uff2e\uff26\uff0e\uff21\uff0e\uff11", "3.\u200bNF.\ufeffA.1\u2060",
        "3\u00a0NF\tA\n1",
    ],
    "3.NF.2.A": ["3.NF.A.2a", "3.NF.2.a", "3.NF.2(a)", "CCSS.Math.Content.3.NF.A.2a"],
    "F.LE.1.A": ["hsf-le.a.1a", "F-LE.1a", "HSF.LE.A.1.a", "CCSS.Math.Content.HSF-LE.A.1a"],
    "G.GMD.4": ["HSG-GMD.B.4", "G-GMD.4", "CCSS.Math.Content.HSG-GMD.B.4"],
    "MP.1": ["MP1", "CCSS.Math.Practice.MP1", "SMP 1", "Mathematical Practice 1", "mp01"],
    "RL.3.1": ["RL.3.1", "CCSS.ELA-Literacy.RL.3.1", "CCSS.ELA/Literacy.RL.03.01", "RL3.1"],
    "L.3.1.A": ["L.3.1a", "L.3.1.a", "CCSS.ELA-Literacy.L.3.1a"],
    "L.1.2.E": ["L.1.2e", "CCSS 1 L 2.e"],
    "CCR.R.1": ["CCRA.R.1", "CCR.R.1", "CCSS.ELA-Literacy.CCRA.R.1"],
    "RST.9-10.1": ["RST.09-10.1", "RST 9 10 1", "CCSS.ELA-Literacy.RST.9\u201310.1"],
    "WHST.6-8.1.B": ["WHST.6-8.1b", "WHST.6.8.1.b", "CCSS.ELA-Literacy.WHST.6-8.1b"],
    "W.11-12.10": ["W.11-12.10", "W.11.12.10"],
    # headings
    "3.NF": ["3.NF", "CCSS.Math.Content.3.NF", "3-nf"],
    "3.NF.A": ["3.NF.A", "CCSS.Math.Content.3.NF.A"],
    "F.LE": ["HSF-LE", "F-LE", "hsf.le"],
    "RL.9-10": ["RL.9-10", "CCSS.ELA-Literacy.RL.9-10"],
    # other states
    "ELA.2.23.A": ["ELA 2.23A", "ELA 2.23(A)", "ela.2.23.a"],
    "3.2.12.B5": ["3.2.12.B5", "3.2.12.b5."],
    "MA.5.NSO.2.5": ["MA.5.NSO.2.5", "ma 5 nso 2 5"],
    "MS.PS1.1": ["MS-PS1-1", "ms\u2010ps1\u20101"],
    "K.MAT.5.1.3.A": ["K.MAT.5.1.3.a.", "K.MAT.5.1.3a"],
    "2A.4.A": ["2A.4A", "2A.4(A)"],
    # common core clusters without their letter
    "K.CC.5": ["K.CC.B.5"], "8.G.9": ["8.G.C.9"], "A.REI.12": ["HSA-REI.D.12"],
}  # fmt: skip


@pytest.mark.parametrize("key", SPELLINGS)
def test_every_spelling_of_a_code_has_the_same_key(key):
    assert {text: canonical_key(text) for text in SPELLINGS[key]} == dict.fromkeys(
        SPELLINGS[key], key
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("3.NF.A", "3.NF.1"),
        ("RL.9-10", "RL.9.10"),  # a band and the tenth standard of grade 9
        ("K.CC.A.1", "K.CC.B.1"),  # Colorado numbers anew within each cluster
        ("3.NF.B.1", "3.NF.1"),
        ("2A.4A", "2.A.4.A"),  # Texas: Algebra II, and grade 2
        ("1.F.A.4", "1.F.4"),  # no Common Core domain of that grade
        ("ELA 2.23A", "2.23A"),
        ("3.2.12.B5", "3.2.12.5"),
        ("MS-PS1-1", "HS-PS1-1"),
        ("NY-3.NF.1", "3.NF.1"),
    ],
)
def test_different_standards_keep_different_keys(left, right):
    assert canonical_key(left) != canonical_key(right)


@pytest.mark.parametrize("text", ["", "   ", "...", "\u200b", "\ud800"])
def test_a_text_without_letters_or_digits_has_no_key(text):
    assert canonical_key(text) == ""
    assert not any(key.startswith("code:") for key in lookup_keys(text))
    assert prefix_keys([text]) == frozenset()


CODE_LIKE = st.lists(
    st.sampled_from(
        [
            *("KNAFGSWLabe123689.-. -.(\u2013"),
            *("10", "11", "12", "NF", "HS", "HSF", "LE", "RL", "RST", "CCRA"),
            *("CCSS", "Math", "ELA", "Literacy", "MP", "CC"),
        ]
    ),
    max_size=12,
).map("".join)


@steady
@given(CODE_LIKE | st.text())
def test_the_key_of_a_key_is_the_key(text):
    key = canonical_key(text)
    assert canonical_key(key) == key


@steady
@given(CODE_LIKE)
def test_case_and_surroundings_never_matter(text):
    assert canonical_key(f" ({text.lower()}). ") == canonical_key(text)


URI = f"https://case.example.org/ims/case/v1p0/CFItems/{DASHED}"


@pytest.mark.parametrize(
    "text",
    [
        GUID.lower(), DASHED.upper(), f"{{{DASHED}}}", f"urn:uuid:{DASHED}", f"URN:GUID:{GUID}",
        f" <{DASHED}> ", f"{URI}.json", f"{URI}?view=full#top", DASHED.replace("-", "\u2011"),
        f"case.example.org/uri/{DASHED}/",
    ],
)  # fmt: skip
def test_a_guid_is_known_in_every_dress(text):
    assert guid_of(text) == GUID
    assert lookup_keys(text) == (f"guid:{GUID}",)


@pytest.mark.parametrize("text", ["", "3.NF.1", GUID[:-1], GUID + "0", f"https://x.org/?id={GUID}"])
def test_other_texts_are_no_guid(text):
    assert guid_of(text) is None


@pytest.mark.parametrize(
    "text", ["S11437E2", "s11437e2 ", "http://asn.jesandco.org/resources/S11437E2.json"]
)
def test_an_asn_id_is_known_bare_and_as_a_uri(text):
    assert asn_id_of(text) == "S11437E2"
    assert lookup_keys(text)[0] == "asn:S11437E2"


@pytest.mark.parametrize("text", ["SS6E3", "S6E3", "D10003FB", "S-CP.1", "S1143 7E2"])
def test_codes_are_no_asn_ids(text):
    assert asn_id_of(text) is None


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        (" 3.NF.A.1 ", ("id:3.NF.A.1", "code:3.NF.1")),
        ("3.RL.1", ("id:3.RL.1", "code:3.RL.1", "code:RL.3.1")),
        ("k.l.1a", ("id:k.l.1a", "code:K.L.1.A", "code:L.K.1.A")),
        ("3.R.1", ("id:3.R.1", "code:3.R.1")),
        ("https://example.org/a/b", ("id:https://example.org/a/b",)),
    ],
)
def test_a_code_is_an_own_id_then_the_states_then_the_common_cores(typed, keys):
    assert lookup_keys(typed) == keys


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("http://www.corestandards.org/Math/Content/3/NF/A/1/", "code:3.NF.1"),
        ("https://www.thecorestandards.org/Math/Content/HSF/LE/A/1/a", "code:F.LE.1.A"),
        ("http://www.corestandards.org/Math/Content/3/NF/A/1/?utm_source=x#top", "code:3.NF.1"),
    ],
)
def test_a_page_of_the_common_core_site_is_a_code(address, key):
    assert key in lookup_keys(address)


def with_codes(**fields: Any) -> StandardRecord:
    return record(1, "Counts to ten.", **{"_id": GUID, "statement_notation": None, **fields})


def test_a_record_is_kept_under_all_its_identifiers():
    other = "6b9bfb73-d7cc-11e8-824f-0242ac160002"
    known = with_codes(
        asn_identifier="S1143477",
        statement_notation="CCSS.Math.Content.3.OA.A.1",
        alt_statement_notations=["3.OA.1", "Old-7"],
        case_uri=f"https://case.example.org/uri/{other}",
        case_uuid=None,
    )
    assert record_keys(known) == {
        f"guid:{GUID}",
        "asn:S1143477",
        "code:3.OA.1",
        "code:OLD.7",
        f"guid:{other.replace('-', '').upper()}",
    }


def test_a_record_without_codes_is_kept_under_its_id():
    assert record_keys(with_codes(_id="my-7", statement_notation=" ")) == {"id:my-7"}


IDENTIFIERS = st.text(min_size=1) | CODE_LIKE.filter(bool) | st.sampled_from([DASHED, "S11437E2"])


@steady
@given(own=IDENTIFIERS, asn=IDENTIFIERS, case=IDENTIFIERS)
def test_whatever_identifies_a_record_finds_it(own, asn, case):
    keys = record_keys(with_codes(_id=own, asn_identifier=asn, case_uri=case))
    for identifier in (own, asn, case):
        assume(identifier.strip())
        assert keys.intersection(lookup_keys(identifier))


@steady
@given(CODE_LIKE)
def test_whatever_code_a_record_has_finds_it(code):
    assume(canonical_key(code))
    assert record_keys(with_codes(statement_notation=code)).intersection(lookup_keys(code))


@pytest.mark.parametrize(
    ("code", "beginnings"),
    [
        ("3.NF.1", ["3", "3.NF", "3.NF.A", "3.NF.1"]),
        ("HSF-LE.A.1a", ["HSF", "F", "F.LE", "F.LE.A", "F.LE.1", "F.LE.1.A"]),
        ("RST.9-10.1", ["RST", "RST.9", "RST.9-10", "RST.9-10.1"]),
        ("CCSS.ELA-Literacy.CCRA.R.1", ["CCSS.ELA", "CCRA", "CCR", "CCR.R", "CCR.R.1"]),
        ("CCSS.Math.Practice.MP1", ["CCSS", "CCSS.MATH", "CCSS.MATH.PRACTICE", "MP", "MP.1"]),
        ("2A.3(B)", ["2A", "2A.3", "2A.3.B"]),
    ],
)
def test_a_code_begins_with_all_that_people_cut_it_to(code, beginnings):
    assert prefix_keys([code]) >= set(beginnings)


def test_a_number_is_not_the_beginning_of_a_longer_one():
    assert "3.NF.1" not in prefix_keys(["3.NF.10", "3.NF.12"])


def test_in_the_starter_set_what_stands_below_a_code_begins_with_it():
    records = {each.id: each for each in starter_seed().records}
    for each in records.values():
        above = [records[id_].statement_notation or "" for id_ in each.ancestor_ids]
        assert {canonical_key(code) for code in above} <= prefix_keys([each.statement_notation])


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("What standards cover 4.OA.A.3?", ["4.OA.A.3"]),
        ("An activity for RL.3.1, RL.3.2 and again RL.3.1.", ["RL.3.1", "RL.3.2"]),
        ("see ccss.math.content.hsf-le.a.1a/8.g.b.7", ["ccss.math.content.hsf-le.a.1a", "8.g.b.7"]),
        ("Practices MP1 and SMP.3", ["MP1", "SMP.3"]),
        ("Grade 3, e.g. 3.5 cm, step-by-step, 1-2-3, p.m., 9.5.2024", []),
        ("", []),
    ],
)
def test_codes_are_found_inside_a_sentence(text, codes):
    assert codes_in(text) == tuple(codes)
