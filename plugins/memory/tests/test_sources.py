"""An import remembers the file and heading of each memory, and updates what was edited."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import pytest

from standards_mcp_memory.records import Draft
from standards_mcp_memory.service import Memory, open_memory
from standards_mcp_memory.settings import MemorySettings
from standards_mcp_memory.writing import Writer

Run = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("fast")


def imported(run: Run, path: str, *options: str, status: int = 0) -> dict[str, Any]:
    done = run("import", path, "--collection", "c", "--json", *options, status=status)
    return json.loads(done.stdout)


def counts(answer: dict[str, Any]) -> tuple[int, int, int]:
    return answer["created"], answer["updated"], answer["unchanged"]


def shown(run: Run, identifier: int) -> Any:
    return json.loads(run("show", "c", str(identifier), "--json").stdout)


def listed(run: Run) -> list[str]:
    return run("list", "c").stdout.splitlines()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("## Port\n\nIt is 80.\n\n## Host\n\nIt is a.\n")
    (folder / "b.md").write_text("# Bees\n\nThey hum.\n")
    return folder


def test_an_edited_file_updates_its_memories(run: Run, notes: Path):
    assert counts(imported(run, "notes")) == (3, 0, 0)
    (notes / "a.md").write_text("## Port\n\nIt is 9000.\n\n## Host\n\nIt is a.\n")
    (notes / "b.md").write_text("# Wasps\n\nThey sting.\n")
    assert counts(imported(run, "notes", "--dry-run")) == (0, 2, 1)
    assert counts(imported(run, "notes")) == (0, 2, 1)
    assert listed(run) == ["1: Port", "2: Host", "3: Wasps"]
    assert shown(run, 1)["content"] == "It is 9000."
    assert counts(imported(run, "notes")) == (0, 0, 3)


def test_a_file_imported_alone_is_that_of_its_folder(run: Run, notes: Path):
    imported(run, "notes")
    (notes / "a.md").write_text("## Port\n\nIt is 9000.\n\n## Host\n\nIt is a.\n")
    assert counts(imported(run, "notes/a.md")) == (0, 1, 1)
    (notes / "a.md").write_text("## Port\n\nIt is 9000.\n")
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == [{"id": 2, "title": "Host"}]


def test_headings_that_were_renamed_moved_or_are_twice_there_keep_their_memories(
    run: Run, notes: Path
):
    (notes / "a.md").write_text("## Port\n\none\n\n## Port\n\ntwo\n\n## Host\n\nIt is a.\n")
    imported(run, "notes/a.md")
    assert listed(run) == ["1: Port", "2: Port", "3: Host"]
    # The first of two is gone, the other stays what it is; a heading has another name.
    (notes / "a.md").write_text("## Machine\n\nIt is a.\n\n## Port\n\ntwo\n")
    answer = imported(run, "notes/a.md", "--prune", "--yes")
    assert counts(answer) == (0, 1, 1)
    assert answer["pruned"] == [{"id": 1, "title": "Port"}]
    assert listed(run) == ["2: Port", "3: Machine"]
    (notes / "a.md").write_text("## Port\n\nthree\n\n## Port\n\ntwo\n\n## Machine\n\nIt is b.\n")
    assert counts(imported(run, "notes/a.md")) == (1, 1, 1)
    assert [shown(run, each)["content"] for each in (2, 3, 4)] == ["two", "It is b.", "three"]


def test_a_folder_that_was_moved_keeps_its_memories(run: Run, notes: Path, tmp_path: Path):
    imported(run, "notes")
    notes.rename(tmp_path / "elsewhere")
    assert counts(imported(run, "elsewhere")) == (0, 3, 0), "their files are others"
    (tmp_path / "elsewhere" / "b.md").write_text("# Bees\n\nThey sting.\n")
    assert counts(imported(run, "elsewhere")) == (0, 1, 2)


def test_equal_texts_of_two_files_are_one_memory_and_stay_so(run: Run, notes: Path):
    (notes / "c.md").write_text((notes / "b.md").read_text())
    assert counts(imported(run, "notes")) == (3, 0, 1)
    assert counts(imported(run, "notes")) == (0, 0, 4)
    (notes / "b.md").unlink()
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == []


def contents(run: Run) -> dict[int, str]:
    lines = run("export", "c").stdout.splitlines()
    return {each["id"]: each["content"] for each in map(json.loads, lines)}


@pytest.mark.parametrize("number", [7, None])
def test_an_edited_file_leaves_a_memory_that_is_stored_without_a_file(
    run: Run, notes: Path, number: int | None
):
    identifier = {} if number is None else {"id": number}
    line = json.dumps({**identifier, "title": "Port", "content": "It is 80."})
    (notes.parent / "m.jsonl").write_text(line)
    imported(run, "m.jsonl")
    assert counts(imported(run, "notes/a.md")) == (1, 1, 0)
    (notes / "a.md").write_text("## Port\n\nIt is 9000.\n")
    assert counts(imported(run, "notes/a.md")) == (1, 0, 0)
    assert shown(run, number or 1)["content"] == "It is 80."
    assert sorted(contents(run).values()) == ["It is 80.", "It is 9000.", "It is a."]
    (notes / "a.md").write_text("## Port\n\nIt is 9001.\n")
    assert counts(imported(run, "notes/a.md")) == (0, 1, 0), "the file has its own memory now"


def test_a_new_file_of_an_old_name_takes_nothing_from_the_renamed_one(run: Run, notes: Path):
    current = notes / "current.md"
    current.write_text("## Log\n\nJanuary.\n")
    imported(run, "notes/current.md")
    current.rename(notes / "jan.md")
    current.write_text("## Log\n\nFebruary.\n")
    assert counts(imported(run, "notes")) == (4, 1, 0)
    (notes / "jan.md").unlink()
    current.write_text("## Log\n\nFebruary, edited.\n")
    assert counts(imported(run, "notes")) == (0, 1, 3)
    found = contents(run)
    assert found.pop(1) == "January."
    assert "February, edited." in found.values()
    assert "February." not in found.values()
    pruned = imported(run, "notes", "--prune", "--yes")["pruned"]
    assert pruned == [{"id": 1, "title": "Log"}]


def test_an_edited_file_keeps_its_memory_where_a_missing_one_had_the_same_id(run: Run, notes: Path):
    for name in ("a", "b"):
        (notes / f"{name}.md").write_text(f"---\nid: note\n---\nThis is {name}.\n")
    imported(run, "notes")
    (notes / "a.md").unlink()
    (notes / "b.md").write_text("---\nid: note\n---\nThis is b, edited.\n")
    assert counts(imported(run, "notes")) == (0, 1, 0)
    assert contents(run) == {1: "This is a.", 2: "This is b, edited."}


def test_a_heading_that_was_removed_is_not_rewritten_by_others_of_its_name(run: Run, notes: Path):
    file = notes / "a.md"
    file.write_text("## Port\n\none\n\n## Port\n\ntwo\n")
    imported(run, "notes/a.md")
    for text in ("two", "three"):
        file.write_text(f"## Port\n\n{text}\n")
        imported(run, "notes/a.md")
    assert contents(run) == {1: "one", 2: "three"}
    assert imported(run, "notes/a.md", "--prune", "--yes")["pruned"] == [{"id": 1, "title": "Port"}]


def test_a_file_in_an_unreadable_folder_counts_as_present(run: Run, notes: Path):
    inner = notes / "inner"
    inner.mkdir()
    (inner / "c.md").write_text("## Inner\n\nBehind a damaged folder.\n")
    imported(run, "notes")
    (inner / "c.md").unlink()
    inner.rmdir()
    inner.symlink_to(inner)
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == []
    inner.unlink()
    assert len(imported(run, "notes", "--prune", "--yes")["pruned"]) == 1


def test_titles_and_contents_with_line_breaks_are_not_mixed_up(run: Run, notes: Path):
    lines = [{"title": "a\nb", "content": "c"}, {"title": "a", "content": "b\nc"}]
    (notes.parent / "m.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert counts(imported(run, "m.jsonl")) == (2, 0, 0)
    assert contents(run) == {1: "c", 2: "b\nc"}


def test_a_line_whose_id_a_later_line_has_is_reported(run: Run, notes: Path):
    lines = [{"id": 1, "title": "a", "content": each} for each in ("1", "2", "2")]
    (notes.parent / "m.jsonl").write_text("\n".join(map(json.dumps, lines)))
    answer = imported(run, "m.jsonl")
    assert (counts(answer), answer["skipped"]) == (
        (1, 0, 1),
        [{"where": "m.jsonl:1", "reason": "has the id 1, and m.jsonl:3 has it, too"}],
    )
    assert contents(run) == {1: "2"}


def test_changes_by_a_tool_stay_until_the_file_changes(run: Run, notes: Path, config: Path):
    imported(run, "notes")

    async def change(memory: Memory) -> None:
        await Writer(memory).update(1, "c", content="It is 81, says a tool.")

    in_memory(config, change)
    assert counts(imported(run, "notes")) == (0, 0, 3)
    assert shown(run, 1)["content"] == "It is 81, says a tool."
    (notes / "a.md").write_text("## Port\n\nIt is 82.\n")
    imported(run, "notes")
    assert shown(run, 1)["content"] == "It is 82."


def in_memory(config: Path, work: Callable[[Memory], Any]) -> None:
    import tomllib

    settings = MemorySettings(**tomllib.loads(config.read_text())["plugins"]["memory"])

    async def run() -> None:
        async with open_memory(settings, config.parent) as memory:
            await work(memory)

    anyio.run(run)


@pytest.mark.parametrize("key", ["7", "retries"])
def test_an_id_in_the_front_matter_holds_a_memory_when_its_file_is_renamed(
    run: Run, notes: Path, key: str
):
    (notes / "b.md").write_text(f"---\nid: {key}\ndescription: Of bees.\n---\n# Bees\n\nHum.\n")
    imported(run, "notes")
    identifier = 7 if key == "7" else 3
    assert (shown(run, identifier)["title"], shown(run, identifier)["preview"]) == (
        "Bees",
        "Of bees.",
    )
    (notes / "b.md").unlink()
    (notes / "z.md").write_text(f"---\nid: {key}\n---\n# Wasps\n\nSting.\n")
    assert counts(imported(run, "notes")) == (0, 1, 2)
    assert shown(run, identifier)["title"] == "Wasps"


def test_an_id_of_another_memory_is_refused(run: Run, notes: Path):
    (notes.parent / "m.jsonl").write_text('{"id": 7, "title": "Mine", "content": "By a tool."}')
    imported(run, "m.jsonl")
    (notes / "b.md").write_text("---\nid: 7\n---\n# Bees\n\nHum.\n")
    answer = imported(run, "notes")
    assert answer["skipped"] == [
        {"where": "b.md", "reason": "names id 7, which another memory has"}
    ]
    assert shown(run, 7)["title"] == "Mine"


def test_a_prune_concerns_only_memories_of_its_path(
    run: Run, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "other.md").write_text("## Other\n\nFrom elsewhere.\n")
    (tmp_path / "m.jsonl").write_text('{"title": "Stored", "content": "By hand."}')
    for path in ("notes", "other.md", "m.jsonl"):
        imported(run, path)
    (notes / "a.md").write_text("## Port\n\nIt is 80.\n")
    (notes / "b.md").unlink()
    gone = [{"id": 2, "title": "Host"}, {"id": 3, "title": "Bees"}]
    assert imported(run, "notes", "--prune", "--dry-run")["pruned"] == gone
    refused = run("import", "notes", "--collection", "c", "--prune", status=2).stderr
    assert "Add --yes" in refused
    terminal = StringIO("n\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    asked = run("import", "notes", "--collection", "c", "--prune")
    assert "2: Host\n3: Bees\nDelete these 2 memories?" in asked.stderr
    assert "0 pruned" in asked.stdout
    assert len(listed(run)) == 5
    told = run("import", "notes", "--collection", "c", "--prune", "--yes").stdout
    assert "2 pruned\nPruned 2: Host\nPruned 3: Bees" in told
    assert listed(run) == ["1: Port", "4: Other", "5: Stored"]


def test_nothing_is_pruned_while_a_file_cannot_be_read(run: Run, notes: Path):
    imported(run, "notes")
    (notes / "a.md").unlink()
    (notes / "b.md").write_bytes(b"\xff")
    done = run("import", "notes", "--collection", "c", "--prune", "--yes", status=1)
    assert "Nothing was pruned" in done.stderr
    assert len(listed(run)) == 3


def test_a_link_out_of_the_folder_is_not_followed(run: Run, notes: Path, tmp_path: Path):
    (tmp_path / "secret.md").write_text("## Secret\n\nNot to be imported.\n")
    (notes / "link.md").symlink_to(tmp_path / "secret.md")
    (notes / "inside.md").symlink_to(notes / "b.md")
    answer = imported(run, "notes")
    assert answer["skipped"] == [
        {"where": "link.md", "reason": "is a link that leads out of the folder"}
    ]
    assert "Secret" not in run("list", "c").stdout


def test_import_and_try_split_a_file_alike(run: Run, notes: Path):
    (notes / "a.md").write_text("Before.\n\n## Port\n\nIt is 80.\n\n## Host\n\nIt is a.\n")
    imported(run, "notes/a.md")
    tried = json.loads(run("try", "notes/a.md", "Which port?", "--json").stdout)
    found = sorted(each["title"] for each in tried["search"]["results"])
    assert found == sorted(line.partition(": ")[2] for line in listed(run))


def test_an_export_keeps_the_sources(run: Run, notes: Path):
    imported(run, "notes")
    run("export", "c", "out.jsonl")
    run("delete", "c", "--all", "--yes")
    assert counts(imported(run, "out.jsonl")) == (3, 0, 0)
    (notes / "b.md").write_text("# Bees\n\nThey sting.\n")
    assert counts(imported(run, "notes")) == (0, 1, 2)


def test_an_edited_export_is_not_reverted_by_the_unchanged_file(run: Run, notes: Path):
    imported(run, "notes")
    run("export", "c", "out.jsonl")
    export = notes.parent / "out.jsonl"
    export.write_text(export.read_text().replace("It is 80.", "It is 81, by hand."))
    assert counts(imported(run, "out.jsonl")) == (0, 1, 2)
    assert counts(imported(run, "notes")) == (0, 0, 3)
    assert shown(run, 1)["content"] == "It is 81, by hand."
    (notes / "a.md").write_text("## Port\n\nIt is 82.\n\n## Host\n\nIt is a.\n")
    assert counts(imported(run, "notes")) == (0, 1, 2)
    assert shown(run, 1)["content"] == "It is 82.", "an edited file counts again"


def test_a_memory_that_another_path_states_is_pruned_with_the_last_of_them(run: Run, notes: Path):
    other = notes.parent / "other"
    other.mkdir()
    (other / "copy.md").write_text((notes / "b.md").read_text())
    imported(run, "notes")
    imported(run, "other")
    assert listed(run) == ["1: Port", "2: Host", "3: Bees"]
    (notes / "b.md").unlink()
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == []
    (other / "copy.md").write_text("# Wasps\n\nThey sting.\n")
    answer = imported(run, "other", "--prune", "--yes")
    assert (counts(answer), answer["pruned"]) == ((0, 1, 0), [])
    assert listed(run) == ["1: Port", "2: Host", "3: Wasps"]
    (other / "copy.md").unlink()
    assert imported(run, "other", "--prune", "--yes")["pruned"] == [{"id": 3, "title": "Wasps"}]


def test_a_heading_that_another_path_states_is_pruned_when_both_are_gone(run: Run, notes: Path):
    other = notes.parent / "other.md"
    other.write_text("## Host\n\nIt is a.\n\n## Other\n\nElse.\n")
    imported(run, "notes")
    imported(run, "other.md")
    (notes / "a.md").write_text("## Port\n\nIt is 80.\n")
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == []
    other.write_text("## Other\n\nElse.\n")
    assert imported(run, "other.md", "--prune", "--yes")["pruned"] == [{"id": 2, "title": "Host"}]


def test_an_edited_copy_leaves_the_memory_that_another_file_still_states(run: Run, notes: Path):
    (notes.parent / "copy.md").write_text((notes / "b.md").read_text())
    imported(run, "notes")
    imported(run, "copy.md")
    (notes.parent / "copy.md").write_text("# Wasps\n\nThey sting.\n")
    assert counts(imported(run, "copy.md")) == (1, 0, 0)
    assert listed(run) == ["1: Port", "2: Host", "3: Bees", "4: Wasps"]
    assert counts(imported(run, "notes")) == (0, 0, 3)


@pytest.mark.parametrize("is_stored_first", [True, False])
def test_a_memory_that_a_tool_stored_is_never_pruned(
    run: Run, notes: Path, config: Path, *, is_stored_first: bool
):
    async def store(memory: Memory) -> None:
        await Writer(memory).store(Draft("Host", "It is a."), "c")

    steps: list[Callable[[], Any]] = [
        lambda: in_memory(config, store),
        lambda: imported(run, "notes"),
    ]
    for step in steps if is_stored_first else steps[::-1]:
        step()
    (notes / "a.md").write_text("## Port\n\nIt is 80.\n")
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == []
    assert len(listed(run)) == 3


def test_a_memory_of_a_line_of_jsonl_is_never_pruned(run: Run, notes: Path):
    imported(run, "notes")
    (notes.parent / "m.jsonl").write_text('{"title": "Host", "content": "It is a."}')
    assert counts(imported(run, "m.jsonl")) == (0, 1, 0)
    assert counts(imported(run, "m.jsonl")) == (0, 0, 1)
    (notes / "a.md").write_text("## Port\n\nIt is 80.\n")
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == []


def test_a_folder_whose_last_file_is_gone_is_pruned(run: Run, notes: Path):
    imported(run, "notes")
    for file in notes.iterdir():
        file.unlink()
    refused = run("import", "notes", "--collection", "c", status=1).stderr
    assert "notes has no files in .md, .markdown, .jsonl." in refused
    assert len(imported(run, "notes", "--prune", "--dry-run")["pruned"]) == 3
    assert len(imported(run, "notes", "--prune", "--yes")["pruned"]) == 3
    assert run("list", "c", status=1).stdout == "Collection c is empty.\n"
    nothing = run("import", "notes", "--collection", "c", "--prune", "--yes", status=1).stderr
    assert "notes has no files in .md, .markdown, .jsonl." in nothing


def test_a_file_of_a_folder_that_an_import_does_not_read_is_not_pruned(run: Run, notes: Path):
    (notes / ".hidden.md").write_text("## Hidden\n\nRead by its name.\n")
    imported(run, "notes/.hidden.md")
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == []
    (notes / ".hidden.md").unlink()
    assert imported(run, "notes", "--prune", "--yes")["pruned"] == [{"id": 1, "title": "Hidden"}]


def test_nothing_is_pruned_while_an_id_is_refused(run: Run, notes: Path):
    imported(run, "notes")
    (notes.parent / "m.jsonl").write_text('{"id": 7, "title": "Mine", "content": "By a tool."}')
    imported(run, "m.jsonl")
    (notes / "b.md").write_text("---\nid: 7\n---\n# Bees\n\nThey hum.\n")
    done = run("import", "notes", "--collection", "c", "--prune", "--yes")
    assert "Nothing was pruned" in done.stderr
    assert len(listed(run)) == 4


def test_a_description_and_tags_that_were_removed_are_made_anew(run: Run, notes: Path):
    (notes / "b.md").write_text("---\ndescription: Of bees.\ntags: [x]\n---\n# Bees\n\nThey hum.\n")
    imported(run, "notes")
    assert (shown(run, 3)["preview"], shown(run, 3)["tags"]) == ("Of bees.", ["x"])
    (notes / "b.md").write_text("# Bees\n\nThey hum.\n")
    assert counts(imported(run, "notes")) == (0, 1, 2)
    assert (shown(run, 3)["preview"], shown(run, 3)["tags"]) == ("# Bees They hum.", [])


def test_a_preview_that_a_tool_wrote_stays_until_the_file_changes(
    run: Run, notes: Path, config: Path
):
    (notes / "b.md").write_text("---\ndescription: Of bees.\n---\n# Bees\n\nThey hum.\n")
    imported(run, "notes")

    async def change(memory: Memory) -> None:
        await Writer(memory).update(3, "c", preview="A tool's.")

    in_memory(config, change)
    assert counts(imported(run, "notes")) == (0, 0, 3)
    assert shown(run, 3)["preview"] == "A tool's."


def test_a_description_begins_the_preview_of_each_heading(run: Run, notes: Path):
    front = "---\ndescription: How the gateway runs.\n---\n"
    (notes / "a.md").write_text(f"{front}## Port\n\nIt is 80. No other. Ever.\n\n## Host\n")
    imported(run, "notes/a.md")
    assert shown(run, 1)["preview"] == "How the gateway runs. It is 80. No other."
    assert shown(run, 2)["preview"] == "How the gateway runs."
    (notes / "a.md").write_text("## Port\n\nIt is 80. No other. Ever.\n\n## Host\n")
    imported(run, "notes/a.md")
    assert shown(run, 1)["preview"] == "It is 80. No other."


def test_a_number_in_the_front_matter_gives_each_heading_an_id_of_its_own(run: Run, notes: Path):
    front = "---\nid: 7\n---\n"
    (notes / "a.md").write_text(f"{front}## Port\n\nIt is 80.\n\n## Host\n\nIt is a.\n")
    imported(run, "notes/a.md")
    titles = {int(line.split(":")[0]): line.split(": ")[1] for line in listed(run)}
    assert sorted(titles.values()) == ["Host", "Port"]
    assert all(7000 <= identifier <= 7999 for identifier in titles)
    # In another order, in a new collection, with one more heading and another file's name.
    run("delete", "c", "--all", "--yes")
    (notes / "a.md").unlink()
    (notes / "z.md").write_text(f"{front}## New\n\n## Host\n\nIt is b.\n\n## Port\n\nIt is 80.\n")
    imported(run, "notes/z.md")
    again = {int(line.split(":")[0]): line.split(": ")[1] for line in listed(run)}
    assert again.items() >= titles.items()
    (notes / "z.md").write_text(f"{front}## Host\n\nIt is c.\n\n## Door\n\nIt is 80.\n")
    assert counts(imported(run, "notes/z.md")) == (0, 2, 0)
    assert {shown(run, each)["title"] for each in titles} == {"Host", "Door"}


def test_a_number_that_was_added_later_is_the_id_of_the_memory(run: Run, notes: Path):
    imported(run, "notes")
    (notes / "b.md").write_text("---\nid: 70\n---\n# Bees\n\nThey hum.\n")
    answer = imported(run, "notes", "--prune", "--yes")
    assert (counts(answer), answer["pruned"]) == ((1, 0, 2), [{"id": 3, "title": "Bees"}])
    assert listed(run) == ["1: Port", "2: Host", "70: Bees"]
    assert counts(imported(run, "notes", "--prune", "--yes")) == (0, 0, 3)


def test_two_writers_on_one_server_never_choose_the_same_id(qdrant: Any, fast: dict[str, str]):
    count = 30

    async def store(name: str) -> list[int]:
        ids: list[int] = []
        settings = MemorySettings.model_validate({"url": qdrant.url, **fast})
        async with open_memory(settings, Path()) as memory:
            writer = Writer(memory)
            for number in range(count):
                answer = await writer.store(Draft(f"{name} {number}", f"{name} {number}"), "c")
                ids.append(answer["id"])
            drafts = [Draft(f"{name} import {number}", "x") for number in range(count)]
            await writer.write(drafts, "c", lambda _done, _total: None)
        return ids

    async def run() -> list[list[int]]:
        found: list[list[int]] = []

        async def one(name: str) -> None:
            found.append(await store(name))

        async with open_memory(MemorySettings(url=qdrant.url, **fast), Path()) as memory:
            await Writer(memory).store(Draft("first", "first"), "c")
        async with anyio.create_task_group() as group:
            group.start_soon(one, "left")
            group.start_soon(one, "right")
        return found

    one, two = anyio.run(run)
    assert not set(one) & set(two)
    rows, _ = qdrant.store.scroll("c", limit=1000)
    assert len({row.payload["title"] for row in rows}) == 1 + 4 * count, "none was overwritten"


def test_an_id_that_another_writer_took_meanwhile_is_not_overwritten(
    qdrant: Any, fast: dict[str, str]
):
    served = qdrant.RequestHandlerClass._result

    def racing(handler: Any, store: Any, parts: list[str], body: Any) -> Any:
        if handler.command == "PUT" and parts[2:] == ["points"] and body["points"][0]["id"] == 1:
            assert body["update_mode"] == "insert_only"
            other = {**body["points"][0], "payload": {"title": "Other", "content": "Faster."}}
            served(handler, store, parts, {"points": [other]})
        return served(handler, store, parts, body)

    qdrant.RequestHandlerClass = type("Racing", (qdrant.RequestHandlerClass,), {"_result": racing})

    async def run() -> int:
        async with open_memory(MemorySettings(url=qdrant.url, **fast), Path()) as memory:
            return (await Writer(memory).store(Draft("Mine", "Slower."), "c"))["id"]

    assert anyio.run(run) == 2
    rows, _ = qdrant.store.scroll("c")
    assert [(row.id, row.payload["title"]) for row in rows] == [(1, "Other"), (2, "Mine")]


def test_a_collection_that_another_writer_made_meanwhile_is_used(qdrant: Any, fast: dict[str, str]):
    served = qdrant.RequestHandlerClass._result

    def racing(handler: Any, store: Any, parts: list[str], body: Any) -> Any:
        if handler.command == "PUT" and parts == ["collections", "c"]:
            served(handler, store, parts, body)
        return served(handler, store, parts, body)

    qdrant.RequestHandlerClass = type("Racing", (qdrant.RequestHandlerClass,), {"_result": racing})

    async def run() -> int:
        async with open_memory(MemorySettings(url=qdrant.url, **fast), Path()) as memory:
            return (await Writer(memory).store(Draft("Mine", "Text."), "c"))["id"]

    assert anyio.run(run) == 1


def test_a_server_that_cannot_write_only_where_an_id_is_free_is_refused(
    run: Run, qdrant: Any, notes: Path
):
    assert notes
    qdrant.version = "1.16.3"
    refused = run("import", "notes", "--collection", "c", status=1, url=qdrant.url).stderr
    assert "The Qdrant server is version 1.16.3" in refused
    assert "update it to 1.17 or later" in refused


def test_of_equal_lines_one_writes_the_memory(run: Run, notes: Path):
    line = {"title": "a", "content": "b"}
    lines = [{**line, "preview": "First."}, {**line, "preview": "Second."}]
    (notes.parent / "m.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert counts(imported(run, "m.jsonl")) == (1, 0, 1)
    assert counts(imported(run, "m.jsonl")) == (0, 0, 2)
    assert shown(run, 1)["preview"] == "First."
    lines[1]["id"] = 1
    (notes.parent / "m.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for expected in ((0, 1, 1), (0, 0, 2)):
        assert counts(imported(run, "m.jsonl")) == expected
        assert shown(run, 1)["preview"] == "Second.", "a line with an id counts"
