"""The tools for the audit log, interactions and resumes, through a client."""

from __future__ import annotations

import json
import logging
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from psycopg.conninfo import conninfo_to_dict
from support.marks import untrusted_tools

from standards_mcp.testing import Connect
from standards_mcp_career.addresses import PostgresAddress
from standards_mcp_career.plugin import CareerPlugin

pytestmark = pytest.mark.anyio
RECORDS = {
    "opportunities": [{"opportunity_id": "o-1", "company": "Reed Works", "role_title": "Engineer"}],
    "interactions": [{"interaction_id": "i-1", "opportunity_id": "o-1"}],
}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """Return settings with records that are imported at each start."""
    load = tmp_path / "records.json"
    load.write_text(json.dumps(RECORDS))
    return {
        "db": str(tmp_path / "career.db"),
        "load": [str(load)],
        "resume_roots": [str(tmp_path)],
    }


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.structured_content is not None
    return result.structured_content


async def test_tools_that_quote_positions_or_the_audit_log_warn_of_it(connect: Connect):
    async with connect(CareerPlugin, name="career") as client:
        assert await untrusted_tools(client) == {
            "match_opportunity",
            "get_decision",
            "list_decisions",
            "get_audit_trace",
        }


async def test_an_application_is_sent_once_and_its_trace_says_so(
    connect: Connect, settings: dict[str, Any]
):
    event = {"interaction_id": "i-1", "event": "Prepare", "idempotency_key": "k"}
    async with connect(CareerPlugin, name="career", **settings) as client:
        first = await call(client, "interaction_apply_event", **event, trace_id="mine")
        again = await call(client, "interaction_apply_event", **event)
        trace = await call(client, "get_audit_trace", trace_id="mine")
        page = await call(client, "get_audit_trace", trace_id="mine", offset=1, limit=1)
    assert first == {
        "trace_id": "mine",
        "result": {
            "outcome": "applied",
            "before_state": 0,
            "after_state": 1,
            "transition_index": 1,
            "error_message": "",
        },
    }
    assert again["result"]["outcome"] == "already_applied"
    assert again["trace_id"].startswith("trace-")
    assert trace["total"] == 2
    events = [(each["event_type"], each["payload"], each["refs"]) for each in trace["events"]]
    assert events == [
        ("InteractionTransitionAttempted", event, ["i-1"]),
        (
            "InteractionTransitionCompleted",
            {"outcome": "applied", "transition_index": 1},
            ["i-1"],
        ),
    ]
    assert page["events"] == trace["events"][1:]


async def test_outcomes_that_change_nothing_are_answers_too(
    connect: Connect, settings: dict[str, Any]
):
    async with connect(CareerPlugin, name="career", **settings) as client:
        send = {"event": "Send", "idempotency_key": "k"}
        unknown = await call(client, "interaction_apply_event", interaction_id="x", **send)
        early = await call(client, "interaction_apply_event", interaction_id="i-1", **send)
        trace = await call(client, "get_audit_trace", trace_id=early["trace_id"])
    assert unknown["result"] == {
        "outcome": "not_found",
        "before_state": 0,
        "after_state": 0,
        "transition_index": 0,
        "error_message": "Interaction not found: x",
    }
    assert early["result"]["error_message"] == "Invalid transition from current state"
    assert trace["events"][1]["event_type"] == "InteractionTransitionRejected"


async def test_a_resume_is_taken_in(connect: Connect, settings: dict[str, Any], tmp_path: Path):
    (tmp_path / "resume.md").write_text("##Skills\n- a secret skill\n")
    async with connect(CareerPlugin, name="career", **settings) as client:
        path = str(tmp_path / "resume.md")
        answer = await call(client, "ingest_resume", input_path=path)
        wrong = await call(client, "ingest_resume", input_path=str(tmp_path / "none.md"))
        trace = await call(client, "get_audit_trace", trace_id=answer["trace_id"])
    assert answer["stored"] is True
    assert "secret" not in json.dumps(trace)
    said = f"Ingestion failed: Failed to open file: {tmp_path / 'none.md'}. It is missing"
    assert (wrong["error_type"], wrong["message"][: len(said)]) == ("not_found", said)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("interaction_apply_event", {"interaction_id": "i-1", "event": "prepare"}),
        ("interaction_apply_event", {"interaction_id": "", "event": "Prepare"}),
        (
            "interaction_apply_event",
            {"interaction_id": "i-1", "event": "Prepare", "idempotency_key": "x" * 257},
        ),
        ("get_audit_trace", {"trace_id": "t", "limit": 1001}),
        ("get_audit_trace", {"trace_id": "t", "offset": -1}),
        ("get_audit_trace", {}),
        ("ingest_resume", {"input_path": "relative.md"}),
        ("ingest_resume", {"input_path": "/a.md", "trace_id": "x" * 129}),
        ("ingest_resume", {"input_path": "/a.md", "persist": "no"}),
    ],
)
async def test_wrong_arguments_are_refused(
    connect: Connect, settings: dict[str, Any], tool: str, arguments: dict[str, Any]
):
    given = {"idempotency_key": "k", **arguments} if tool.startswith("inter") else arguments
    async with connect(CareerPlugin, name="career", **settings) as client:
        answer = await call(client, tool, **given)
    assert answer["error_type"] == "invalid_input"


