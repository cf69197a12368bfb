"""The tools that match, validate and index, through a client."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

import standards_mcp_career
from standards_mcp.testing import Connect, check_plugin
from standards_mcp_career.plugin import CareerPlugin

pytestmark = pytest.mark.anyio
RECORDS = Path(standards_mcp_career.__file__).parent / "examples" / "records.yaml"
POSITION = {
    "opportunity_id": "mine",
    "company": "A bakery",
    "role_title": "Engineer",
    "requirements": [{"text": "Kafka clusters", "tags": ["Kafka"]}],
}


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    return result.structured_content


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"load": [str(RECORDS)]}


async def test_an_agent_matches_decides_and_reads_both_again(
    connect: Connect, settings: dict[str, Any]
):
    async with connect(CareerPlugin, name="career", **settings) as client:
        built = await call(client, "index_build", scope="atoms")
        assert built["counts"]["indexed"] == 12
        answer = await call(
            client, "match_opportunity", opportunity=POSITION, strategy="hybrid_semantic_v0.3"
        )
        report = answer["match_report"]
        assert report["matched_atoms"] == ["ops-kafka"]
        assert report["retrieval_stats"]["embedding_candidates"] == 11
        decision = await call(client, "get_decision", decision_id=answer["decision_id"])
        assert decision["requirement_decisions"][0]["atom_id"] == "ops-kafka"
        listed = await call(client, "list_decisions", trace_id=answer["trace_id"])
        assert listed["decisions"] == [decision]
        again = await call(client, "validate_match_report", match_report=report)
        assert again["validation_report"]["status"] == "accepted"
        stored = await call(client, "match_opportunity", opportunity_id="streaming-engineer")
        assert stored["match_report"]["strategy"] == "deterministic_lexical_v0.1"


async def test_vectors_in_a_folder_are_there_after_a_new_start(
    connect: Connect, settings: dict[str, Any], tmp_path: Path
):
    kept = {"vector_backend": "lancedb", "lancedb_path": str(tmp_path / "vectors"), **settings}
    async with connect(CareerPlugin, name="career", **kept) as client:
        await call(client, "index_build")
    async with connect(CareerPlugin, name="career", **kept) as client:
        answer = await call(client, "match_opportunity", opportunity=POSITION, strategy="hybrid")
        assert answer["match_report"]["retrieval_stats"]["embedding_candidates"] == 11


async def test_each_store_in_memory_is_told_once_with_its_key(
    connect: Connect, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    logging.getLogger("standards_mcp").propagate = True
    async with connect(CareerPlugin, name="career"):
        warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    told = [re.findall(r"plugins\.career\.\w+", each) for each in warnings]
    assert told == [
        ["plugins.career.db"],
        ["plugins.career.vector_backend"],
        ["plugins.career.redis", "plugins.career.db"],
    ]
    caplog.clear()
    kept = {"vector_backend": "lancedb", "lancedb_path": str(tmp_path), "db": str(tmp_path / "db")}
    async with connect(CareerPlugin, name="career", **kept):
        assert not [each for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "message"),
    [
        ("match_opportunity", {}, "invalid_input", "Must provide either"),
        ("match_opportunity", {"opportunity_id": "x"}, "not_found", "Opportunity not found: x"),
        ("match_opportunity", {"opportunity_id": "x", "k_lex": 1001}, "invalid_input", "k_lex"),
        ("match_opportunity", {"opportunity_id": "x", "strategy": "y"}, "invalid_input", "strateg"),
        (
            "match_opportunity",
            {"opportunity": {**POSITION, "company": " "}},
            "invalid_input",
            "company must not be empty",
        ),
        (
            "match_opportunity",
            {"opportunity": {**POSITION, "requirements": [{"text": "Kafka"}] * 1001}},
            "invalid_input",
            "opportunity.requirements",
        ),
        (
            "validate_match_report",
            {"match_report": {"opportunity_id": "o", "requirement_matches": []}},
            "invalid_input",
            "overall_score",
        ),
        ("get_decision", {"decision_id": "x"}, "not_found", "Decision not found: x"),
        ("index_build", {"scope": "none"}, "invalid_input", "scope"),
    ],
)
async def test_what_cannot_be_done_is_an_error_that_says_why(
    connect: Connect, tool: str, arguments: dict[str, Any], kind: str, message: str
):
    async with connect(CareerPlugin, name="career") as client:
        answer = await call(client, tool, **arguments)
    assert answer["error_type"] == kind
    assert message in answer["message"]


async def test_further_keys_of_nested_objects_are_left_alone(connect: Connect):
    position = {**POSITION, "salary": 1, "requirements": [{"text": "Kafka", "note": "x"}]}
    async with connect(CareerPlugin, name="career") as client:
        answer = await call(client, "match_opportunity", opportunity=position)
    assert answer["match_report"]["missing_requirements"] == ["Kafka"]


def test_the_plugin_keeps_the_rules(tmp_path: Path):
    (tmp_path / "resume.md").write_text("- Ran Kafka\n")
    report = {"opportunity_id": "o", "overall_score": 0, "requirement_matches": []}
    event = {"interaction_id": "i", "event": "Prepare", "idempotency_key": "k"}
    check_plugin(
        CareerPlugin,
        name="career",
        load=(str(RECORDS),),
        resume_roots=(str(tmp_path),),
        calls=[
            ("match_opportunity", {"opportunity_id": "streaming-engineer"}),
            ("validate_match_report", {"match_report": json.loads(json.dumps(report))}),
            ("index_build", {}),
            ("list_decisions", {"trace_id": "t"}),
            ("get_audit_trace", {"trace_id": "t"}),
            ("interaction_apply_event", event),
            ("ingest_resume", {"input_path": str(tmp_path / "resume.md")}),
        ],
    )
