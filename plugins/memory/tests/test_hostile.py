"""No stored text can pass for a heading, a link or a fence of an answer."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mcp import Client

from standards_mcp_memory.import_files import read_source
from standards_mcp_memory.import_markdown import read_note
from standards_mcp_memory.records import default_preview, tags_in
from standards_mcp_memory.rendering import (
    fenced,
    inline,
    one_line,
    render_batch,
    render_document,
    render_search,
)

OpenMemory = Callable[..., AbstractAsyncContextManager[Client]]
PARTS = [
    "# Forged", "\n# Forged", "\n\n## Forged\n", "Forged\n===", "===", "Forged\n---", "```",
    "````\n", "\n```\n", "~~~\n", "[a](http://x)", "![a](http://x)", "<a href='x'>", "<script>",
    "<!--", "http://example.org", "\r", "\x00", "\x1b[2J", "\u202e", "\u2066", "\u200b", "\u2028",
    "\u2029", "\\", "\\\\`", "`", "``", "*", "**", "__", "|a|b|\n|-|-|", "- x", "\n- x",
    "1. x", "\n1. x", "> x", "\n> x", "\t", "    code", "&lt;", "&#35;", "{", "}", "~~x~~", "+ x",
    "[x]: http://x", "\n\n[x]: http://x\n", "word", "é", "🐝", "\ufeff", "!", " ", "\n\n",
    "**Tags:** #x",
]  # fmt: skip
INLINE = {"text", "strong_open", "strong_close", "softbreak", "text_special", "hardbreak"}


def hostile(seed: int) -> str:
    chance = random.Random(seed)  # noqa: S311  - the same texts in each run
    return "".join(chance.choices(PARTS, k=chance.randint(1, 8)))


def tokens(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def blocks(text: str) -> list[str]:
    return [each.type for each in tokens(text) if each.nesting >= 0]


def check_inline(text: str) -> None:
    for token in tokens(text):
        for child in token.children or []:
            assert child.type in INLINE, (child, text)


def document(seed: int) -> Any:
    return {
        "id": seed + 1,
        "collection": "api",
        "title": hostile(seed),
        "preview": hostile(seed + 10_000),
        "content": hostile(seed + 20_000),
        "tags": [hostile(seed + 30_000)],
    }


@pytest.mark.parametrize("start", range(0, 1000, 250))
def test_a_thousand_hostile_memories_stay_in_their_places(start: int):
    for seed in range(start, start + 250):
        found = document(seed)
        text = render_document(found)
        kinds = [each for each in blocks(text) if each != "inline"]
        quote = ["blockquote_open", "paragraph_open"] if inline(found["preview"]) else []
        expected = ["heading_open", "paragraph_open", *quote, "fence"]
        assert kinds == expected, text
        (fence,) = [each for each in tokens(text) if each.type == "fence"]
        shown = (found["content"] + "\n").replace("\r\n", "\n").replace("\r", "\n")
        assert fence.content == shown.replace("\x00", "\ufffd")
        check_inline(text)


def test_lists_of_hostile_previews_have_an_item_each():
    for seed in range(0, 1000, 10):
        results: list[Any] = [
            {"id": 1, "title": hostile(each), "preview": hostile(each + 7), "score": -0.5}
            for each in range(seed, seed + 10)
        ]
        found: Any = {"collection": "a*b", "query": "q", "count": 10, "results": results}
        text = render_search(found)
        kinds = blocks(text)
        assert kinds.count("heading_open") == 1
        assert kinds.count("list_item_open") == 10
        assert kinds.count("ordered_list_open") == 1
        assert not {"fence", "code_block", "html_block", "table_open", "hr"} & set(kinds)
        check_inline(text)


def test_a_preview_makes_no_heading_and_no_item_of_the_line_it_is_in():
    assert inline("=== \n") == "\\==="
    assert inline("10. Forged") == "10\\. Forged"
    assert inline("a = b, 1. c, 1.5") == "a = b, 1. c, 1.5"
    assert inline("1.5 = 1.5") == "1.5 = 1.5"


def test_a_batch_of_hostile_memories_has_a_heading_each():
    documents = [document(seed) for seed in range(50)]
    missing: list[Any] = [{"doc_id": 1, "collection": "# [x](y)"}]
    batch: Any = {"count": 50, "documents": documents, "not_found": missing}
    kinds = blocks(render_batch(batch))
    assert (kinds.count("heading_open"), kinds.count("fence")) == (50, 50)
    check_inline(render_batch(batch))


@pytest.mark.anyio
async def test_hostile_memories_pass_through_the_store_in_both_formats(open_memory: OpenMemory):
    async with open_memory(path=":memory:") as client:
        for seed in range(40):
            given = {"title": "x" + hostile(seed), "content": hostile(seed + 20_000)}
            stored = await client.call_tool("memory_store", {"collection": "api", **given})
            assert not stored.is_error, stored.content
            place = {"doc_id": seed + 1, "collection": "api"}
            markdown = await client.call_tool("memory_fetch", place)
            raw = await client.call_tool("memory_fetch", {**place, "response_format": "json"})
            assert json.loads(raw.content[0].text) == markdown.structured_content
            assert raw.structured_content == markdown.structured_content
            assert markdown.structured_content is not None
            assert {**markdown.structured_content, **given} == markdown.structured_content
            assert blocks(markdown.content[0].text).count("heading_open") == 1


@given(st.text())
def test_a_line_is_one_line_that_reads_as_it_was(text: str):
    shown = inline(text)
    assert len(shown.splitlines()) <= 1
    (token, *_) = [each for each in tokens(f"x{shown}x") if each.type == "inline"]
    read = "".join(each.content for each in token.children or [])
    assert read == f"x{one_line(text)}x" or "&" in text
    assert not any(unicodedata.category(each) in ("Cc", "Cf") for each in shown)


@given(st.text(st.sampled_from("`~\n a"), max_size=30))
def test_a_fence_holds_all_of_its_content(text: str):
    found = tokens(fenced(text))
    assert [each.type for each in found] == ["fence"]
    assert found[0].content == f"{text}\n"


@given(
    st.text("ab .", min_size=1).map(str.strip).filter(bool),
    st.text("ab .!", min_size=1).map(lambda text: " ".join(text.split())).filter(bool),
    st.text("ab\n.#*", min_size=1).map(str.strip).filter(bool),
    st.lists(st.text("abc-", min_size=1), unique=True),
)
def test_the_form_is_read_as_it_is_written(title: str, preview: str, content: str, tags: list[str]):
    head = f"**Title:** {title}\n**Preview:** {preview}"
    named = " ".join(f"#{tag}" for tag in tags)
    form = read_note(f"{head}\n\n**Content:** {content}\n\n**Tags:** {named}\n")
    assert form is not None
    assert (form.title, form.preview, form.content) == (" ".join(title.split()), preview, content)
    assert list(form.tags) == tags


def test_tags_come_from_the_last_line_with_tags():
    assert tags_in("**Tags:** #a\ntext\n**Tags:** #retry #http #retry") == ["retry", "http"]
    assert tags_in("text #no\n**Tags:** #a,#b, ##c") == ["a", "b", "c"]
    assert tags_in("no tags") == []
    assert read_note("**Title:** only") is None


@given(st.text())
def test_a_preview_is_short_and_in_one_line(text: str):
    preview = default_preview(text)
    assert len(preview) <= 300
    assert "\n" not in preview


def test_a_preview_has_two_sentences_cut_between_words():
    assert default_preview("One. Two! Three?") == "One. Two!"
    long = default_preview("word " * 100)
    assert (len(long) <= 300, long[-5:]) == (True, "word…")
    assert default_preview("x" * 400) == "x" * 299 + "…"


@given(st.text(), st.sampled_from(["a.md", "a.jsonl"]), st.sampled_from(["file", "headings"]))
def test_any_text_is_read_or_skipped(text: str, name: str, split: Any):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        source = read_source(file, split)
        assert not any(each.is_empty for each in source.drafts)


def test_long_lines_of_white_space_take_no_time(tmp_path: Path):
    file = tmp_path / "a.md"
    file.write_text("## " + " " * 200_000 + "#" * 200_000 + " x\n" + "---\n" * 50_000)
    assert len(read_source(file, "headings").drafts) == 1