async def test_what_is_in_memory_only_is_said_once_with_its_key(
    connect: Connect, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    def warned() -> list[str]:
        told = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
        caplog.clear()
        return [key for text in told for key in ("career.db", "career.redis") if key in text]

    async with connect(CareerPlugin, name="career"):
        assert warned().count("career.redis") == 1
    async with connect(CareerPlugin, name="career", redis="redis://nowhere"):
        assert warned() == ["career.db"]
    async with connect(CareerPlugin, name="career", db=str(tmp_path / "career.db")):
        assert warned() == []


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("load", ["~nobodyhere/x"], "write the whole path"),
        ("redis", "", r"\] redis: the address is malformed. Write redis://HOST"),
        ("redis", "http://user:hushhush@host", r"\] redis: the address is malformed"),
        ("redis", "redis://user:hush/hush@host", "encode @ as %40"),
        (
            "postgres",
            "",
            r"\] postgres: the address is malformed. Write postgresql://HOST/DATABASE",
        ),
        ("postgres", "mysql://user:hushhush@host/db", r"\] postgres: the address is malformed"),
        ("postgres", "postgresql://user:hush/hush@host/db", "encode @ as %40"),
        ("postgres", "postgresql://user:hush@hush@host/db", "encode @ as %40"),
        ("postgres", "postgresql://user:hush?hush=1@host/db", "encode @ as %40"),
        ("postgres", "postgresql://db.example", "the address is malformed"),
        ("postgres", "postgresql://host/db?hush", "the address is malformed"),
        ("postgres", "postgresql://host:0/db", "a port from 1 to 65535"),
        ("postgres", "postgresql://one:5432,two:65536/db", "a port from 1 to 65535"),
        ("max_resume_bytes", 0, "greater than or equal to 1"),
    ],
)
async def test_wrong_settings_are_told_without_secrets(
    connect: Connect, key: str, value: object, message: str
):
    with pytest.raises(Exception, match=message) as raised:
        async with connect(CareerPlugin, name="career", **{key: value}):
            pass
    assert "hush" not in str(raised.value)
    assert "***" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("postgresql://host/db", "host/db"),
        ("postgres://user@host:6543/db", "host:6543/db"),
        (
            "postgresql+psycopg://user:a%40b@one:1,[::1]:2/my%20db?sslmode=require",
            "one:1,[::1]:2/my db",
        ),
        ("postgresql://user:a:b@/db?host=/run/postgresql&port=5433", "local socket/db"),
    ],
)
def test_addresses_of_postgres_are_those_of_libpq_and_sqlalchemy(text: str, name: str):
    address = PostgresAddress.parse(text)
    assert address.display_name == name
    assert address.url.startswith("postgresql://")
    assert conninfo_to_dict(address.url)["dbname"] == name.rpartition("/")[2]
    assert "a%40b" not in repr(address)


