from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standards_mcp_catalog.starter import starter_seed
from standards_mcp_catalog.vocabulary.notation import canonical_key, lookup_keys, record_keys
from standards_mcp_catalog.vocabulary.readings import Reading, is_code, readings, requests_in

steady = settings(derandomize=True, deadline=None, max_examples=300)

MEANT = {
    "5.NBT.7": ["standard 5.NBT.7", "Standard: 5.NBT.7", "the standard #5.NBT.7", "5NBTB7",
                "[5.NBT.7]", "\u201c5.NBT.7\u201d.", "\u2022 5.NBT.7", "5NBT.7", "CC.5.NBT.7",
                "https://tasks.illustrativemathematics.org/content-standards/5/NBT/B/7",
                "https://x.org/find?standard=CCSS.MATH.CONTENT.5.NBT.B.7&page=2",
                "https://x.org/common-core/CCSS.Math.Content.5.NBT.B.7/"],
    "3.NF.1": ["3NFA1", "3.NFA1", "3nfa1", "CCSS 3NFA1", "code 3 NF 1"],
    "K.CC.1": ["KCCA1", "KCC1", "CC.K.CC.1"],
    "8.F.1": ["8FA1", "8F1"],
    "A.REI.4": ["HSAREIB4", "A-REIB4", "AREI4", "CC.9-12.A-REI.4", "HSA.REI.B.4"],
    "A.REI.4.B": ["A-REI.4b", "HSAREIB4b", "CC.9-12.A.REI.4b"],
    "S.ID.6": ["CC.9-12.S-ID.6", "CC.9-12.S.ID.6", "9-12.S-ID.6"],
    "K.MD.1": ["CC.K.MD.1"],
    "MP.1": ["CC.K-12.MP.1", "standard MP1"],
    "CCR.R.1": ["CC.K-12.R.R.1"],
    "RL.3.1": ["CC.3.R.L.1", "3RL1", "CC.3.RL.1"],
    "RL.4.3": ["4RL3", "4.RL.3", "standard RL.4.3"],
    "RST.9-10.1": ["CC.9-10.R.ST.1", "RST.910.1", "9-10.RST.1"],
    "WHST.6-8.1.B": ["CC.6-8.W.HST.1.b", "WHST.68.1b"],
    "MS.PS1.1": ["https://www.nextgenscience.org/pe/ms-ps1-1-matter-and-its-interactions",
                 "https://www.nextgenscience.org/dci-arrangement/ms-ps1-1"],
}  # fmt: skip


@pytest.mark.parametrize("key", MEANT)
def test_a_code_is_understood_as_people_paste_it(key: str):
    for written in MEANT[key]:
        found = {canonical_key(each.code) for each in readings(written) if not each.places}
        assert key in found, written


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("ny-3.nf.1", "New York"),
        ("NYS 3.NF.1", "New York"),
        ("new york standard 3.NF.1", "New York"),
        ("CA-CCSS 3.NF.1", "California"),
        ("NJSLS.3.NF.A.1", "New Jersey"),
        ("MGSE3.NF.1", "Georgia"),
        ("Ohio: 3NFA1", "Ohio"),
    ],
)
def test_the_mark_of_a_state_means_its_standard_or_else_the_common_cores(written: str, state: str):
    own, common = readings(written)[-2:]
    assert canonical_key(own.code) == canonical_key(common.code) == "3.NF.1"
    assert (own.places, own.in_place_of) == ((state,), "")
    assert ("Common Core" in common.places, common.in_place_of) == (True, state)


def test_words_codes_and_states_without_the_common_core_are_not_read_so():
    for written in ("TX.3.NF.1", "Virginia 3.NF.1"):
        assert not any(reading.in_place_of for reading in readings(written))
    for written in ("or 3.NF.1", "in 3.NF.1", "MS-PS1-1", "MA.3.NSO.1.1", "CT.L2:1"):
        assert not any(reading.places for reading in readings(written))


def test_a_family_before_a_code_limits_it_to_its_places():
    assert Reading("3.5", places=("Virginia",)) in readings("SOL 3.5")
    assert Reading("111.5(b)(3)", places=("Texas",)) in readings("TEKS 111.5(b)(3)")


@pytest.mark.parametrize("written", ["3.NF.B.1", "3.NF.A.1", "ELA 2.23A", "S6E5.g", "nonsense"])
def test_a_code_that_says_all_is_not_read_otherwise(written: str):
    assert readings(f" {written} ") == (Reading(written),)


@pytest.mark.parametrize("text", ["fractions", "3.5", "2-digit", "MS", "", "1/2", "standard"])
def test_what_is_no_code_is_none(text: str):
    assert not is_code(text)


CODES: Mapping[str, frozenset[str]] = {
    record.statement_notation: record_keys(record)
    for record in starter_seed().records
    if record.statement_notation and record.statement_notation.startswith("CCSS.")
}
BY_KEY: dict[str, set[str]] = defaultdict(set)
for _code, _keys in CODES.items():
    for _key in _keys:
        BY_KEY[_key].add(_code)

