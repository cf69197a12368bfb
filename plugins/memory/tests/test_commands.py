"""The commands, as users type them."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, cast

import pytest
from qdrant_client import QdrantClient, models

Run = Callable[..., Any]
DECISIONS = Path(__file__).parents[3] / "docs/decisions.md"
NOTES = """\
# Notes

Before the first.

## Bees

They hum. They fly. They sting.

```
## no heading
```

### Wasps

They do, too.

## Oaks ##

They stand.
# Another
## Empty
##
"""


def test_the_main_job_takes_one_command(program: Run, config: Path):
    text = config.read_text().splitlines()
    config.write_text("\n".join(line for line in text if not line.startswith("model")))
    shown = program("try", DECISIONS, "Why is the stdio transport our own?").stdout
    assert shown.startswith("1. The stdio transport is our own (id ")
    assert "The SDK's transport drops a line that it cannot parse" in shown
    assert "answer each\nother's errors never stop." in shown, "it is printed in full"
    told = program("try", DECISIONS, "Why is the stdio transport our own?", "--json").stdout
    tried = json.loads(told)
    assert re.fullmatch("decisions-[0-9a-f]{8}", tried["search"]["collection"])
    assert tried["search"]["results"][0]["id"] == tried["document"]["id"]
    headings = DECISIONS.read_text().count("\n## ")
    assert json.loads(program("list", "--json").stdout)["collections"][0]["count"] == headings


@pytest.mark.usefixtures("fast")
def test_a_changed_file_is_tried_as_it_is_now(run: Run, tmp_path: Path):
    notes = tmp_path / "notes.md"
    notes.write_text("## Port\n\nThe service listens on port 80.\n\n## Oaks\n\nThey stand.\n")
    run("try", "notes.md", "Which port?")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "notes.md").write_text("## Port\n\nAnother file.\n")
    run("try", "deep/notes.md", "Which port?")
    notes.write_text("## Port\n\nThe service listens on port 9000 since May.\n")
    told = json.loads(run("try", "notes.md", "Which port?", "--json").stdout)
    assert [each["preview"] for each in told["search"]["results"]] == [
        "The service listens on port 9000 since May."
    ]


@pytest.mark.parametrize(
    ("name", "damaged", "reason"),
    [
        ("b.md", b"\xff", "Skipped b.md: is not in UTF-8"),
        (
            "b.md",
            b"---\na: [\n---\n## Bees\n",
            "Skipped b.md: has front matter that is not valid YAML",
        ),
        ("b.jsonl", b'{"title": "Bees", "content"', "Skipped b.jsonl:1: Invalid JSON"),
    ],
)
@pytest.mark.usefixtures("fast")
def test_unreadable_parts_are_reported_and_keep_their_memories(
    run: Run, tmp_path: Path, name: str, damaged: bytes, reason: str
):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("Before.\n\n## Port\n\nIt is 80.\n")
    whole = '{"title": "Bees", "content": "Hum."}' if name == "b.jsonl" else "## Bees\n\nHum.\n"
    (notes / name).write_text(whole)

    def titles() -> list[str]:
        tried = run("try", "notes", "Which port?", "--json")
        assert "Skipped a.md:1: is outside of the second-level headings" in tried.stderr
        assert (reason in tried.stderr) == ((notes / name).read_bytes() == damaged)
        return sorted(each["title"] for each in json.loads(tried.stdout)["search"]["results"])

    assert titles() == ["Bees", "Port"]
    (notes / name).write_bytes(damaged)
    assert titles() == ["Bees", "Port"]
    (notes / name).write_text(whole.replace("Bees", "Wasps"))
    assert titles() == ["Port", "Wasps"], "a skipped part does not prevent a prune"


def test_letters_that_a_pipe_does_not_know_end_no_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "b.md").write_text("## Łódź\n\nThe depot stands in Łódź.\n", "utf-8")
    pipe = TextIOWrapper(BytesIO(), encoding="cp1252", write_through=True)
    monkeypatch.setattr("sys.stdout", pipe)
    run("try", "b.md", "Where is the depot?")
    printed = cast("BytesIO", pipe.buffer).getvalue()
    assert b"The depot stands in \\u0141\xf3d\\u017a." in printed


@pytest.mark.usefixtures("fast")
def test_ids_that_a_file_names_are_given_to_no_other_row(run: Run, tmp_path: Path):
    rows = [{"title": "first", "content": ""}, {"id": 1, "title": "second", "content": ""}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert imported(run, "m.jsonl", "--collection", "c")["created"] == 2
    assert run("list", "c").stdout == "1: second\n2: first\n"
    rows = [{"id": 1, "title": "third", "content": ""}, {"title": "second", "content": ""}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    imported(run, "m.jsonl", "--collection", "c")
    assert run("list", "c").stdout == "1: third\n2: first\n3: second\n"
    rows = [{"title": "third", "content": ""}, {"id": 1, "title": "fourth", "content": ""}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for _ in range(2):
        imported(run, "m.jsonl", "--collection", "c")
        listed = run("list", "c").stdout
        assert listed == "1: fourth\n2: first\n3: second\n4: third\n", "none is lost"


def imported(run: Run, *arguments: Any, status: int = 0) -> Any:
    return json.loads(run("import", *arguments, "--json", status=status).stdout)


def test_headings_become_memories_once(run: Run, tmp_path: Path):
    (tmp_path / "notes.md").write_text(NOTES)
    arguments = ("notes.md", "--collection", "c", "--split", "headings")
    dry = imported(run, *arguments, "--dry-run")
    first = imported(run, *arguments)
    assert dry == first
    assert first == {
        "collection": "c",
        "created": 3,
        "updated": 0,
        "unchanged": 0,
        "skipped": [
            {"where": "notes.md:1", "reason": "is outside of the second-level headings"},
            {"where": "notes.md:22", "reason": "is empty"},
        ],
    }
    assert imported(run, *arguments)["unchanged"] == 3
    assert run("list", "c").stdout == "1: Bees\n2: Oaks\n3: Empty\n"
    shown = run("show", "c", "1").stdout
    assert shown.startswith("Bees\n\nid 1, collection c\n\nThey hum. They fly.\n\nThey hum.")
    assert "### Wasps" in shown
    assert "They stand." in run("show", "c", "2").stdout
    text = run("import", "notes.md", "--collection", "c", "--split", "headings").stdout
    assert text.startswith(
        "Imported into c: 0 created, 0 updated, 3 unchanged\nSkipped notes.md:1: is outside"
    )


def test_a_folder_of_all_forms_is_imported(run: Run, tmp_path: Path):
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "no.md").write_text("No.")
    (folder / "a.md").write_text(
        "---\ntitle: Bees\npreview: Of bees.\ntags: [bee, '#hum', 7]\n---\n\nThey hum.\n"
    )
    (folder / "b.md").write_text(
        "\ufeff**Title:** Oaks\r\n**Description:** Of\r\ntrees.\r\n\r\n**Content:** Stand.\r\n\r\n"
        "**Tags:** #oak #tree #oak\r\n"
    )
    (folder / "c.md").write_text("# Plain\n\nOnly text.\n")
    (folder / "deep" / "d.markdown").write_text("---\n\nIt begins with a rule.\n\n---\nEnd.")
    (folder / "e.md").write_text("---\ntags: bee, wasp\n---\nText.")
    (folder / "f.jsonl").write_text(
        '{"id": 40, "title": "Given", "content": "An id.", "extra": 1}\n\n'
        '{"title": "New", "content": "No id.", "tags": ["x"], "preview": "P"}\n'
    )
    (folder / "z.txt").write_text("Not read.")
    answer = imported(run, "notes", "--collection", "c")
    assert (answer["created"], answer["skipped"]) == (7, [])

    def shown(identifier: int) -> Any:
        return json.loads(run("show", "c", str(identifier), "--json").stdout)

    assert shown(1) == {
        "id": 1,
        "collection": "c",
        "title": "Bees",
        "preview": "Of bees.",
        "content": "They hum.",
        "tags": ["bee", "hum", "7"],
    }
    oaks = shown(2)
    assert (oaks["title"], oaks["preview"], oaks["content"], oaks["tags"]) == (
        "Oaks",
        "Of trees.",
        "Stand.",
        ["oak", "tree"],
    )
    assert shown(3)["title"] == "Plain"
    assert shown(4)["title"] == "d"
    assert shown(5)["tags"] == ["bee", "wasp"]
    assert shown(40)["title"] == "Given"
    assert shown(41)["title"] == "New"
    assert imported(run, "notes", "--collection", "c")["unchanged"] == 7


@pytest.mark.parametrize(
    ("name", "content", "where", "reason"),
    [
        ("a.jsonl", b"{", "a.jsonl:1", "Invalid JSON"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl:1", "Invalid JSON"),
        ("a.jsonl", b"[]", "a.jsonl:1", "an object"),
        ("a.jsonl", b'{"title": "x"}', "a.jsonl:1", "content: Field required"),
        ("a.jsonl", b'{"title": "x", "content": 1}', "a.jsonl:1", "content: "),
        ("a.jsonl", b'\n{"id": 0, "title": "x", "content": ""}', "a.jsonl:2", "id: "),
        ("a.jsonl", b'{"id": true, "title": "x", "content": ""}', "a.jsonl:1", "id: "),
        ("a.jsonl", b'{"id": 9223372036854775808, "title": "x", "content": ""}', "a.jsonl:1", "id"),
        ("a.jsonl", b'{"title": " ", "content": ""}', "a.jsonl:1", "is empty"),
        ("a.jsonl", b'{"title": "\\ud800", "content": ""}', "a.jsonl:1", "Invalid JSON"),
        ("a.md", b"\xff", "a.md", "is not in UTF-8"),
        ("a.md", b"---\na: [\n---\nText", "a.md", "front matter that is not valid YAML"),
        ("a.md", b"---\ntags: 7\n---\nText", "a.md", "tags that are not a list"),
        ("a.md", b"---\ntitle: [x]\n---\nText", "a.md", "lists or tables in place of texts"),
    ],
)
def test_unreadable_parts_are_skipped_with_place_and_reason(
    run: Run, tmp_path: Path, name: str, content: bytes, where: str, reason: str
):
    (tmp_path / name).write_bytes(content)
    for split in ("file", "headings"):
        answer = imported(run, name, "--collection", "c", "--split", split, status=1)
        assert answer["created"] == 0
        assert answer["skipped"][0]["where"] == where
        assert reason in answer["skipped"][0]["reason"]


def test_an_import_updates_changed_memories(run: Run, tmp_path: Path):
    file = tmp_path / "m.jsonl"

    def lines(*rows: dict[str, Any]) -> Any:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return imported(run, "m.jsonl", "--collection", "c")

    one = {"id": 5, "title": "Bees", "content": "Hum."}
    assert lines(one, {"title": "Oaks", "content": "Stand."})["created"] == 2
    assert lines({**one, "preview": "P."}, {**one, "id": 7})["updated"] == 1
    assert lines({**one, "content": "Sting."})["updated"] == 1
    assert lines({"title": "Bees", "content": "Sting.", "tags": ["x"]})["updated"] == 1
    twice = lines({"title": "New", "content": "Twice."}, {"title": "New", "content": "Twice."})
    assert (twice["created"], twice["unchanged"]) == (1, 1)
    bees = json.loads(run("show", "c", "5", "--json").stdout)
    assert (bees["content"], bees["tags"], bees["preview"]) == ("Sting.", ["x"], "P.")
    found = json.loads(run("search", "c", "Sting.", "--limit", "1", "--json").stdout)
    assert found["results"][0]["id"] == 5, "its vector is new"


def test_an_export_imported_gives_the_same_collection(run: Run, tmp_path: Path):
    (tmp_path / "m.jsonl").write_text(
        '{"id": 3, "title": "Bees", "content": "\\u2028\\u00e9.\\n**Tags:** #a", "preview": ""}\n'
        '{"id": 9, "title": "Oaks", "content": "", "tags": []}\n'
    )
    imported(run, "m.jsonl", "--collection", "one")
    run("export", "one", "out.jsonl")
    text = (tmp_path / "out.jsonl").read_text("utf-8")
    assert run("export", "one").stdout == text
    assert imported(run, "out.jsonl", "--collection", "two")["created"] == 2
    assert run("export", "two").stdout == text
    for collection in ("one", "two"):
        assert json.loads(run("show", collection, "3", "--json").stdout)["tags"] == ["a"]


def test_collections_and_memories_are_listed_searched_and_deleted(run: Run, tmp_path: Path):
    assert "No collection exists yet" in run("list", status=1).stdout
    missing = run("search", "c", "bees", status=1).stdout
    assert missing == "Collection c not found. No collection exists yet.\n"
    (tmp_path / "notes.md").write_text(NOTES)
    run("import", "notes.md", "--collection", "c", "--split", "headings")
    shown = run("list").stdout
    assert shown.startswith("c: 3 memories, http://127.0.0.1:")
    found = run("search", "c", "stand").stdout
    assert found.startswith("1. Oaks (id 2, score 0.")
    assert found.splitlines()[1] == "   They stand."
    assert run("search", "b", "bees", status=1).stdout.endswith("There are: c.\n")
    listed = json.loads(run("list", "c", "--json").stdout)
    assert listed["memories"][1] == {"id": 2, "title": "Oaks", "preview": "They stand."}
    gone = run("delete", "c", "1", "9", status=1)
    assert (gone.stdout, "Document 9 not found" in gone.stderr) == ("1 deleted\n", True)
    assert "Document 1 not found" in run("show", "c", "1", status=1).stderr
    assert run("delete", "c", "--all", "--yes").stdout == "2 deleted\n"
    assert "Collection c not found" in run("list", "c", status=1).stderr
    assert "Collection c not found" in run("delete", "c", "--all", "--yes", status=1).stderr
    assert "Collection c not found" in run("export", "c", status=1).stderr


def test_a_collection_without_memories_is_listed_as_such(run: Run, tmp_path: Path):
    (tmp_path / "a.md").write_text("Text.")
    run("import", "a.md", "--collection", "c")
    run("delete", "c", "1")
    assert run("list", "c", status=1).stdout == "Collection c is empty.\n"
    assert run("search", "c", "text", status=1).stdout == "Collection c is empty.\n"


def test_reembed_makes_vectors_with_another_model(run: Run, tmp_path: Path, fast: Any):
    other = fast["model"].replace("#letters", "#numbers")
    (tmp_path / "notes.md").write_text(NOTES)
    run("import", "notes.md", "--collection", "c", "--split", "headings")
    before = run("export", "c").stdout
    done = run("reembed", "c", "--model", other)
    assert f"3 memories of c have vectors of {other}." in done.stdout
    assert f"Now set [plugins.memory] model to {other}." in done.stdout
    assert "holds vectors of" in run("search", "c", "bees", status=1).stderr
    assert "Bees" in run("search", "c", "bees", model=other).stdout
    assert run("export", "c").stdout == before
    assert [each["name"] for each in json.loads(run("list", "--json").stdout)["collections"]] == [
        "c"
    ]
    assert "vectors of" in run("reembed", "c", model=other).stdout, "nothing is left to do"
    assert "not found" in run("reembed", "no", status=1).stderr
    assert "did you mean" in run("reembed", "c", "--model", "minilmm", status=2).stderr


def points_of(folder: Path, name: str) -> dict[Any, str]:
    client = QdrantClient(path=str(folder))
    rows, _ = client.scroll(name, limit=100)
    client.close()
    return {row.id: (row.payload or {}).get("title", "") for row in rows}


def test_reembed_refuses_a_collection_with_memories_that_it_would_lose(
    run: Run, tmp_path: Path, fast: Any
):
    other = fast["model"].replace("#letters", "#numbers")
    (tmp_path / "m.jsonl").write_text('{"id": 1, "title": "mine", "content": "text"}\n')
    run("import", "m.jsonl", "--collection", "c.reembed")
    run("import", "m.jsonl", "--collection", "c")
    assert "is in the way" in run("reembed", "c", "--model", other, status=1).stderr
    assert "is in the way" in run("reembed", "c", status=1).stderr
    run("delete", "c.reembed", "--all", "--yes")
    folder = tmp_path / "memories"
    client = QdrantClient(path=str(folder))
    odd = models.PointStruct(id=str(uuid.uuid4()), vector=[0.1] * 16, payload={"title": "odd"})
    client.upsert("c", points=[odd])
    client.close()
    refused = run("reembed", "c", "--model", other, status=1).stderr
    assert "has 1 memories whose ids are not numbers" in refused
    assert len(points_of(folder, "c")) == 2
    assert "not numbers: 1." in run("export", "c").stderr
    told = run("search", "c", "text")
    assert "Memories left out because their ids are not numbers: 1." in told.stderr


@pytest.mark.usefixtures("fast")
def test_reembed_sends_no_key_in_the_open(run: Run, tmp_path: Path):
    (tmp_path / "m.jsonl").write_text('{"title": "mine", "content": "text"}\n')
    run("import", "m.jsonl", "--collection", "c")
    command = ("reembed", "c", "--model", "http://192.0.2.1/v1/embeddings#m")
    refused = run(*command, status=2, embedding_api_key="sk-secret").stderr
    assert "Invalid value for --model: model: the key would be sent unencrypted" in refused
    assert "pydantic" not in refused


def test_reembed_goes_on_where_it_was_ended(run: Run, tmp_path: Path, fast: Any, encoder: Any):
    rows = [{"id": n, "title": f"t{n}", "content": f"c{n}"} for n in range(1, 201)]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("import", "m.jsonl", "--collection", "c")
    before = run("export", "c").stdout
    other = fast["model"].replace("#letters", "#numbers")
    served = encoder.RequestHandlerClass._answered
    left = 3

    def failing(handler: Any, path: str, body: Any) -> Any:
        nonlocal left
        left -= 1
        return served(handler, path, body) if left >= 0 else (500, b"{}")

    encoder.RequestHandlerClass = type(
        "Failing", (encoder.RequestHandlerClass,), {"_answered": failing}
    )
    assert "answered 500" in run("reembed", "c", "--model", other, status=1).stderr
    assert run("export", "c").stdout == before, "the old one serves until the new one is complete"
    left = 100
    asked = len(encoder.asked)
    run("reembed", "c", "--model", other)
    texts = sum(len(body["input"]) for _, _, body in encoder.asked[asked:])
    assert texts < 100, "vectors are reused"
    assert run("export", "c").stdout == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("import", "none.md", "--collection", "c"), "does not exist"),
        (("import", "config.toml"), "Missing option '--collection'"),
        (("import", "config.toml", "--collection", "a/b"), "no control characters"),
        (("import", "config.toml", "--collection", "c", "--split", "x"), "is not one of"),
        (("show", "c", "0"), "greater than or equal to 1"),
        (("search", "c", "x", "--limit", "101"), "less than or equal to 100"),
        (("delete", "c"), "Give ids, or --all."),
        (("delete", "c", "1", "--all"), "Give ids, or --all."),
        (("list", ".."), "is not . or .."),
        (("list", "x" * 101), "at most 100 characters"),
    ],
)
def test_bad_usage_is_reported(run: Run, arguments: tuple[str, ...], said: str):
    assert said in run(*arguments, status=2).stderr.replace("\n", " ")


def test_sources_without_memories_are_reported(run: Run, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.md").touch()
    assert (
        "give a folder, or a file in"
        in run("import", "config.toml", "--collection", "c", status=1).stderr
    )
    assert "has no files in" in run("import", "empty", "--collection", "c", status=1).stderr
    assert (
        "nothing to remember. empty.md is empty" in run("try", "empty.md", "what", status=1).stderr
    )


def test_nothing_is_written_into_memory_that_ends_with_the_command(run: Run, tmp_path: Path):
    (tmp_path / "a.md").write_text("Text.")
    kept = run("import", "a.md", "--collection", "c", path=":memory:", status=1).stderr
    assert "Nothing would be kept" in kept
    assert run("try", "a.md", "Text", path=":memory:").stdout.startswith("1. a (id 1, score 0.9")


def test_deleting_a_collection_asks(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.md").write_text("Text.")
    run("import", "a.md", "--collection", "c")
    monkeypatch.setattr("sys.stdin", StringIO("n\n"))
    run("delete", "c", "--all", status=130)
    assert run("list", "c").stdout == "1: a\n"
