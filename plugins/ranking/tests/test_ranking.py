"""Tools are ranked by words and by meaning."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from standards_mcp_ranking import meaning, open_ranking
from standards_mcp_ranking.texts import stems, weighted_words
from standards_mcp_ranking.words import WordIndex


def definition(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"name": name, "title": None, "description": description, "inputSchema": schema}


TOOLS = [
    definition("fs_write_file", "Save a text on disk."),
    definition("fs_read_file", "Show what is in a document on disk."),
    definition("listIssues", "Return bug reports.", state={"enum": ["open", "closed"]}),
    definition("chart", "Draw.", series={"type": "array", "items": {"description": "Its colours"}}),
    definition("translate", "Übersetzt Texte zwischen Sprachen."),
]


def best(query: str) -> str:
    scores = open_ranking(TOOLS)(query)
    return TOOLS[scores.index(max(scores))]["name"]


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("write a file", "fs_write_file"),
        ("reading files", "fs_read_file"),
        ("which issues are there", "listIssues"),
        ("only the closed ones", "listIssues"),
        ("colour of the lines", "chart"),
        ("Texte übersetzen", "translate"),
        ("problems that users have told us about", "listIssues"),
        ("make a diagram", "chart"),
    ],
)
def test_the_best_tool_has_the_words_or_the_meaning(query: str, tool: str):
    assert best(query) == tool


@pytest.mark.parametrize("missing", ["onnxruntime", "standards_mcp_encoders"])
def test_words_count_alone_without_the_encoder(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, missing: str
):
    monkeypatch.setattr("standards_mcp_ranking.similarities", meaning.Meaning().similarities)
    for module in (missing, "standards_mcp_encoders.minilm"):
        monkeypatch.setitem(sys.modules, module, None)
    assert best("write a file") == "fs_write_file"
    assert best("list issues") == "listIssues"
    assert len(caplog.records) == 1, "it is said once"


def test_a_query_of_nothing_but_common_or_odd_words_is_no_error():
    scores = open_ranking(TOOLS)
    for query in ("", "the", "\ud800", "🙂", "x" * 5_000):
        assert len(scores(query)) == len(TOOLS)
    assert open_ranking([])("anything") == []


def test_the_vectors_of_texts_are_kept_and_their_number_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(meaning, "_MAX_KEPT", 3)
    own, encoded = meaning.Meaning(), list[str]()
    own.similarities("a", [["one"], ["two"]])
    encoder = own._encoder
    assert encoder is not None
    original = encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda texts: encoded.extend(texts) or original(texts))
    first = own.similarities("b", [["one"], ["two"]])
    assert encoded == ["b"]
    own.similarities("c", [["three"], ["four"]])
    assert own.similarities("b", [["one"], ["two"]]) == pytest.approx(first, abs=1e-6)


def test_words_are_read_in_names_titles_and_schemas_and_names_weigh_most():
    assert stems("HTTPServer createdAt snake_case2 Straße") == [
        *("http", "serv", "creat", "at", "snak", "cas", "2", "straß"),
    ]
    words = weighted_words(definition("get_file", "a file", path={"enum": ["file", 3]}))
    assert words["fil"] == 3 + 1 + 0.5
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"properties": {"a": deep}}
    assert weighted_words(definition("x", "", a=deep))["a"] == 150


def test_a_rare_word_counts_more_and_a_long_text_less():
    index = WordIndex([{"fil": 1, "rar": 1}, {"fil": 1}, {"fil": 1, "oth": 8}])
    rare, short, long = index.scores("rare file")
    assert rare > short > long > 0
