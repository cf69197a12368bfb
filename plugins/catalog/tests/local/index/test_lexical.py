from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.records import record

from standards_mcp_catalog.local.index.lexical import common_words, with_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"\(\frac{1}{4}\) of a cup, ½", "fraction {1}{4} of a cup, fraction"),
        (r"{{{12}\over18}}", "{12} fraction 18"),
        ("3/4 of a cup", "3/4 fraction of a cup"),
        ("25% off", "25 percent off"),
        ("pay $2.50", "pay dollars 2.50 decimal"),
        ("Unit 2.1. Maps", "Unit 2.1. Maps"),
        (r"\sqrt{2}, √2", "square root {2}, square root 2"),
        (r"x^2, x^{3}, x², 2^{10}", "x squared , x cubed , x squared , 2 exponent {10}"),
        (r"x \le 3, y ≥ 4, z < 5", "x inequality 3, y inequality 4, z inequality 5"),
        (r"6 \times 7 \div 2", "6 times 7 divided by 2"),
        ("the graph of f(x)", "the graph of function f(x)"),
        (r"3 + \boxed{\phantom{8}}", "3 + unknown { {8}}"),
    ],
)
def test_signs_are_read_as_words(text: str, words: str):
    read = re.sub(r"\\[()]", "", " ".join(with_words(text).split()))
    assert words in " ".join(read.split())


@given(st.text())
def test_every_text_is_read_and_keeps_its_words(text: str):
    words = re.findall(r"[a-z]+", re.sub(r"\\[A-Za-z]+", " ", text))
    assert set(words) <= set(re.findall(r"[a-z]+", with_words(text)))


@given(st.text("abcdefghij .,;:!?\n"))
def test_a_text_without_signs_stays_as_it_is(text: str):
    assert with_words(text) == text


@pytest.mark.parametrize(
    ("query", "common"),
    [
        ("Measuring rectangles, and the Tiles.", ["Measuring", "rectangles", "Tiles"]),
        ("tile a tiled floor with TILES", ["tile", "floor"]),
        ("area-models for a garden", ["area-models", "garden"]),
        ("area/volume of gardens", ["gardens"]),
        ("with the depth of 0 and by its code, XQ.1", []),
        ("of the", []),
        ("\ud800 \u7530 ?! a" + "b" * 50, []),
        (
            "a set of red and blue bars, rods, strips, tiles: measure, model, area, floor, garden",
            [
                "blue",
                "bars",
                "rods",
                "strips",
                "tiles",
                "measure",
                "model",
                "area",
                "floor",
                "garden",
            ],
        ),
    ],
)
def test_the_common_words_of_a_query_and_a_record_are_as_they_were_written(
    query: str, common: list[str]
):
    heading = "Depth 0 (XQ): Area models of gardens"
    own = "Measure rectangles by tiles on the floor: a set of red and blue bars, rods or strips."
    here = record(1, own, content=f"{heading}\nDepth 1 (XQ.1): {own}")
    assert list(common_words(query, [here, record(2, "Zebras.")])) == [common, []]