async def test_one_database_is_set_and_its_driver_is_there(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    both = {"postgres": "postgresql://user:hushhush@host/db", "db": str(tmp_path / "career.db")}
    with pytest.raises(Exception, match="set db or postgres, not both") as raised:
        async with connect(CareerPlugin, name="career", **both):
            pass
    assert "hush" not in str(raised.value)
    monkeypatch.setattr("standards_mcp_career.settings.find_spec", lambda _: None)
    with pytest.raises(
        Exception, match=r"the driver of PostgreSQL is missing: run `.*\[postgres\]"
    ):
        async with connect(CareerPlugin, name="career", postgres="postgresql://host/db"):
            pass


async def test_tools_use_postgres_and_outlive_its_restart(
    connect: Connect,
    settings: dict[str, Any],
    postgres_server: object,
    postgres_address: PostgresAddress,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
):
    (tmp_path / "resume.md").write_text("##Skills\n- Kafka\n")
    settings |= {"db": None, "postgres": postgres_address.url}
    event = {"interaction_id": "i-1", "event": "Prepare", "idempotency_key": "k"}
    async with connect(CareerPlugin, name="career", **settings) as client:
        matched = await call(client, "match_opportunity", opportunity_id="o-1")
        ingested = await call(client, "ingest_resume", input_path=str(tmp_path / "resume.md"))
        built = await call(client, "index_build")
        postgres_server.kill()
        lost = await call(client, "interaction_apply_event", **event)
        postgres_server.start()
        outcomes = [
            (await call(client, "interaction_apply_event", **event))["result"]["outcome"]
            for _ in range(2)
        ]
        listed = await call(client, "list_decisions", trace_id=matched["trace_id"])
    assert ingested["stored"]
    assert built["counts"]["indexed"] == 2
    assert (lost["error_type"], "cannot be reached" in lost["message"]) == ("api_error", True)
    assert outcomes == ["applied", "already_applied"]
    assert [each["decision_id"] for each in listed["decisions"]] == [matched["decision_id"]]
    told = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert not any("in memory, and end" in text for text in told)
    assert "hush" not in caplog.text + json.dumps(lost)


async def test_a_database_that_cannot_be_opened_is_an_error_with_its_key(
    connect: Connect, tmp_path: Path
):
    async with connect(CareerPlugin, name="career", db=str(tmp_path)) as client:
        answer = await call(client, "get_audit_trace", trace_id="t")
    assert answer["error_type"] == "api_error"
    assert "plugins.career.db" in answer["message"]


async def test_a_file_of_load_with_mistakes_is_told(connect: Connect, tmp_path: Path):
    (tmp_path / "bad.json").write_text('{"atoms": [{}]}')
    load = [str(tmp_path / "bad.json")]
    async with connect(CareerPlugin, name="career", load=load) as client:
        answer = await call(client, "get_audit_trace", trace_id="t")
    assert answer["error_type"] == "api_error"
    assert answer["message"].startswith(f"plugins.career.load: {tmp_path}/bad.json: atoms[0]")


async def test_a_redis_that_is_away_is_an_outcome(connect: Connect, settings: dict[str, Any]):
    settings["redis"] = "redis://user:hushhush@127.0.0.1:1/0"
    event = {"interaction_id": "i-1", "event": "Prepare", "idempotency_key": "k"}
    async with connect(CareerPlugin, name="career", **settings) as client:
        answer = await call(client, "interaction_apply_event", **event)
    assert answer["result"]["outcome"] == "backend_error"
    assert "127.0.0.1:1" in answer["result"]["error_message"]
    assert "hushhush" not in json.dumps(answer)


async def test_a_server_that_starts_calls_interrupted_runs_failed(connect: Connect, tmp_path: Path):
    settings = {"db": str(tmp_path / "career.db")}
    async with connect(CareerPlugin, name="career", **settings) as client:
        await call(client, "get_audit_trace", trace_id="t")
    row = "INSERT INTO index_runs VALUES ('run-0', '', '', 'p', 'm', 'v', 'running', '{}')"
    with closing(sqlite3.connect(settings["db"])) as database, database:
        database.execute(row)
    async with connect(CareerPlugin, name="career", **settings) as client:
        await call(client, "get_audit_trace", trace_id="t")
    with closing(sqlite3.connect(settings["db"])) as database:
        assert database.execute("SELECT status FROM index_runs").fetchall() == [("failed",)]


async def test_tools_that_only_read_are_published_as_idempotent_and_closed(connect: Connect):
    async with connect(CareerPlugin, name="career") as client:
        tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    for name in ("get_audit_trace", "get_decision", "list_decisions"):
        hints = tools[name]
        assert hints is not None
        assert (hints.read_only_hint, hints.idempotent_hint) == (True, True)
        assert hints.open_world_hint is False


def test_a_server_starts_without_what_its_calls_import():
    heavy = ("numpy", "redis", "docx", "pypdfium2", "ruamel.yaml")
    code = "import sys\nimport standards_mcp_career.plugin\n"
    code += f"print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
