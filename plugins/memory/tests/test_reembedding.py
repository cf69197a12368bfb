"""A change of the model that was ended at any point loses nothing, and brings nothing back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from standards_mcp import ApiError
from standards_mcp_memory import reembedding
from standards_mcp_memory.database import Database

Run = Callable[..., Any]
OpenMemory = Callable[..., AbstractAsyncContextManager[Client]]
COUNT = 70  # more than a batch


@pytest.fixture
def other(fast: dict[str, str]) -> str:
    """Return the new model."""
    return fast["model"].replace("#letters", "#numbers")


@pytest.fixture
def before(run: Run, tmp_path: Path) -> str:
    """Return the export of a collection."""
    rows = [{"id": n, "title": f"t{n}", "content": f"c{n}"} for n in range(1, COUNT + 1)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("import", "m.jsonl", "--collection", "c")
    return run("export", "c").stdout


def names(run: Run) -> list[str]:
    listed = json.loads(run("list", "--json").stdout)["collections"]
    return [each["name"] for each in listed]


@pytest.fixture
def killed(run: Run, other: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that ends `reembed` at a point of its way."""

    def end(*_: Any) -> None:
        raise ApiError("killed")

    def end_in_swap(database: Any, collection: Any, points: Any) -> Any:
        if collection.name == "c" and points[0][0].id > 1:
            raise ApiError("killed")
        return upsert(database, collection, points)

    def end_after_removal(path: str, **more: Any) -> None:
        remove(path, **more)
        raise ApiError("killed")

    upsert, remove = Database.upsert, shutil.rmtree
    points: dict[str, tuple[Any, str, Any]] = {
        "before the first is deleted": (Database, "drop", end),
        "while the first is deleted": (shutil, "rmtree", end_after_removal),
        "after the first was deleted": (reembedding, "_take_over", end),
        "in the swap": (Database, "upsert", end_in_swap),
    }

    def kill(point: str) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(*points[point])
            assert "killed" in run("reembed", "c", "--model", other, status=1).stderr

    return kill


@pytest.mark.parametrize(
    "point",
    [
        "before the first is deleted",
        "while the first is deleted",
        "after the first was deleted",
        "in the swap",
    ],
)
@pytest.mark.parametrize("back", [False, True])
def test_reembed_that_was_killed_loses_nothing_for_either_model(
    run: Run, before: str, killed: Any, other: str, fast: Any, point: str, *, back: bool
):
    killed(point)
    model = fast["model"] if back else other
    assert f"{COUNT} memories of c" in run("reembed", "c", "--model", model).stdout
    assert run("export", "c").stdout == before
    assert names(run) == ["c"]
    assert "t7" in run("search", "c", "c7", model=model).stdout


def test_a_collection_that_is_half_replaced_is_refused_by_all_that_would_miss_memories(
    run: Run, before: str, killed: Any, other: str, tmp_path: Path, open_memory: OpenMemory
):
    assert before
    killed("in the swap")
    for command in (
        ("search", "c", "c1"),
        ("list", "c"),
        ("export", "c"),
        ("delete", "c", "1"),
        ("show", "c", str(COUNT)),
        ("import", "m.jsonl", "--collection", "c"),
        ("import", "m.jsonl", "--collection", "c", "--dry-run"),
    ):
        assert "is being reembedded" in run(*command, status=1, model=other).stderr
    assert run("show", "c", "1").stdout.startswith("t1\n"), "the remaining collection is complete"

    async def fetch() -> Any:
        references = [{"doc_id": each, "collection": "c"} for each in (1, COUNT)]
        async with open_memory(path=str(tmp_path / "memories"), model=other) as client:
            found = await client.call_tool("memory_batch_fetch", {"doc_refs": references})
            return found.structured_content

    answer = anyio.run(fetch)
    assert (answer["error_type"], "being reembedded" in answer["message"]) == ("api_error", True)


def test_a_batch_of_a_collection_that_is_being_replaced_is_no_empty_answer(
    before: str, killed: Any, tmp_path: Path, open_memory: OpenMemory
):
    assert before
    killed("after the first was deleted")

    async def fetch() -> Any:
        references = [{"doc_id": 1, "collection": "c"}]
        async with open_memory(path=str(tmp_path / "memories")) as client:
            found = await client.call_tool("memory_batch_fetch", {"doc_refs": references})
            return found.structured_content

    assert "is being reembedded" in anyio.run(fetch)["message"]


@pytest.mark.parametrize(
    "point", ["before the first is deleted", "after the first was deleted", "in the swap"]
)
def test_deleting_all_also_deletes_the_copy_of_an_interrupted_reembed(
    run: Run, before: str, killed: Any, other: str, point: str
):
    killed(point)
    assert run("delete", "c", "--all", "--yes").stdout == f"{COUNT} deleted\n"
    assert "No collection exists yet" in run("list", status=1).stdout
    assert "not found" in run("reembed", "c", "--model", other, status=1).stderr
    run("import", "m.jsonl", "--collection", "c")
    assert run("export", "c").stdout == before


def test_deleting_all_leaves_a_collection_of_that_name_that_reembed_has_not_made(
    run: Run, before: str
):
    assert before
    run("import", "m.jsonl", "--collection", "c.reembed")
    run("delete", "c", "--all", "--yes")
    assert names(run) == ["c.reembed"]


@pytest.mark.parametrize("gone", [[3], [*range(1, COUNT + 1)]], ids=["one", "all"])
def test_deletions_during_an_interrupted_reembed_are_kept(
    run: Run, before: str, killed: Any, other: str, gone: list[int]
):
    assert before
    killed("before the first is deleted")
    run("delete", "c", *gone)
    assert f"{COUNT - len(gone)} memories of c" in run("reembed", "c", "--model", other).stdout
    assert '"t3"' not in run("export", "c").stdout


def test_a_count_that_a_server_only_estimates_refuses_nothing(run: Run, qdrant: Any, other: str):
    served = qdrant.RequestHandlerClass._result

    def estimating(handler: Any, store: Any, parts: list[str], body: Any) -> Any:
        result = served(handler, store, parts, body)
        if handler.command == "GET" and "points_count" in result:
            result["points_count"] += 3
        return result

    qdrant.RequestHandlerClass = type(
        "Estimating", (qdrant.RequestHandlerClass,), {"_result": estimating}
    )
    Path("a.md").write_text("Text.")
    run("import", "a.md", "--collection", "c", url=qdrant.url)
    run("reembed", "c", "--model", other, url=qdrant.url)
    assert run("export", "c", url=qdrant.url).stderr == "", "no memory is reported as left out"
