"""The tests that every store passes: the same records and the same calls bring the same answers.

A module of tests imports the classes, and has the fixtures `store`, which is empty, and `filled`,
which has `RECORDS`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from standards_mcp.filters import matches, parse_filter
from standards_mcp_catalog import CatalogError, FilterError
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.records import StandardRecord
from standards_mcp_catalog.results import SearchResult
from standards_mcp_catalog.vocabulary.notation import PREFIXES_FIELD, canonical_key

EVERYTHING = "learners"
"""A query that every record answers."""

NORTH = {"jurisdiction_id": "north", "jurisdiction_title": "Northland"}
SOUTH = {"jurisdiction_id": "south", "jurisdiction_title": "Southland"}
GUID = "6B9BF846F1EF4A2C8C7A1B2C3D4E5F60"
CASE_GUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
CASE_URI = f"https://case.example.org/ims/case/v1p1/CFItems/{CASE_GUID}"


def standard(id_: str, text: str, subject: str = "Mathematics", **fields: Any) -> StandardRecord:
    title = f"{subject} of {fields['jurisdiction_title']}"
    data = {
        "_id": id_,
        "content": f"Depth 0: {text}",
        "description": text,
        "subject": subject,
        "standard_set_id": title.casefold().replace(" ", "-"),
        "standard_set_title": title,
    }
    return StandardRecord.from_dict(data | fields)


SAME_TEXT = "Learners explain what a unit fraction is."
RECORDS = {
    "a": standard(
        GUID, SAME_TEXT, **NORTH, education_levels=["03"], asn_identifier="S11437E2",
        statement_notation="CCSS.Math.Content.3.NF.A.1", alt_statement_notations=["3.NF.1"],
        depth=2, is_root=False, year=2010, tested=True,
    ),
    "b": standard(
        "B", SAME_TEXT, **SOUTH, education_levels=["03"], statement_notation="S.MA.3.1",
        depth=1, is_root=False, year=2022, tested=False,
    ),
    "c": standard(
        "C", "Learners compare two fractions.", **NORTH, education_levels=["03", "04"],
        statement_notation="CCSS.Math.Content.3.NF.A.2", depth=2, is_root=False, year=2010,
    ),
    "d": standard(
        "D", "Learners work with numbers and operations.", **NORTH, child_ids=["C", GUID],
        education_levels=["03", "04", "05"], is_leaf=False,
    ),
    "e": standard(
        "E", "Learners ask and answer questions about a tale.", "Language Arts", **NORTH,
        education_levels=["03"], statement_notation="CCSS.ELA-Literacy.RL.3.1",
        alt_statement_notations=["R.3.L-1", "RL.3.1"], depth=2, is_root=False, skills=["reading"],
    ),
    "f": standard(
        "F", "Learners cite evidence from technical texts.", "Language Arts", **NORTH,
        education_levels=["09", "10"], statement_notation="CCSS.ELA-Literacy.RST.9-10.1",
        depth=1, is_root=False, skills=["reading", "citing"], tested=True,
    ),
    "g": standard(
        "G", "Learners model that matter is made of small particles.", "Science", **SOUTH,
        education_levels=["05"], statement_notation="5-PS1-1", weight=1.5, year=2013,
    ),
    "h": standard(
        "H", "Learners observe the weather.", "Science", **SOUTH, education_levels=["K"],
        statement_notation="K-ESS2-1", weight=3, skills=["observing", "citing"],
    ),
    "i": standard(
        "I", "Learners tell what a map shows.", "Social Studies", **SOUTH,
        publication_status="Draft", weight=-2,
    ),
    "j": standard(
        "J", "Learners factor polynomials.", **SOUTH, education_levels=["11", "12"],
        statement_notation="2A.3(B)", license="CC BY 4.0", source_url="https://south.example.org",
    ),
    "k": standard(
        "own id/1&2?x=%20#+", "Learners sing in tune.", "Music", **SOUTH,
        education_levels=["Pre-K", "K"], statement_notation="Mu:Pr4.1.PKa", tested=False,
    ),
    "l": standard(
        "L", "Learners write an opinion.", "Language Arts", **SOUTH, education_levels=["03"],
        statement_notation="W.O.3", case_uuid=CASE_GUID, case_uri=CASE_URI,
    ),
    "m": standard(
        "M", "Learners measure areas.", **NORTH, education_levels=["03"], parent_id="D",
        content="Depth 0: Learners work with numbers.\nDepth 1 (3.Q.1): Learners measure areas.",
        statement_notation="3.Q.1", ancestor_ids=["D"], depth=1, is_root=False, tested=True,
    ),
    "n": standard(
        "N", "Les élèves — learners — saluent: « ¿qué tal? » 你好 🙂", "Français", **NORTH,
        education_levels=["05"], statement_notation="É-3.1",
        nested={"x": [1, 2.5, "y"]}, numbers=[1, 2], mixed=["a", 1, True], empty=[], big=2**60,
        share=0.25, note="", content_hash="mine", notation_keys="mine", other_fields=["mine"],
    ),
}  # fmt: skip
LETTERS = {record.id: letter for letter, record in RECORDS.items()}
ALL = "".join(RECORDS)


def letters(records: Any) -> str:
    return "".join(LETTERS[record.id] for record in records)


def found(result: SearchResult) -> str:
    """Return the letters of all records that a result stands for, in the order of the alphabet."""
    every = [record for hit in result.hits for record in (hit.record, *hit.also_in)]
    assert len(every) == len({record.id for record in every})
    return "".join(sorted(letters(every)))


FILTERS: list[tuple[Any, str]] = [
    (None, ALL),
    ({}, ALL),
    ({"subject": "Mathematics"}, "abcdjm"),
    ({"subject": {"$eq": "mathematics"}}, ""),
    ({"subject": "Français"}, "n"),
    ({"subject": {"$ne": "Mathematics"}}, "efghikln"),
    ({"subject": {"$in": ["Science", "Music", "Alchemy"]}}, "ghk"),
    ({"subject": {"$nin": ["Mathematics", "Science"]}}, "efikln"),
    ({"education_levels": "03"}, "abcdelm"),
    ({"education_levels": {"$in": ["04", "K"]}}, "cdhk"),
    ({"education_levels": {"$ne": "03"}}, "fghjkn"),
    ({"education_levels": {"$nin": ["03", "05", "K"]}}, "fj"),
    ({"education_levels": {"$exists": True}}, "abcdefghjklmn"),
    ({"education_levels": {"$exists": False}}, "i"),
    ({"skills": "citing"}, "fh"),
    ({"skills": {"$ne": "citing"}}, "e"),
    ({"alt_statement_notations": {"$exists": True}}, "ae"),
    ({"statement_notation": {"$exists": False}}, "di"),
    ({"statement_notation": "5-PS1-1"}, "g"),
    ({"_unheard_of": {"$exists": False}}, ALL),
    ({"_unheard_of": {"$exists": True}}, ""),
    ({"_unheard_of": {"$ne": 1}}, ""),
    ({"_unheard_of": {"$nin": ["x"]}}, ""),
    ({"depth": 1}, "bfm"),
    ({"depth": 1.0}, "bfm"),
    ({"depth": {"$gt": 1}}, "ace"),
    ({"depth": {"$gte": 1}}, "abcefm"),
    ({"depth": {"$lt": 1}}, "dghijkln"),
    ({"depth": {"$lte": 1}}, "bdfghijklmn"),
    ({"depth": {"$gt": 0, "$lt": 2}}, "bfm"),
    ({"depth": {"$in": [1, 2]}}, "abcefm"),
    ({"weight": {"$gte": 1.5}}, "gh"),
    ({"weight": {"$lt": 0}}, "i"),
    ({"weight": {"$nin": [3]}}, "gi"),
    ({"year": {"$gt": 2010, "$lte": 2022}}, "bg"),
    ({"year": "2010"}, ""),
    ({"year": {"$ne": "2010"}}, "abcg"),
    ({"subject": {"$gt": 1}}, ""),
    ({"is_leaf": False}, "d"),
    ({"is_root": {"$ne": True}}, "abcefm"),
    ({"tested": True}, "afm"),
    ({"tested": {"$ne": True}}, "bk"),
    ({"tested": 1}, ""),
    ({"depth": True}, ""),
    ({"tested": {"$in": [False, "x"]}}, "bk"),
    ({"note": ""}, "n"),
    ({"share": 0.25}, "n"),
    ({"jurisdiction_title": "Northland", "education_levels": {"$in": ["03"]}}, "acdem"),
    ({"$and": [{"depth": {"$gte": 1}}, {"tested": {"$exists": True}}]}, "abfm"),
    ({"$or": [{"subject": "Music"}, {"weight": {"$lt": 0}}]}, "ik"),
    ({"$or": [{"subject": "Music"}, {"subject": {"$in": ["Science"]}}]}, "ghk"),
    ({"$and": [{"skills": "reading"}, {"skills": "citing"}]}, "f"),
    ({"$and": [{"subject": {"$ne": "Science"}}, {"subject": {"$ne": "Music"}}]}, "abcdefijlmn"),
    ({"subject": "Mathematics", "$or": [{"depth": 2}, {"is_leaf": False}]}, "acd"),
    (
        {"$or": [{"jurisdiction_id": "south", "tested": False}, {"weight": 3, "depth": 0}]},
        "bhk",
    ),
    (
        {
            "$and": [
                {"$or": [{"education_levels": "03"}, {"education_levels": "K"}]},
                {"$or": [{"jurisdiction_id": "north"}, {"subject": "Science"}]},
                {"depth": {"$lt": 2}},
            ]
        },
        "dhm",
    ),
    (
        {
            "$or": [
                {"$and": [{"subject": {"$nin": ["Music"]}}, {"tested": False}]},
                {"$and": [{"$or": [{"depth": 2}, {"weight": {"$gt": 2}}]}, {"skills": "citing"}]},
                {"publication_status": {"$exists": True}},
            ]
        },
        "bhi",
    ),
    ({"$and": [{"$and": [{"$and": [{"$or": [{"weight": 3}]}]}]}]}, "h"),
    ({"$and": [{"subject": "Music"}, {"subject": "Science"}]}, ""),
    ({"subject": {"$in": ["\ud800", "Music"]}, "\udfff": {"$exists": False}}, "k"),
]


BEGINNINGS = {
    "3.nf": "ac",
    "3.NF.A": "ac",
    "3NF1": "a",
    "3": "acm",
    "CCSS.Math": "ac",
    "ccss.ela-literacy.rl": "e",
    "RL.3": "e",
    "R.3": "e",
    "rst.9-10": "f",
    "CCSS": "acef",
    "5-PS1": "g",
    "2a.3(b)": "j",
    "3.N": "",
    "3.NF.2.A": "",
}


class TestAFilter:
    async def test_lets_the_same_records_through(self, filled: Catalog) -> None:
        answers = [
            found(await filled.search(EVERYTHING, 50, expression)) for expression, _ in FILTERS
        ]
        expected = [letters for _, letters in FILTERS]
        assert list(zip(FILTERS, answers, strict=True)) == list(zip(FILTERS, expected, strict=True))

    async def test_does_what_the_language_says(self) -> None:
        for expression, expected in FILTERS:
            node = parse_filter(expression)
            passing = [each for each in RECORDS.values() if matches(node, each.to_dict())]
            assert (expression, letters(passing)) == (expression, expected)

    @pytest.mark.parametrize(
        ("expression", "message"),
        [
            ({"subject": {"$regex": "Math"}}, "not an operator"),
            ({"$not": {"subject": "x"}}, "not an operator"),
            ({"$eq": "x"}, "belongs under a field"),
            ({"subject": None}, r"\$eq takes"),
            ({"subject": ["x"]}, r"Use \$in"),
            ({"subject": {}}, "needs an operator"),
            ({"subject": {"$in": "x"}}, r"\$in takes a list"),
            ({"subject": {"$in": []}}, r"\$in takes a list"),
            ({"depth": {"$gt": "1"}}, r"\$gt takes a number"),
            ({"depth": {"$lt": float("nan")}}, r"\$lt takes a number"),
            ({"subject": {"$exists": 1}}, r"\$exists takes true or false"),
            ({"$and": []}, "not empty"),
            ({"$or": {"subject": "x"}}, "takes a list"),
            ({"$or": [{}]}, "not a filter"),
            ({"": "x"}, "name of a field"),
            ("subject", "not a filter"),
            ([{"subject": "x"}], "not a filter"),
            ({"subject": {"$in": ["x"] * 10_001}}, "more than 10,000"),
        ],
    )
    @pytest.mark.parametrize("text", [EVERYTHING, ""])
    async def test_that_is_wrong_is_refused_in_the_same_words(
        self, filled: Catalog, expression: Any, message: str, text: str
    ) -> None:
        with pytest.raises(FilterError, match=message):
            await filled.search(text, 5, expression)

    async def test_that_is_nested_too_deep_is_refused(self, filled: Catalog) -> None:
        expression: Any = {"subject": "x"}
        for _ in range(40):
            expression = {"$and": [expression]}
        with pytest.raises(FilterError, match="levels deep"):
            await filled.search(EVERYTHING, 5, expression)

    @pytest.mark.parametrize("name", ["content", "description"])
    async def test_by_a_text_that_is_searched_is_refused(self, filled: Catalog, name: str) -> None:
        with pytest.raises(FilterError, match="is searched and cannot be filtered"):
            await filled.search(EVERYTHING, 5, {"$or": [{"depth": 1}, {name: SAME_TEXT}]})

    async def test_finds_codes_by_what_they_begin_with(self, filled: Catalog) -> None:
        known = (await filled.values(PREFIXES_FIELD)).counts
        for beginning, expected in BEGINNINGS.items():
            key = canonical_key(beginning)
            result = await filled.search(EVERYTHING, 50, {PREFIXES_FIELD: key})
            assert (beginning, found(result)) == (beginning, expected)
            assert (key in known) == bool(expected)


class TestASelection:
    async def test_brings_what_a_filter_lets_through_in_the_order_of_ids(
        self, filled: Catalog
    ) -> None:
        for expression, expected in FILTERS[1::8]:
            records = await filled.select(expression, 50)
            assert [each.id for each in records] == sorted(each.id for each in records)
            assert (expression, "".join(sorted(letters(records)))) == (expression, expected)

    async def test_has_no_more_than_was_asked_for(self, filled: Catalog) -> None:
        assert len(await filled.select({"subject": "Mathematics"}, 4)) == 4
        assert len(await filled.select({}, 3)) == 3

    async def test_refuses_what_a_search_refuses(self, filled: Catalog) -> None:
        with pytest.raises(FilterError, match="operator"):
            await filled.select({"subject": {"$like": "M"}}, 5)
        with pytest.raises(FilterError, match="is searched and cannot be filtered"):
            await filled.select({"content": SAME_TEXT}, 5)


class TestASearch:
    async def test_finds_the_one_record_that_has_the_words(self, filled: Catalog) -> None:
        for text, letter in [("factor polynomials", "j"), ("weather", "h"), ("sing in tune", "k")]:
            result = await filled.search(text, 3)
            assert letters([result.hits[0].record]) == letter

    async def test_returns_equal_texts_whichever_store_collapses_them(
        self, filled: Catalog
    ) -> None:
        result = await filled.search(SAME_TEXT, 2)
        assert found(result)[:2] == "ab"

    async def test_scores_lie_between_0_and_1_and_fall_with_rank(self, filled: Catalog) -> None:
        hits = (await filled.search("learners compare fractions", 50)).hits
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        assert 0 <= scores[-1] <= scores[0] <= 1

    @pytest.mark.parametrize("top_k", [1, 2, 5, 10_000])
    async def test_returns_no_more_than_it_is_asked_for(self, filled: Catalog, top_k: int) -> None:
        hits = (await filled.search(EVERYTHING, top_k)).hits
        assert min(top_k, len(RECORDS) - 1) <= len(hits) <= min(top_k, len(RECORDS))

    async def test_returns_whole_records(self, filled: Catalog) -> None:
        for hit in (await filled.search(EVERYTHING, 50)).hits:
            assert hit.record == RECORDS[LETTERS[hit.record.id]]

    @pytest.mark.parametrize("top_k", [0, -1])
    async def test_refuses_to_look_for_nothing(self, filled: Catalog, top_k: int) -> None:
        with pytest.raises(CatalogError, match=f"top_k is {top_k}"):
            await filled.search(EVERYTHING, top_k)

    async def test_takes_8000_characters_and_refuses_one_more(self, filled: Catalog) -> None:
        assert (await filled.search("learner " * 1000, 3)).hits
        with pytest.raises(CatalogError, match="8,001 characters and at most 8,000"):
            await filled.search("x" * 8001)

    @pytest.mark.parametrize("text", ["", " ", "\n\t  "])
    async def test_finds_nothing_for_a_blank_text(self, filled: Catalog, text: str) -> None:
        assert (await filled.search(text)).hits == ()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "text",
        [
            'title:"x" AND (NOT y* OR',
            '+-&&||!(){}[]^"~*?:\\/',
            "'; DROP TABLE records; --",
            '{"$eq": 1}',
            "\x00\x01\x7f",
            "\ud800 learners \udfff",
            "\u202elearners\u200b\ufeff",
            "é" * 4000 + "\u0301" * 4000,
            "🙂" * 8000,
            "你好 learners",
            "%00%2e%2e/..\\..",
            "a\r\nb\u2028c",
            "NaN",
            "-1e999",
            "../../etc/passwd",
        ],
        ids=lambda text: ascii(text)[:40],
    )
    async def test_reads_no_text_as_syntax(self, filled: Catalog, text: str) -> None:
        hits = (await filled.search(text, 5)).hits
        assert len(hits) <= 5
        assert await filled.find(text) == []
        await filled.suggest(text)
        assert await filled.fetch([text]) == []

    async def test_finds_nothing_in_an_empty_store(self, store: Catalog) -> None:
        assert (await store.search(EVERYTHING)).hits == ()
        assert await store.find("3.NF.1") == []
        assert await store.find_all(["3.NF.1", ""]) == [[], []]
        assert await store.suggest("3.NF.1") == []
        assert await store.fetch(["B"]) == []
        assert (await store.stats()).records == 0
        assert not (await store.facets()).subjects
        assert await store.delete(["B"]) == 0

    async def test_runs_beside_others(self, filled: Catalog) -> None:
        results = await asyncio.gather(
            *(filled.search(EVERYTHING, 50, {"depth": number % 3}) for number in range(24))
        )
        expected = ["dghijkln", "bfm", "ace"]
        assert [found(each) for each in results] == expected * 8


class TestFind:
    @pytest.mark.parametrize(
        ("identifier", "expected"),
        [
            (GUID, "a"),
            (GUID.lower(), "a"),
            ("6b9bf846-f1ef-4a2c-8c7a-1b2c3d4e5f60", "a"),
            ("6B9BF846-F1EF-4A2C-8C7A-1B2C3D4E5F60", "a"),
            ("{6b9bf846-f1ef-4a2c-8c7a-1b2c3d4e5f60}", "a"),
            ("urn:uuid:6b9bf846-f1ef-4a2c-8c7a-1b2c3d4e5f60", "a"),
            (f"https://case.example.org/uri/{GUID}?x=1#y", "a"),
            (f"  {GUID}\n", "a"),
            ("S11437E2", "a"),
            ("s11437e2", "a"),
            ("http://asn.example.org/resources/S11437E2", "a"),
            ("http://asn.example.org/resources/S11437E2.json", "a"),
            ("CCSS.Math.Content.3.NF.A.1", "a"),
            ("CCSS.MATH.CONTENT.3.NF.A.1", "a"),
            ("ccss.math.content.3.nf.1", "a"),
            ("3.NF.A.1", "a"),
            ("3.NF.1", "a"),
            ("3-nf-1", "a"),
            ("3 NF 1", "a"),
            ("3NF1", "a"),
            ("3.nf.a.2", "c"),
            ("http://www.corestandards.org/Math/Content/3/NF/A/1/", "a"),
            ("https://www.thecorestandards.org/ELA-Literacy/RL/3/1/", "e"),
            ("RL.3.1", "e"),
            ("r.3.l-1", "e"),
            ("rl 3 1", "e"),
            ("RST.9\u201310.1", "f"),
            ("ccss.ela-literacy.rst.9-10.1", "f"),
            ("5-PS1-1", "g"),
            ("5.ps1.1", "g"),
            ("5\u2014PS1\u20141", "g"),
            ("2A.3(B)", "j"),
            ("2A.3.B", "j"),
            ("2a.3b", "j"),
            ("Mu:Pr4.1.PKa", "k"),
            ("mu.pr4.1.pka", "k"),
            ("own id/1&2?x=%20#+", "k"),
            ("L", "l"),
            (CASE_GUID, "l"),
            (CASE_GUID.upper(), "l"),
            (CASE_GUID.replace("-", ""), "l"),
            (CASE_URI, "l"),
            (f"{CASE_URI}.json", "l"),
            ("É-3.1", "n"),
            ("e\u0301.3.1", "n"),
            ("3.NF.9", ""),
            ("3.NF", ""),
            ("S0000000", ""),
            (GUID[::-1], ""),
            ("nothing of the kind", ""),
            ("", ""),
            (" \n", ""),
            ("...", ""),
            ("x" * 5000, ""),
        ],
        ids=lambda text: ascii(text)[:40],
    )
    async def test_knows_every_spelling(
        self, filled: Catalog, identifier: str, expected: str
    ) -> None:
        assert letters(await filled.find(identifier)) == expected

    async def test_puts_the_very_spelling_first_among_namesakes(self, store: Catalog) -> None:
        data = RECORDS["c"].to_dict()
        notations = {
            "1": "3.NF.A.2",
            "2": "3.NF.2",
            "3": "CCSS.Math.Content.3.NF.A.2",
            "4": "3.NF.2",
        }
        await store.upsert(
            StandardRecord.from_dict(data | {"_id": id_, "statement_notation": notation})
            for id_, notation in notations.items()
        )
        for typed, order in {"3.NF.2": "2413", " 3.NF.A.2 ": "1234", "3nf2": "1234"}.items():
            assert "".join(record.id for record in await store.find(typed)) == order

    async def test_answers_several_at_once_as_one_after_the_other(self, filled: Catalog) -> None:
        names = [GUID, "3.nf.1", "S.MA.3.1", "unknown", "", "3.nf.1", CASE_URI]
        assert await filled.find_all(names) == [await filled.find(name) for name in names]
        assert await filled.find_all([]) == []


class TestFetch:
    async def test_keeps_the_order_and_leaves_out_what_it_misses(self, filled: Catalog) -> None:
        wanted = ["N", "", "M", "unknown", GUID, "é", "\x00", "x" * 2000, RECORDS["k"].id, "B"]
        assert letters(await filled.fetch(wanted)) == "nmakb"
        assert await filled.fetch([]) == []

    async def test_returns_a_record_as_often_as_its_id_is_there(self, filled: Catalog) -> None:
        assert letters(await filled.fetch(["C", "B", "C", "C"])) == "cbcc"

    async def test_takes_ids_exactly_as_they_are(self, filled: Catalog) -> None:
        assert await filled.fetch([GUID.lower(), "b", " B", "CCSS.Math.Content.3.NF.A.1"]) == []

    async def test_takes_many_ids(self, store: Catalog) -> None:
        data = RECORDS["b"].to_dict()
        records = [StandardRecord.from_dict(data | {"_id": f"many {n}"}) for n in range(1100)]
        assert await store.upsert(records) == 1100
        assert await store.fetch([record.id for record in records[::-1]]) == records[::-1]
        assert (await store.stats()).records == 1100
        assert await store.delete(record.id for record in records[50:]) == 1050
        assert (await store.stats()).records == 50

    async def test_returns_every_field_as_it_was_written(self, filled: Catalog) -> None:
        records = await filled.fetch([record.id for record in RECORDS.values()])
        assert [record.to_dict() for record in records] == [
            record.to_dict() for record in RECORDS.values()
        ]


class TestSuggest:
    @pytest.mark.parametrize(
        ("identifier", "expected"),
        [("3.NF.A.3", "ac"), ("3.NF.5", "ac"), ("RL.3.2", "e"), ("5-PS1-4", "g"), ("2A.3(C)", "j")],
    )
    async def test_leads_from_a_near_code_to_those_that_exist(
        self, filled: Catalog, identifier: str, expected: str
    ) -> None:
        assert await filled.find(identifier) == []
        assert letters(await filled.suggest(identifier))[:1] in set(expected)

    @pytest.mark.parametrize(
        ("identifier", "expected"),
        [
            ("3.NF.B.1", ["3.NF.A.1", "3.NF.A.2", "3.NF.A.3"]),
            ("3.NF.A.9", ["3.NF.A.3", "3.NF.A.2", "3.NF.A.1"]),
            ("HSF-LE.A.9", ["HSF-LE.B.5", "HSF-LE.A.1"]),
            ("RST.7.1", ["RST.6-8.1"]),
            ("RL.9.1", ["RL.9-10.1"]),
        ],
    )
    async def test_sees_through_the_usual_slips(
        self, store: Catalog, identifier: str, expected: list[str]
    ) -> None:
        codes = ["3.NF.A.1", "3.NF.A.2", "3.NF.A.3", "HSF-LE.A.1", "HSF-LE.B.5", "RL.3.1"]
        await store.upsert(
            standard(code, f"Learners meet {code}.", **NORTH, statement_notation=code)
            for code in [*codes, "RST.6-8.1", "RL.9-10.1"]
        )
        assert await store.find(identifier) == []
        suggested = await store.suggest(identifier)
        assert [each.id for each in suggested[: len(expected)]] == expected

    async def test_returns_no_more_than_it_is_asked_for(self, filled: Catalog) -> None:
        assert len(await filled.suggest("3.NF.9", 1)) == 1

    @pytest.mark.parametrize("identifier", ["", "   ", "..."])
    async def test_has_nothing_for_no_code(self, filled: Catalog, identifier: str) -> None:
        assert await filled.suggest(identifier) == []


class TestTheOverview:
    async def test_tells_the_values_that_the_records_have(self, filled: Catalog) -> None:
        facets, records = await filled.facets(), RECORDS.values()
        assert facets.subjects == Counter(record.subject for record in records)
        assert facets.jurisdictions == Counter(record.jurisdiction_title for record in records)
        assert facets.standard_sets == Counter(record.standard_set_title for record in records)
        levels = Counter(level for record in records for level in record.education_levels)
        assert facets.education_levels == levels

    @pytest.mark.parametrize(
        ("name", "counts"),
        [
            ("jurisdiction_id", {"north": 7, "south": 7}),
            ("publication_status", {"Draft": 1}),
            ("skills", {"reading": 2, "citing": 2, "observing": 1}),
            ("depth", {}),
            ("_unheard_of", {}),
        ],
    )
    async def test_lists_the_texts_of_any_field(
        self, filled: Catalog, name: str, counts: dict[str, int]
    ) -> None:
        values = await filled.values(name)
        assert values.counts.keys() == counts.keys()
        assert values.complete
        assert (await filled.values(name)) == values

    async def test_lists_the_sets(self, filled: Catalog) -> None:
        known = await filled.sets()
        assert known.complete
        expected = Counter(
            (each.jurisdiction_title, each.subject, each.standard_set_title)
            for each in RECORDS.values()
        )
        places = [(each.jurisdiction_title, each.subject, each.title) for each in known.sets]
        assert places == sorted(expected)
        if known.counted:
            assert [each.records for each in known.sets] == [expected[place] for place in places]

    async def test_lists_nothing_of_an_empty_store(self, store: Catalog) -> None:
        values = await store.values("subject")
        assert (values.counts, values.complete) == ({}, True)
        assert (await store.sets()).sets == ()
        assert await store.select({}, 5) == []

    async def test_counts_the_records(self, filled: Catalog) -> None:
        stats = await filled.stats()
        assert stats.records == len(RECORDS)
        assert stats.location


class TestWriting:
    async def test_the_same_again_changes_nothing(self, filled: Catalog) -> None:
        assert await filled.upsert(RECORDS.values()) == 0
        assert await filled.upsert([]) == 0
        assert (await filled.stats()).records == len(RECORDS)

    async def test_a_record_is_replaced_as_a_whole(self, filled: Catalog) -> None:
        text = "Learners estimate the weight of a zebra."
        data = {"subject": "Science", "statement_notation": "ZZ.1", "tags": ["new"]}
        new = standard("E", text, **NORTH | data)
        assert await filled.upsert([RECORDS["d"], new]) == 1
        assert await filled.fetch(["E"]) == [new]
        assert await filled.find("RL.3.1") == []
        assert letters(await filled.find("zz 1")) == "e"
        assert letters([(await filled.search("zebra", 1)).hits[0].record]) == "e"
        assert found(await filled.search(EVERYTHING, 50, {"skills": {"$exists": True}})) == "fh"
        assert found(await filled.search(EVERYTHING, 50, {"tags": "new"})) == "e"
        assert (await filled.stats()).records == len(RECORDS)

    async def test_a_change_of_one_unknown_field_is_a_change(self, filled: Catalog) -> None:
        new = RECORDS["n"].model_copy(update={"nested": {"x": [1, 2.5, "z"]}})
        assert await filled.upsert([new]) == 1
        assert await filled.fetch(["N"]) == [new]

    async def test_the_last_of_two_records_with_one_id_counts(self, store: Catalog) -> None:
        first, last = (RECORDS["b"].model_copy(update={"year": year}) for year in (1, 2))
        assert await store.upsert([first, RECORDS["c"], last]) == 2
        assert await store.fetch(["B"]) == [last]
        assert (await store.stats()).records == 2

    async def test_what_is_deleted_is_gone(self, filled: Catalog) -> None:
        assert await filled.delete(["B", "unknown", GUID, "B", "é", ""]) == 2
        assert await filled.delete(["B"]) == 0
        assert await filled.delete([]) == 0
        assert await filled.fetch(["B", GUID]) == []
        assert await filled.find("S11437E2") == []
        assert found(await filled.search(EVERYTHING, 50)) == ALL[2:]
        assert (await filled.stats()).records == len(RECORDS) - 2

    async def test_what_was_deleted_may_come_back(self, filled: Catalog) -> None:
        await filled.delete(["B"])
        assert await filled.upsert([RECORDS["b"]]) == 1
        assert letters(await filled.find("S.MA.3.1")) == "b"

    async def test_a_store_that_is_emptied_answers(self, filled: Catalog) -> None:
        assert await filled.delete(record.id for record in RECORDS.values()) == len(RECORDS)
        assert (await filled.search(EVERYTHING)).hits == ()
        assert await filled.find("3.NF.1") == []
        assert (await filled.stats()).records == 0


class TestClosing:
    async def test_may_come_before_any_use_and_twice(self, store: Catalog) -> None:
        await store.aclose()
        await store.aclose()

    async def test_loses_nothing_and_the_next_call_opens_the_store_again(
        self, filled: Catalog
    ) -> None:
        calls: list[Callable[[], Any]] = [
            lambda: filled.fetch(["B"]),
            lambda: filled.find("S.MA.3.1"),
            lambda: filled.search("unit fraction", 1, {"jurisdiction_id": "south"}),
        ]
        for call in calls:
            before = await call()
            await filled.aclose()
            await filled.aclose()
            assert await call() == before
        assert await filled.upsert([RECORDS["b"].model_copy(update={"year": 1999})]) == 1
        await filled.aclose()
        assert (await filled.stats()).records == len(RECORDS)
