"""Words of any script, names of skills, and stems."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_career.language.clauses import read_clauses
from standards_mcp_career.language.tokens import stem, tokens_of
from standards_mcp_career.records import split_tags


def words(text: str) -> list[str]:
    """Return the meaningful words of a text."""
    return [word for clause in read_clauses(text) for word in clause.words.values()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C++17, C# and ASP.NET on Node.js", ["c++", "17", "c#", "asp.net", ".net", "node.js"]),
        ("R&D, Q&A, CI/CD", ["r&d", "q&a", "ci", "cd"]),
        ("a B.Sc. or Ph.D. in the U.S.", ["bsc", "phd", "us"]),
        ("an X-ray by T-SQL in Objective-C", ["xray", "tsql", "objectivec"]),
        ("the women's choir", ["women", "choir"]),
        ("ISO 9001, PRINCE2 and 3D", ["iso", "9001", "prince2", "3d"]),
        ("excellent experience of work in a team", []),
    ],
)
def test_names_of_skills_stay_whole_and_empty_words_are_left_out(text: str, expected: list[str]):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Programs in C and R", ["programs", "c", "r"]),
        ("I led a choir", ["led", "choir"]),
        ("A choir", ["choir"]),
        ("c r x", []),
        ("Category A licence", ["category", "a", "licence"]),
    ],
)
def test_a_single_letter_is_a_skill_if_it_is_a_capital_and_no_english_word(
    text: str, expected: list[str]
):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Größe in Zürich", ["grosse", "zurich"]),
        ("Δοκιμές лодок", ["δοκιμεσ", "лодок"]),
        ("गणित का अध्यापन", ["गणित", "का", "अध्यापन"]),
        ("프로젝트 관리", ["프로젝트", "관리"]),
        ("إدارة المشاريع", ["إدارة", "المشاريع"]),
        ("機械学習を担当", ["機械", "械学", "学習"]),
        ("データ分析", ["デー", "ータ", "分析"]),
        ("护理经验", ["护理"]),
        ("การขาย", ["กา", "าร", "รข", "ขา", "าย"]),
        ("\uff23\uff0b\uff0b", ["c++"]),
    ],
)
def test_words_of_any_script_are_kept_and_unspaced_ones_are_pairs(text: str, expected: list[str]):
    assert words(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        "teach teaches teaching taught teacher teachers",
        "nurse nurses nursing",
        "manage managed managing manager management",
        "operate operating operation operations operator",
        "plan plans planned planning planner",
        "bake baked baking",
        "certify certified certificate certification",
        "optimise optimised optimisation optimize optimization",
        "analysis analyst analysed analyses analytics",
        "photograph photography photographed photographer",
        "study studies studied",
        "account accounts",
        "accounting accountant accountants accountancy",
        "policy policies",
        "important importance",
        "import imports importing importer",
        "customer customers",
        "container containers",
    ],
)
def test_inflections_of_a_word_have_one_stem(forms: str):
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "pair",
    [
        ("care", "car"),
        ("java", "javascript"),
        ("c", "c++"),
        ("engine", "engineer"),
        ("server", "served"),
        ("office", "officer"),
        ("nurse", "nursery"),
        ("policy", "police"),
        ("importing", "important"),
        ("account", "accountant"),
    ],
)
def test_other_words_have_other_stems(pair: tuple[str, str]):
    assert stem(pair[0]) != stem(pair[1])


def test_tags_keep_names_of_skills_and_are_regular_at_once():
    regular = split_tags(["C++ and C", "Node.js", "r", "Größe", "a"], "meaningful")
    assert regular == ("and", "c", "c++", "grosse", "node.js", "r")
    assert split_tags(regular, "meaningful") == regular


ODD = st.text(alphabet="ab1 .,+-#&'/%€5年五万\u0e01\u3042orA\n\u0301\u0661", max_size=40)


@given(st.text() | ODD)
def test_any_text_is_read_and_makes_regular_tags(text: str):
    assert all(token.text for token in tokens_of(text))
    read_clauses(text)
    read_clauses(text, is_claim=True)
    regular = split_tags([text], "meaningful")
    assert regular == tuple(sorted({tag.lower() for tag in regular}))
