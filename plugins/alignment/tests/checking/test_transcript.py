"""The plain text of pasted lessons, and positions in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_alignment.checking.transcript import transcribe


@pytest.mark.parametrize(
    ("lesson", "text"),
    [
        ("3.NF.<b>A.1</b>", "3.NF.A.1"),
        ("**K.CC.A**.1 2*3", "**K.CC.A.1 2*3"),
        ("<span>3.NF.</span><span>A.1</span>", "3.NF.A.1"),
        ("RST.9&ndash;10.1 &#82;L.4.1&nbsp;x", "RST.9-10.1 RL.4.1 x"),
        ("4\u2011PS3\u20111", "4-PS3-1"),
        ("3\\.NF\\.A\\.1", "3.NF.A.1"),
        ("\u202e3.NF.A.1\u202c 3.\u200bNF.A.2", "3.NF.A.1 3.NF.A.2"),
        ("<p>a</p><script>3.NF.A.1</script>b", "\na\nb"),
        ("<!-- 3.NF.A.1 -->a<SCRIPT>x</script>", "\na"),
        ("<td>a</td><td>b</td>", "a | b | "),
        ("if a < b and c > d, 1 <2", "if a < b and c > d, 1 <2"),
        ("<script>never closed 3.NF.A.1", "never closed 3.NF.A.1"),
        (
            "\u0421\u043b\u043e\u0432\u043e \u00e9t\u00e9",
            "\u0421\u043b\u043e\u0432\u043e \u00e9t\u00e9",
        ),
        ("", ""),
    ],
)
def test_markup_and_hidden_characters_do_not_hide_codes(lesson: str, text: str):
    assert transcribe(lesson).text == text


@given(
    st.lists(
        st.sampled_from(
            [
                "<b>",
                "</b>",
                "<p>",
                "&ndash;",
                "<!--",
                "-->",
                "\u202e",
                "\u2011",
                "\ufb01",
                "x",
                "\\.",
            ]
        )
        | st.text(max_size=3)
    )
)
def test_each_ascii_letter_keeps_its_position(parts: list[str]):
    lesson = "".join(parts)
    transcript = transcribe(lesson)
    origins = [transcript.origin(place) for place in range(len(transcript.text))]
    assert origins == sorted(origins)
    for place, char in enumerate(transcript.text):
        if char == "x" and lesson[origins[place]] != "&":
            assert (
                lesson[origins[place]] in "x\uff58\u02e3\u2093\u2179\U0001d431"[:6]
                or not char.isascii()
            )


def test_a_span_covers_the_tags_inside():
    lesson = "See <i>3.NF.</i>A.1 now"
    transcript = transcribe(lesson)
    start = transcript.text.index("3.NF")
    begin, end = transcript.span(start, start + len("3.NF.A.1"))
    assert lesson[begin:end] == "3.NF.</i>A.1"


@pytest.mark.parametrize("text", ["<script>", "<!--", "<", "&", "<p", "\u202e", "\\."])
def test_hostile_repetitions_take_linear_time(text: str):
    assert len(transcribe(text * (100_000 // len(text))).text) <= 200_000
