from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standards_mcp_catalog.vocabulary.readings import requests_in

steady = settings(derandomize=True, deadline=None, max_examples=200)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("3.NF.1", ["3.NF.1"]),
        ("3.NF.1,3.NF.2", ["3.NF.1", "3.NF.2"]),
        ("3.NF.1; RL.4.3\nMP1", ["3.NF.1", "RL.4.3", "MP1"]),
        ("3.NF.1 3.NF.2 5-PS1-1", ["3.NF.1", "3.NF.2", "5-PS1-1"]),
        ("3.NF.1/3.NF.2", ["3.NF.1", "3.NF.2"]),
        ("3.NF.1 and 3.NF.2", ["3.NF.1", "3.NF.2"]),
        ("3.NF.1, 3.NF.2, and RL.4.3.", ["3.NF.1", "3.NF.2", "RL.4.3"]),
        ("NY-4.NF.1 and NY-4.NF.2", ["NY-4.NF.1", "NY-4.NF.2"]),
        ("1. 3.NF.1\n2. 3.NF.2", ["3.NF.1", "3.NF.2"]),
        ("(3.NF.1; 3.NF.2)", ["3.NF.1", "3.NF.2"]),
        ("[3.NF.1] [3.NF.2]", ["3.NF.1", "3.NF.2"]),
        ("K.CC, K.OA", ["K.CC", "K.OA"]),
        ("3.NF.1, XYZ", ["3.NF.1", "XYZ"]),
        ("3.NF.1 XX.7", ["3.NF.1", "XX.7"]),
        ("NGSS MS-PS1-1, MS-PS1-2", ["MS-PS1-1", "MS-PS1-2"]),
        (
            "3.NF.A.1: A fraction 1/b, made of 2-digit parts, is a number",
            ["3.NF.A.1"],
        ),
        ("3.NF.1,,\n\n 3.NF.1", ["3.NF.1"]),
        ("S11437E2 S11437E3", ["S11437E2", "S11437E3"]),
        # no list
        ("nonsense", ["nonsense"]),
        ("adding, subtracting and 3 apples", ["adding, subtracting and 3 apples"]),
        ("ELA 2.23A", ["ELA 2.23A"]),
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


CODES = ["3.NF.A.1", "RL.4.3", "HSA-REI.B.4b", "MP1", "K-2-ETS1-1", "1B-CS-02", "3.NF.2(a)"]


@steady
@given(
    st.lists(st.sampled_from(CODES), min_size=2, unique=True),
    st.sampled_from([",", ", ", ";", "\n", "\r\n", " and ", " ", " | ", "\n\u2022 "]),
)  # fmt: skip
def test_codes_come_back_in_order_whatever_separates_them(codes: list[str], between: str):
    names = requests_in(between.join(codes)).names()
    assert names == codes


@pytest.mark.parametrize(
    "part", ["3.NF.1,", "3.NF.1 ", " and ", "a,", "3.", "(", " ", "\n\u2022 3.NF.1"]
)
def test_the_longest_text_is_taken_apart_at_once(part: str):
    # Anything worse than linear would take hours.
    assert requests_in(part * 10_000).names()
