"""The tools and the resource, through a client, with workers."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from mcp import MCPError
from mcp_types import ResourceTemplateReference, TextResourceContents
from support.marks import untrusted_tools
from support.waiting import WAIT

from standards_mcp.testing import check_plugin
from standards_mcp_encoders import Vectors
from standards_mcp_knowledge.plugin import KnowledgePlugin

pytestmark = pytest.mark.anyio
MakeDataset = Callable[..., Path]
Serve = Callable[..., Any]
QUERY = "How do I turn one tool off?"
TEMPLATE = "knowledge://{dataset}/{+path}"


def said(answer: dict[str, Any], *more: str) -> tuple[str, str]:
    assert answer.keys() == {"success", "results", "error_type", "message", *more}
    assert (answer["success"], answer["results"]) == (False, [])
    return answer["error_type"], answer["message"]


async def test_a_search_answers_with_passages_that_name_their_file(
    serve_in_processes: Serve, make_dataset: MakeDataset
):
    make_dataset()
    async with serve_in_processes() as server:
        answer = await server.search(query=f"  {QUERY} ", topK=2)
        assert len((await server.search())["results"]) == 5
        assert len((await server.search(topK=100))["results"]) == 5
    best, second = answer["results"]
    assert best["id"] == "text-3"
    assert best["path"] == "docs/3.md"
    assert best["title"] == "A single too"
    assert best["snippet"] == "A single tool is switched off in the settings"
    assert 1 > best["score"] > second["score"] > -1
    facts = answer["metadata"]
    assert facts.pop("durationMs") > 0
    assert facts == {"dataset": "guide", "query": QUERY, "resultCount": 2}


async def test_tools_that_quote_documentation_warn_of_it(serve: Serve):
    async with serve() as server:
        assert await untrusted_tools(server.client) == {
            "knowledge_search",
            "knowledge_listDatasets",
        }


KINDS = ("Flat", "HNSW8", "IVF2,Flat", "PQ8x2", "IVF1,PQ8x2", "PCA16,Flat", "IDMap,Flat", "SQ8")


async def test_each_kind_of_index_finds_the_known_neighbour(
    serve: Serve, make_dataset: MakeDataset, vectors: Vectors
):
    random = np.random.default_rng(7)
    rows = np.vstack([vectors, random.standard_normal((60, 384))]).astype("float32")
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    texts = [{"path": f"{row}.md"} for row in range(len(rows))]
    for metric in ("ip", "l2"):
        for kind in KINDS:
            name = f"{kind}-{metric}".lower().replace(",", "-")
            make_dataset(name, kind=kind, metric=metric, rows=rows, metadata=texts)
    async with serve() as server:
        listed = await server.call("listDatasets", includeErrors=True)
        assert {each["status"] for each in listed["datasets"]} == {"ready"}
        found = {
            each["id"]: (await server.search(each["id"], topK=3))["results"]
            for each in listed["datasets"]
        }
    assert len(found) == 2 * len(KINDS)
    assert {results[0]["path"] for results in found.values()} == {"3.md"}
    # Exact indexes: the same scores by both metrics.
    for kind in ("flat", "hnsw8", "ivf2-flat"):
        scores = [[hit["score"] for hit in found[f"{kind}-{metric}"]] for metric in ("ip", "l2")]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5)


INVALID = (
    ({"query": "  "}, "invalid_input", "query has 0 characters; it needs 1 to 1,024."),
    ({"query": ""}, "invalid_input", "query: "),
    ({"query": "a b " * 257}, "invalid_input", "query has 1027 characters"),
    ({"query": 7}, "invalid_input", "query: "),
    ({"topK": 0}, "invalid_input", "topK: "),
    ({"topK": 101}, "invalid_input", "topK: "),
    ({"topK": 3.7}, "invalid_input", "topK: "),
    ({"topK": "x"}, "invalid_input", "topK: "),
    ({"dataset": ""}, "invalid_input", "dataset: "),
    ({"dataset": "d" * 65}, "invalid_input", "dataset: "),
    ({"dataset": "zoo"}, "not_found", "Dataset 'zoo' not found. Available datasets: guide"),
    (
        {"dataset": "broken"},
        "api_error",
        "Dataset 'broken' is not available: Required: name, description, index, metadata.",
    ),
)


async def test_invalid_input_is_reported_in_one_sentence_and_logged(
    serve: Serve, make_dataset: MakeDataset, root: Path, caplog: pytest.LogCaptureFixture
):
    make_dataset()
    (root / "broken.manifest.json").write_text('{"id": "broken"}', "utf-8")
    caplog.set_level("INFO", "standards_mcp.plugins.knowledge")
    async with serve() as server:
        for arguments, error_type, message in INVALID:
            caplog.clear()
            failure = said(await server.search(**arguments))
            assert failure[0] == error_type
            assert failure[1].startswith(message)
            (line,) = [vars(entry) for entry in caplog.records if entry.msg == "knowledge search"]
            assert (line["tool"], line["outcome"]) == ("knowledge.search", error_type)
            sent: dict[str, Any] = {"dataset": "guide", "query": QUERY, **arguments}
            assert line["dataset"] == ("***" if len(sent["dataset"]) > 64 else sent["dataset"])
            assert line["query"] == ("(int)" if sent["query"] == 7 else sent["query"][:100])


async def test_the_log_of_a_refused_search_has_no_secret_and_little_of_a_long_text(
    serve: Serve, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO", "standards_mcp.plugins.knowledge")
    async with serve() as server:
        await server.search(query="find\nkey=hunter2", topK=0)
        await server.search(dataset="words " * 1000, query=["a list"])
        await server.client.call_tool("knowledge_search", {})
    found = [vars(each) for each in caplog.records if each.message == "knowledge search"]
    assert [(each["dataset"], each["query"]) for each in found] == [
        ("guide", "find key=***"),
        (("words " * 1000)[:100], "(list)"),
        ("", ""),
    ]


async def test_errors_of_a_dataset_are_listed_and_the_others_are_served(
    serve: Serve, make_dataset: MakeDataset, root: Path, vectors: Vectors
):
    make_dataset("good")
    make_dataset("copy", id="good")
    make_dataset("counts", rows=vectors[:3])
    make_dataset("dimensions", rows=np.ascontiguousarray(vectors[:, :100]))
    make_dataset("shape", metadata={"documents": [{"id": 7}]})
    make_dataset("list", metadata={"docs": []})
    make_dataset("text", metadata="text")
    make_dataset("model", metadata={"documents": [{}] * 5, "model": "somebody/else"})
    make_dataset("library", metadata={"documents": [{}] * 5, "model": "model2vec:nobody/has"})
    make_dataset("metric", metric="l1")
    garbage = make_dataset("garbage") / "docs.index"
    garbage.write_bytes(b"garbage")
    make_dataset("empty", rows=vectors[:0], metadata=[])
    async with serve() as server:
        answer = await server.call("listDatasets", includeErrors=True)
        ready = await server.call("listDatasets")
        assert len((await server.search("good"))["results"]) == 5
        assert (await server.search("empty"))["results"] == []
        health = await server.call("health")
    reasons = {each["id"]: each.get("error") for each in answer["datasets"] if "error" in each}
    assert reasons == {
        "counts": "Index has 3 vectors, metadata has 5 documents",
        "dimensions": "Index has 100 dimensions, encoder all-MiniLM-L6-v2-w7a8 has 384",
        "garbage": reasons["garbage"],
        "good": reasons["good"],
        "library": reasons["library"],
        "list": "Metadata is not valid: documents: Field required",
        "metric": reasons["metric"],
        "model": reasons["model"],
        "shape": "Metadata is not valid: documents.0.id: Input should be a valid string",
        "text": reasons["text"],
    }
    assert reasons["garbage"].startswith(f"Index cannot be read: {garbage}: ")
    assert "\n" not in reasons["garbage"]
    assert reasons["metric"].endswith("docs.index: its metric is neither inner product nor L2")
    # By path, the copy comes first.
    assert reasons["good"] == f"Duplicate id 'good': also in {root}/copy/manifest.json"
    assert reasons["model"].startswith("No encoder for model 'somebody/else'. Set plugins.know")
    assert "install 'model2vec<1" in reasons["library"]
    assert reasons["text"].startswith("Metadata is not valid: ")
    assert answer["counts"] == ready["counts"] == {"total": 12, "ready": 2, "errors": 10}
    assert [each["id"] for each in ready["datasets"]] == ["empty", "good"]
    assert ready["datasets"][1] == {
        "id": "good",
        "name": "The copy",
        "description": "What it is about.",
        "defaultTopK": 5,
        "status": "ready",
        "documents": 5,
    }
    assert health["status"] == "degraded"
    details = {each["id"]: each for each in health["details"] if each["status"] == "ready"}
    assert details["good"]["dimension"] == 384
    assert details["good"]["model"] == "sentence-transformers/all-MiniLM-L6-v2"


async def test_nothing_there_is_an_empty_list_and_flags_are_booleans(
    serve_in_processes: Serve, tmp_path: Path
):
    async with serve_in_processes(root=tmp_path / "none") as server:
        answer = await server.call("listDatasets")
        assert answer == {"datasets": [], "counts": {"total": 0, "ready": 0, "errors": 0}}
        assert said(await server.call("listDatasets", includeErrors="true"))[0] == "invalid_input"
        assert "includeErrors" in said(await server.call("listDatasets", includeErrors=1))[1]
        message = "Dataset 'guide' not found. Available datasets: none"
        assert said(await server.search()) == ("not_found", message)
        assert (await server.search(query=""))["error_type"] == "invalid_input"
        health = await server.call("health")
        assert worker_pids() == []
    assert health["status"] == "ok"
    assert health["worker"] == {"state": "stopped", "processes": 0, "restarts": 0}


async def test_workers_start_with_the_first_dataset(
    serve_in_processes: Serve, make_dataset: MakeDataset, root: Path
):
    async with serve_in_processes(workers=2, reload_seconds=0) as server:
        assert (await server.call("health"))["worker"]["state"] == "stopped"
        make_dataset()
        assert (await server.search())["results"]
        health = await server.until_state("ready")
        assert health["status"] == "ok"
        assert len(worker_pids()) == health["worker"]["processes"] == 2
        shutil.rmtree(root / "guide")
        health = await server.call("health")
        assert (health["status"], health["datasets"]["total"]) == ("ok", 0)


async def test_datasets_come_change_and_go_without_a_restart(
    serve: Serve, make_dataset: MakeDataset, root: Path, vectors: Vectors
):
    make_dataset()
    async with serve(reload_seconds=0) as server:
        assert (await server.search())["results"][0]["path"] == "docs/3.md"
        make_dataset("second")
        assert (await server.search("second"))["results"][0]["path"] == "docs/3.md"
        make_dataset(rows=np.ascontiguousarray(vectors[::-1]))
        assert (await server.search())["results"][0]["path"] == "docs/1.md"
        make_dataset(rows=vectors[:2])
        error_type, message = said(await server.search())
        assert error_type == "api_error"
        assert "Index has 2 vectors, metadata has 5 documents" in message
        assert (await server.search("second"))["results"]
        make_dataset()
        assert (await server.search())["results"]
        make_dataset("copy", id="second")
        shutil.rmtree(root / "second")
        assert (await server.search("second"))["results"]
        shutil.rmtree(root / "copy")
        assert said(await server.search("second"))[0] == "not_found"
        shutil.rmtree(root)
        assert (await server.call("listDatasets"))["counts"]["total"] == 0


async def test_files_that_are_overwritten_in_their_place_are_cited_rightly_at_once(
    serve: Serve, make_dataset: MakeDataset, vectors: Vectors
):
    folder, turned = make_dataset(), np.ascontiguousarray(vectors[::-1])
    async with serve(reload_seconds=600) as server:
        assert (await server.search())["results"][0]["path"] == "docs/3.md"
        texts = json.loads((folder / "metadata.json").read_text("utf-8"))
        other = make_dataset("other", rows=turned, metadata=texts[::-1])
        for name in ("docs.index", "metadata.json"):
            (folder / name).write_bytes((other / name).read_bytes())
        assert (await server.search())["results"][0]["path"] == "docs/3.md"


async def test_a_cited_document_can_be_read_whole_and_its_uri_is_completed(
    serve: Serve, make_dataset: MakeDataset
):
    chunks = [
        {"path": "guide/install.md", "content": "second", "chunk": 2},
        {"path": "guide/install.md", "content": "first", "chunk": 1},
        {"path": "install.md", "snippet": "other"},
        {"content": "nameless"},
        {"path": "a b/ü?.md", "content": "odd"},
    ]
    make_dataset(metadata=chunks)
    make_dataset("guard")

    async def read(uri: str) -> str:
        (contents,) = (await server.client.read_resource(uri)).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.mime_type == "text/markdown"
        return contents.text

    async def completed(name: str, value: str, **others: str) -> list[str]:
        reference = ResourceTemplateReference(uri=TEMPLATE)
        argument = {"name": name, "value": value}
        return (await server.client.complete(reference, argument, others or None)).completion.values

    async with serve() as server:
        assert await read("knowledge://guide/guide/install.md") == "first\n\nsecond"
        assert await read("knowledge://guide/install.md") == "other"
        assert await read("knowledge://guide/guide-4") == "nameless"
        assert await read("knowledge://guide/a%20b/%C3%BC%3F.md") == "odd"
        for uri in ("knowledge://guide/none.md", "knowledge://zoo/a.md"):
            with pytest.raises(MCPError):
                await server.client.read_resource(uri)
        assert await completed("dataset", "gu") == ["guard", "guide"]
        assert await completed("dataset", "gui") == ["guide"]
        found = await completed("path", "INST", dataset="guide")
        assert found == ["install.md", "guide/install.md"]
        assert await completed("path", "x", dataset="zoo") == []


async def test_a_killed_worker_costs_no_call_and_the_next_one_is_there(
    serve_in_processes: Serve, make_dataset: MakeDataset
):
    make_dataset()
    async with serve_in_processes() as server:
        await server.search()
        (pid,) = worker_pids()
        os.kill(pid, 9)
        assert (await server.search())["results"]
        health = await server.until_state("ready")
        assert health["worker"]["restarts"] == 1
        assert worker_pids() != [pid]
    assert worker_pids() == []


async def test_where_no_worker_can_start_searches_say_when_to_try_again(
    serve_in_processes: Serve, make_dataset: MakeDataset, monkeypatch: pytest.MonkeyPatch
):
    make_dataset()
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    async with serve_in_processes() as server:
        health = await server.until_state("restarting")
        with anyio.fail_after(WAIT):
            while health["status"] != "failed":
                health = await server.call("health")
        error_type, message = said(await server.search(), "retry_after")
    assert error_type == "api_error"
    assert message.startswith("Knowledge search is unavailable. Try again in ")


def worker_pids() -> list[int]:
    """Return the running workers of this process."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z" and b"standards_mcp_knowledge" in command:
            found.append(int(folder.name))
    return found


def test_the_plugin_keeps_the_rules(make_dataset: MakeDataset, root: Path):
    make_dataset()
    check_plugin(
        KnowledgePlugin,
        name="knowledge",
        root=root,
        calls=[
            ("knowledge.search", {"dataset": "guide", "query": QUERY}),
            ("knowledge.listDatasets", {}),
            ("knowledge.health", {}),
        ],
        reads=["knowledge://guide/docs/3.md"],
    )