DRESSES: tuple[Callable[[str], str], ...] = (
    str,
    str.lower,
    str.upper,
    lambda code: code.replace("CCSS.Math.Content.", "").replace("CCSS.ELA-Literacy.", ""),
    lambda code: code.replace("-", "\u2013"),
    lambda code: f"{code}.",
    lambda code: f"[{code}]",
    lambda code: f"({code})",
    lambda code: f"\u201c{code}\u201d,",
    lambda code: f"Standard: {code}",
    lambda code: f"standard {code}",
    lambda code: f"\u2022 {code}",
    lambda code: f"\t{code} \n",
)


@steady
@given(
    st.sampled_from(sorted(CODES)),
    st.sampled_from(["", "https://pages.example.org/standards/", "www.example.org/?code="]),
    st.lists(st.sampled_from(DRESSES), max_size=3),
)
def test_every_code_in_every_dress_leads_to_its_own_record(
    code: str, address: str, dresses: list[Callable[[str], str]]
):
    written = address + code
    for dress in dresses:
        written = dress(written)
    for reading in readings(written):
        if found := {each for key in lookup_keys(reading.code) for each in BY_KEY.get(key, ())}:
            assert found == {code}
            return
    pytest.fail(f"{written!r} was not found")


@steady
@given(st.text())
def test_any_text_is_read_without_an_error_and_first_as_it_stands(text: str):
    found = readings(text)
    assert len(found) <= 20
    assert [each.code for each in found[:1]] == [text.strip()] * bool(found)


@pytest.mark.parametrize(
    "part", ["a", " ", "3.", "NY-", "standard ", "(", "/3", "\u2022", "3.NF.1,"]
)
def test_the_longest_text_is_read_at_once(part: str):
    # Anything worse than linear would take hours.
    assert readings(part * 300_000 + "1") is not None
    assert requests_in(part * 10_000).names()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("3.NF.1; RL.4.3\nMP1", ["3.NF.1", "RL.4.3", "MP1"]),
        ("3.NF.1/3.NF.2", ["3.NF.1", "3.NF.2"]),
        ("3.NF.1, 3.NF.2, and RL.4.3.", ["3.NF.1", "3.NF.2", "RL.4.3"]),
        ("NY-4.NF.1 and NY-4.NF.2", ["NY-4.NF.1", "NY-4.NF.2"]),
        ("1. 3.NF.1\n2. 3.NF.2", ["3.NF.1", "3.NF.2"]),
        ("K.CC, K.OA", ["K.CC", "K.OA"]),
        ("3.NF.1, XYZ", ["3.NF.1", "XYZ"]),
        ("NGSS MS-PS1-1, MS-PS1-2", ["MS-PS1-1", "MS-PS1-2"]),
        ("3.NF.A.1: A fraction 1/b, made of 2-digit parts, is a number", ["3.NF.A.1"]),
        ("3.NF.1,,\n\n 3.NF.1", ["3.NF.1"]),
        # no list
        ("adding, subtracting and 3 apples", ["adding, subtracting and 3 apples"]),
        ("9-12.Data and Analysis.Storage", ["9-12.Data and Analysis.Storage"]),
        ("", [""]),
    ],
)
def test_a_text_names_as_many_standards_as_it_has_codes(text: str, names: list[str]):
    assert list(dict.fromkeys(requests_in(text).names())) == names


def test_a_number_in_a_list_of_codes_is_not_taken_for_the_code_of_somebody():
    for text in ("3.NF.1, 2 and 3", "3.NF.1, 2, 3", "3.NF.1 and 2", "3.NF.2a, b"):
        parts = requests_in(text).parts
        assert parts[0].readings
        assert not any(part.readings for part in parts[1:])


@pytest.mark.parametrize("text", ["9-12.Data and Analysis.Storage", "A, 3.NF.1", "3 NF\tA\n1"])
def test_the_whole_text_comes_first(text: str):
    assert requests_in(text).readings[0].code == text


@steady
@given(st.text() | st.text(alphabet="3.NFand ,;\n-/K"))
def test_any_text_is_taken_apart_without_an_error(text: str):
    request = requests_in(text)
    assert request.names()
    assert all(reading.code for reading in request.every_reading())


WRITTEN_CODES = ["3.NF.A.1", "RL.4.3", "HSA-REI.B.4b", "MP1", "K-2-ETS1-1", "1B-CS-02", "3.NF.2(a)"]


@steady
@given(
    st.lists(st.sampled_from(WRITTEN_CODES), min_size=2, unique=True),
    st.sampled_from([",", ", ", ";", "\n", "\r\n", " and ", " ", " | ", "\n\u2022 "]),
)  # fmt: skip
def test_codes_come_back_in_order_whatever_separates_them(codes: list[str], between: str):
    names = requests_in(between.join(codes)).names()
    assert names == codes
