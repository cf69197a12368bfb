"""Matches: a known example, the words beside a plain loop, and what is written down."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from standards_mcp import InvalidInputError, NotFoundError
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.indexing import Indexing
from standards_mcp_career.lance_vectors import LanceVectors
from standards_mcp_career.matching import Matching
from standards_mcp_career.primitives import tokens
from standards_mcp_career.records import (
    Atom,
    Opportunity,
    Requirement,
    split_tags,
)
from standards_mcp_career.scoring import Matcher, Options, WordIndex, words_of
from standards_mcp_career.tables import upsert
from standards_mcp_career.vectors import STUB_EMBEDDER, MemoryVectors, StoredVector

LEXICAL = Options("lexical", 25, 25)
OPS = Atom(
    "a-ops",
    title="Platform operations",
    claim="Ran Kafka clusters for billing",
    tags=("kafka", "terraform"),
    verified=True,
)
DATA = Atom(
    "a-data",
    title="Data pipelines",
    claim="Moved nightly jobs to Kafka streams",
    tags=("kafka", "streams"),
    verified=True,
)
DRAFT = Atom("a-draft", claim="Kafka operations with Terraform on call rotation", verified=False)
POSITION = Opportunity(
    "o-1",
    "Reed Works",
    "Engineer",
    requirements=(Requirement("Kafka operations with Terraform"), Requirement("On-call rotation")),
)


@pytest.fixture(params=["memory", "lancedb"])
def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryVectors:
    """Keep vectors in memory, and in a folder of LanceDB."""
    if request.param == "memory":
        return MemoryVectors()
    return LanceVectors(tmp_path / "vectors", STUB_EMBEDDER.source)


@pytest.fixture
def matching(store: Store, audit: AuditLog, vectors: MemoryVectors) -> Matching:
    with store.writing() as connection:
        upsert(connection, [OPS, DATA, DRAFT])
        upsert(connection, [POSITION])
    Indexing(audit, STUB_EMBEDDER, vectors).build("atoms")
    return Matching(audit, STUB_EMBEDDER, vectors, "original")


def test_words_alone_match_as_in_the_known_example(matching: Matching):
    report = matching.match_opportunity(options=LEXICAL, opportunity_id="o-1")["match_report"]
    assert report["strategy"] == "deterministic_lexical_v0.1"
    first, second = report["requirement_matches"]
    assert first == {
        "requirement_text": "Kafka operations with Terraform",
        "matched": True,
        "best_score": 0.75,
        "contributing_atom_id": "a-ops",
        "evidence_tokens": ["kafka", "operations", "terraform"],
    }
    assert (second["matched"], second["best_score"]) == (False, 0)
    assert (second["contributing_atom_id"], second["evidence_tokens"]) == (None, [])
    assert report["overall_score"] == 0.375
    assert report["breakdown"] == {
        "lexical": 0.375,
        "semantic": 0,
        "bonus": 0,
        "final_score": pytest.approx(0.20625),
    }
    assert report["retrieval_stats"] == {
        "lexical_candidates": 2,
        "embedding_candidates": 0,
        "merged_candidates": 2,
    }
    assert report["matched_atoms"] == ["a-ops"]
    assert report["missing_requirements"] == ["On-call rotation"]


def test_the_events_of_a_match_are_written_in_order_on_its_trace(
    matching: Matching, audit: AuditLog
):
    answer = matching.match_opportunity(
        options=LEXICAL, opportunity_id="o-1", trace_id="mine", resume_id="r"
    )
    told = [
        (each["event_type"], each["payload"], each["refs"]) for each in audit.page("mine")["events"]
    ]
    decision = answer["decision_id"]
    assert told == [
        (
            "RunStarted",
            {"source": "app_service", "operation": "match_pipeline", "resume_id": "r"},
            [],
        ),
        ("MatchCompleted", {"opportunity_id": "o-1", "overall_score": 0.375}, ["o-1"]),
        ("ValidationCompleted", {"status": "accepted", "finding_count": 0}, ["o-1"]),
        ("RunCompleted", {"status": "success"}, []),
        ("DecisionRecorded", {"decision_id": decision, "opportunity_id": "o-1"}, ["o-1", decision]),
    ]
    kept = matching.get_decision(decision)
    assert matching.list_decisions("mine") == {"trace_id": "mine", "decisions": [kept]}
    assert kept["requirement_decisions"][0]["atom_id"] == "a-ops"
    assert kept["validation_summary"]["top_rule_ids"] == []
    assert (kept["version"], kept["artifact_id"]) == ("0.3", "match-report-o-1")


def test_what_is_not_there_is_not_found_after_the_run_has_started(
    matching: Matching, audit: AuditLog
):
    with pytest.raises(NotFoundError, match=r"^Opportunity not found: o-9$"):
        matching.match_opportunity(options=LEXICAL, opportunity_id="o-9", trace_id="t")
    with pytest.raises(NotFoundError, match=r"^Atom not found: a-9$"):
        matching.match_opportunity(
            options=LEXICAL, opportunity_id="o-1", atom_ids=["a-ops", "a-9"], trace_id="t"
        )
    with pytest.raises(NotFoundError, match=r"^Decision not found: d$"):
        matching.get_decision("d")
    assert [each["event_type"] for each in audit.page("t")["events"]] == ["RunStarted"] * 2
    assert matching.list_decisions("t")["decisions"] == []


def test_an_opportunity_is_given_in_one_way_and_is_right(matching: Matching):
    for given_twice in ({}, {"opportunity_id": "o-1", "opportunity": POSITION}):
        with pytest.raises(InvalidInputError, match="Must provide either"):
            matching.match_opportunity(options=LEXICAL, **given_twice)


def test_only_the_chosen_atoms_exist_for_a_call(matching: Matching):
    for options in (LEXICAL, Options("hybrid", 25, 25), Options("semantic", 25, 25)):
        report = matching.match_opportunity(
            options=options, opportunity_id="o-1", atom_ids=["a-data", "a-draft"]
        )["match_report"]
        assert report["matched_atoms"] == ["a-data"]
        assert report["retrieval_stats"]["merged_candidates"] == 1


def test_changed_atoms_count_at_the_next_call(matching: Matching, store: Store):
    before = matching.match_opportunity(options=LEXICAL, opportunity_id="o-1")
    assert before["match_report"]["missing_requirements"]
    with store.writing() as connection:
        proved = Atom("a-draft", claim=DRAFT.claim, verified=True)
        upsert(connection, [proved])
    after = matching.match_opportunity(options=LEXICAL, opportunity_id="o-1")
    assert after["match_report"]["missing_requirements"] == []


def test_vectors_choose_candidates_and_do_not_score(matching: Matching):
    hybrid = matching.match_opportunity(options=Options("hybrid", 1, 0), opportunity_id="o-1")
    assert hybrid["match_report"]["retrieval_stats"] == {
        "lexical_candidates": 1,
        "embedding_candidates": 0,
        "merged_candidates": 1,
    }
    words = matching.match_opportunity(options=LEXICAL, opportunity_id="o-1")["match_report"]
    report = hybrid["match_report"]
    assert report["requirement_matches"] == words["requirement_matches"]
    by_vectors = matching.match_opportunity(options=Options("hybrid", 0, 1), opportunity_id="o-1")
    stats = by_vectors["match_report"]["retrieval_stats"]
    assert (stats["lexical_candidates"], stats["embedding_candidates"]) == (0, 1)
    nothing = matching.match_opportunity(options=Options("hybrid", 0, 0), opportunity_id="o-1")
    assert nothing["match_report"]["overall_score"] == 0
    assert nothing["validation_report"]["status"] == "needs_review"


def test_meaning_tags_and_what_is_required_count_in_the_third_strategy(matching: Matching):
    requirements = (
        Requirement("Kafka operations", ("kafka", "nomad")),
        Requirement("Kubernetes", required=False),
    )
    position = Opportunity("o-2", "Reed Works", "Engineer", requirements=requirements)
    report = matching.match_opportunity(options=Options("semantic", 25, 25), opportunity=position)[
        "match_report"
    ]
    first, second = report["requirement_matches"]
    text = "Platform operations Ran Kafka clusters for billing kafka terraform"
    one, other = STUB_EMBEDDER.embed([text, "Kafka operations"]).astype(float)
    score = 0.55 + 0.35 * float(one @ other) + 0.10 * 0.5
    assert first["best_score"] == pytest.approx(score, abs=1e-6)
    assert second["matched"] is False
    assert report["overall_score"] == pytest.approx(score / 1.5, abs=1e-6)
    assert report["breakdown"]["final_score"] == report["overall_score"]
    assert report["breakdown"]["bonus"] == pytest.approx(0.5 / 1.5)


@pytest.mark.parametrize("strategy", ["lexical", "hybrid", "semantic"])
def test_the_scores_of_many_requirements_are_not_in_memory_together(strategy: Any):
    known = [Atom(f"a-{n:04}", claim=f"Kafka word{n % 97}", verified=True) for n in range(2000)]
    words, vectors = WordIndex(known, "meaningful"), MemoryVectors()
    options = Options(strategy, 25, 25)
    rows = STUB_EMBEDDER.embed([atom.claim for atom in known])
    vectors.put(
        {
            ("atom", atom.atom_id): StoredVector("", row)
            for atom, row in zip(known, rows, strict=True)
        }
    )
    asked = tuple(Requirement(f"Kafka word{n}") for n in range(500))
    position = Opportunity("o", "c", "r", requirements=asked)
    matcher = Matcher(words, words.mask(), options, vectors, STUB_EMBEDDER)
    one = matcher.report(replace(position, requirements=asked[:1]))
    assert one["matched_atoms"]
    tracemalloc.start()
    try:
        found = matcher.report(position)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found["requirement_matches"]) == 500
    of_one_part_of_all = 500 * 2000 * 8
    assert most < of_one_part_of_all


def test_reports_with_meaningful_words_need_three_quarters_of_a_requirement(
    store: Store, audit: AuditLog
):
    claims = ["Taught in schools", "Wrote C++ and C# for six years", "Five years of Java, some Go"]
    known = [Atom(f"a-{n}", claim=claim, verified=True) for n, claim in enumerate(claims)]
    with store.writing() as connection:
        upsert(connection, known)
    texts = ("PhD in education", "C++", "Five years of C#", "Five years of Go", "Java in schools")
    position = Opportunity("o", "c", "r", requirements=tuple(map(Requirement, texts)))
    matching = Matching(audit, None, MemoryVectors(), "meaningful")
    for strategy in ("lexical", "hybrid", "semantic"):
        options = Options(strategy, 25, 25)
        answer = matching.match_opportunity(options=options, opportunity=position, trace_id="t")
        report = answer["match_report"]
        assert [
            (each["contributing_atom_id"], each["evidence_tokens"])
            for each in report["requirement_matches"]
        ] == [
            (None, []),
            ("a-1", ["c++"]),
            ("a-1", ["c#", "five years"]),
            (None, []),
            (None, []),
        ]
        assert answer["validation_report"]["status"] == "accepted"
        assert answer["validation_report"]["constitution_version"] == "0.2.0"
        started = audit.page("t")["events"][0]["payload"]
        assert started["tokens"] == "meaningful"


def test_a_number_of_years_alone_is_matched_and_rejected_as_thin(store: Store, audit: AuditLog):
    with store.writing() as connection:
        upsert(connection, [Atom("a", claim="Six years in a choir", verified=True)])
    matching = Matching(audit, None, MemoryVectors(), "meaningful")
    for is_required, status in ((True, "rejected"), (False, "needs_review")):
        asked = (Requirement("Five years of experience", required=is_required),)
        position = Opportunity("o", "c", "r", requirements=asked)
        answer = matching.match_opportunity(options=LEXICAL, opportunity=position)
        assert answer["match_report"]["matched_atoms"] == ["a"]
        assert answer["validation_report"]["status"] == status


WORDS = st.lists(st.sampled_from(["kafka", "go", "sql", "rust", "x1", "é", "a"]), max_size=5)
TEXTS = WORDS.map(" ".join)
ATOMS = st.lists(
    st.builds(
        Atom,
        atom_id=st.sampled_from([f"a{number}" for number in range(9)]),
        title=TEXTS,
        claim=TEXTS.map(lambda text: f"{text} claim"),
        tags=WORDS.map(lambda words: split_tags(words, "original")),
        verified=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda atom: atom.atom_id,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(ATOMS, st.lists(TEXTS.map(lambda text: f"{text} !"), max_size=4))
def test_an_inverted_index_gives_what_a_plain_loop_gives(known: list[Atom], texts: Sequence[str]):
    position = Opportunity("o", "c", "r", requirements=tuple(map(Requirement, texts)))
    words = WordIndex(known, "original")
    matcher = Matcher(words, words.mask(), LEXICAL, MemoryVectors(), None)
    found = matcher.report(position)["requirement_matches"]
    verified = sorted((each for each in known if each.verified), key=lambda each: each.atom_id)
    for text, each in zip(texts, found, strict=True):
        asked = set(tokens(text))
        scores = [
            (len(asked & words_of(atom)) / len(asked) if asked else 0.0, atom) for atom in verified
        ]
        best = max((score for score, _ in scores), default=0.0)
        assert each["best_score"] == best
        first = next((atom.atom_id for score, atom in scores if score == best), None)
        assert each["contributing_atom_id"] == (first if best else None)


@pytest.mark.parametrize("strategy", ["lexical", "hybrid", "semantic"])
def test_the_same_inputs_give_the_same_report_twice(matching: Matching, strategy: Any):
    options = Options(strategy, 25, 25)
    reports = [
        matching.match_opportunity(options=options, opportunity_id="o-1")["match_report"]
        for _ in range(2)
    ]
    assert json.dumps(reports[0]) == json.dumps(reports[1])


@pytest.mark.parametrize("text", ['it\'s "quoted"', "a\nb", "x" * 1_000_000, "Ω", "';--"])
def test_any_text_in_an_id_or_a_field_is_kept_as_it_is(
    matching: Matching, audit: AuditLog, text: str
):
    position = Opportunity(text, f"c{text}", "r", requirements=(Requirement(f"kafka {text}"),))
    answer = matching.match_opportunity(options=LEXICAL, opportunity=position, trace_id="t")
    assert answer["match_report"]["opportunity_id"] == text
    assert matching.get_decision(answer["decision_id"])["opportunity_id"] == text
    assert audit.verify("t")["valid"]
