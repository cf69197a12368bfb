"""Properties of every cut of a text into passages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standards_mcp_documents import Block
from standards_mcp_knowledge.building.passages import MAX_CODE_FACTOR, cut

SIZES = st.integers(2, 30).flatmap(
    lambda words: st.tuples(st.just(words), st.integers(0, words // 2))
)
SHAPES = st.lists(st.tuples(st.integers(0, 150), st.booleans()), max_size=6)


def blocks_of(shapes: list[tuple[int, bool]]) -> list[Block]:
    """Return blocks in which all words differ."""
    return [
        Block(" ".join(f"w{number}x{word}" for word in range(count)), is_code=is_code)
        for number, (count, is_code) in enumerate(shapes)
    ]


@given(SHAPES, SIZES)
def test_every_word_is_there_in_its_order(shapes, sizes):
    blocks = blocks_of(shapes)

    passages = cut(blocks, *sizes)

    words = [word for passage in passages for word in passage.split()]
    assert list(dict.fromkeys(words)) == [word for block in blocks for word in block.text.split()]


@given(SHAPES, SIZES)
def test_a_passage_is_no_longer_than_asked_for_unless_it_is_one_piece_of_code(shapes, sizes):
    blocks = blocks_of(shapes)

    for passage in cut(blocks, *sizes):
        count = len(passage.split())
        assert 0 < count <= sizes[0] or (
            count <= MAX_CODE_FACTOR * sizes[0] and Block(passage, is_code=True) in blocks
        )


@given(SHAPES, SIZES)
def test_code_stays_whole_up_to_four_times_the_length(shapes, sizes):
    blocks = blocks_of(shapes)
    passages = cut(blocks, *sizes)

    for block in blocks:
        if block.is_code and 0 < len(block.text.split()) <= MAX_CODE_FACTOR * sizes[0]:
            assert sum(block.text in passage for passage in passages) == 1


@given(st.integers(0, 200), SIZES)
def test_a_passage_begins_with_the_last_words_of_the_one_before(count, sizes):
    words, overlap = sizes

    passages = [passage.split() for passage in cut(blocks_of([(count, False)]), words, overlap)]

    for before, after in pairwise(passages):
        assert len(before) == words
        assert after[:overlap] == before[words - overlap :]
        assert after[overlap] not in before


@given(st.text(max_size=300), SIZES)
def test_no_character_is_lost_but_white_space(text, sizes):
    passages = cut([Block(text)], sizes[0], 0)

    assert "".join("".join(passages).split()) == "".join(text.split())


def test_white_space_within_a_passage_stays():
    assert cut([Block("- one\n  - two"), Block("three")], 50, 0) == ["- one\n  - two\n\nthree"]


@pytest.mark.parametrize(
    "text", ["知識" * 300, "x" * 20_000], ids=["Chinese", "a long line of data"]
)
def test_text_without_spaces_is_cut_too(text):
    passages = cut([Block(text)], 200, 0)

    assert "".join(passages) == text
    assert len(passages) > 1
