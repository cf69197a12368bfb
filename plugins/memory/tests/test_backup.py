"""Backups of an embedded store: while a server writes to it, and killed at any moment."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from support.killing import finished, killed, started

from standards_mcp_backup import BackupError
from standards_mcp_backup.archive import reading_archive
from standards_mcp_memory.backup import MemoryBackup
from standards_mcp_memory.service import open_memory
from standards_mcp_memory.settings import MemorySettings

pytestmark = [pytest.mark.processes, pytest.mark.slow]
KILLS = int(os.environ.get("KILLS", "2"))
WRITER = """
import anyio, sys
from pathlib import Path
from standards_mcp_memory.records import Draft
from standards_mcp_memory.service import open_memory
from standards_mcp_memory.settings import MemorySettings
from standards_mcp_memory.writing import Writer

async def write():
    async with open_memory(MemorySettings(path=sys.argv[1]), Path()) as memory:
        writer = Writer(memory)
        for number in range(1, 1_000_000):
            for name in ("first", "second"):
                await writer.store(Draft(f"Title {number}", f"Content {number}"), name)
            if number % 10 == 0:
                await writer.store(Draft("Title", "Content"), "passing")
                await memory.drop(await memory.describe("passing"))
            print(number, flush=True)

anyio.run(write)
"""


@pytest.fixture(autouse=True)
def folder(install: Callable[..., Path], tmp_path: Path) -> Path:
    """Install and configure the plugin, and return the folder of the store."""
    install("memory", "from standards_mcp_memory.plugin import MemoryPlugin as MemoryPlugin")
    text = f"state_dir = {json.dumps(str(tmp_path / 'state'))}\n[plugins.catalog]\n"
    text += f"enabled = false\n[plugins.memory]\npath = {json.dumps(str(tmp_path / 'store'))}\n"
    Path("standards-mcp.toml").write_text(f"{text}lock_wait = 0.5\n", encoding="utf-8")
    return tmp_path / "store"


def contents(folder: Path) -> dict[str, list[str]]:
    """Return the titles of each collection, as the plugin reads them."""

    async def read() -> dict[str, list[str]]:
        async with open_memory(MemorySettings(path=str(folder)), Path()) as memory:
            names = [each["name"] for each in (await memory.collections())["collections"]]
            return {name: [each.title for each in await memory.read_all(name)] for name in names}

    return anyio.run(read)


def filled(name: str, count: int) -> None:
    """Import so many memories into a collection."""
    lines = [{"title": f"{name} {number}", "content": f"text {number}"} for number in range(count)]
    Path("in.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines), "utf-8")
    finished("memory", "import", "in.jsonl", "--collection", name)


def unpacked(archive: Path, folder: Path) -> Path:
    folder.mkdir()
    with reading_archive(archive) as reader:
        reader.extract(reader.manifest.parts, folder)
    return folder / "plugins" / "memory"


def test_a_backup_while_a_process_writes_has_one_state_of_each_collection(
    folder: Path, tmp_path: Path
):
    program = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        try:
            for number in range(3):
                before = int(writer.stdout.readline())
                finished("backup", f"{number}.zip")
                kept = contents(unpacked(Path(f"{number}.zip"), tmp_path / str(number)))
                assert kept.keys() <= {"first", "second", "passing"}
                for name in ("first", "second"):
                    count = len(kept[name])
                    assert count >= before - 1
                    assert kept[name] == [f"Title {each}" for each in range(1, count + 1)]
            process = started("restore", "0.zip", "--yes")
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 1
            assert "is in use; end the server" in errors
        finally:
            writer.kill()
    finished("restore", "0.zip", "--yes")
    assert contents(folder) == contents(tmp_path / "0" / "plugins" / "memory")


def test_an_empty_machine_gives_the_same_answers(folder: Path):
    filled("rivers", 20)
    question = ("memory", "search", "rivers", "rivers 7", "--json")
    before = finished(*question)
    finished("backup", "backup.zip")
    folder.rename(folder.with_name("old"))
    finished("restore", "backup.zip", "--yes")
    assert finished(*question) == before
    if os.name != "nt":
        files = (path for path in folder.rglob("*") if path.name != ".lock")  # of Qdrant, empty
        modes = {path.stat().st_mode & 0o077 for path in files}
        assert modes == {0}


def test_a_restore_that_is_killed_leaves_the_old_store_or_the_new_one(
    folder: Path, chance: random.Random
):
    filled("rivers", 300)
    filled("lakes", 10)
    new = contents(folder)
    finished("backup", "new.zip")
    folder.rename(folder.with_name("first"))
    filled("hills", 200)
    old = contents(folder)
    finished("backup", "old.zip")
    began = time.monotonic()
    finished("restore", "old.zip", "--yes")
    seconds = time.monotonic() - began
    for _ in range(KILLS):
        killed(1.1 * seconds, chance, "restore", "new.zip", "--yes")
        state = contents(folder)
        assert state in (old, new)
        if state == new:
            finished("restore", "old.zip", "--yes")
    finished("restore", "new.zip", "--yes")
    assert contents(folder) == new
    assert not [*folder.glob("restored*")]


KILLED_INSIDE = """
import os, sys
from pathlib import Path
from standards_mcp_memory import folder
steps, store, copy = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
count = 0

def traced(frame, event, _):
    global count
    if frame.f_code.co_filename == folder.__file__:
        count += 1
        if count == steps:
            os._exit(9)
    return traced

sys.settrace(traced)
folder.restore(store, copy)
"""


def test_a_restore_that_ends_at_any_line_leaves_the_old_store_or_the_new_one(
    folder: Path, tmp_path: Path
):
    filled("rivers", 3)
    finished("backup", "new.zip")
    new = contents(folder)
    copy = unpacked(Path("new.zip"), tmp_path / "copy")
    folder.rename(folder.with_name("first"))
    filled("hills", 2)
    old = contents(folder)
    states = list[Any]()
    for step in range(1, 1000):
        store = tmp_path / f"store-{step}"
        subprocess.run(["cp", "-r", str(folder), str(store)], check=True)
        program = [sys.executable, "-c", KILLED_INSIDE, str(step), str(store), str(copy)]
        code = subprocess.run(program, check=False).returncode
        saved = tmp_path / f"saved-{step}"
        saved.mkdir()
        MemoryBackup(store, 1).save(saved)  # before anything else opens the store
        states.append(contents(saved))
        assert states[-1] == contents(store)
        if code == 0:
            break
    assert len(states) > 15
    assert all(state in (old, new) for state in states)
    assert (states[0], states[-1]) == (old, new)


def test_a_damaged_copy_is_refused(folder: Path, tmp_path: Path):
    filled("rivers", 3)
    backup = MemoryBackup(folder, 1)
    copy = tmp_path / "copy"
    for name, data in (
        ("meta.json", b"{"),
        ("meta.json", b'{"collections": {"..": {}}}'),
        ("meta.json", b'{"collections": {}}'),
        ("meta.json", b'{"collections": [1]}'),
        ("meta.json", b"[" * 100_000),
        ("collection/rivers/storage.sqlite", b"SQLite format 3\0" + b"x" * 4096),
    ):
        subprocess.run(["rm", "-rf", str(copy)], check=True)
        copy.mkdir()
        backup.save(copy)
        (copy / name).write_bytes(data)
        with pytest.raises(BackupError), backup.restoring(copy):
            pass


def test_unknown_files_of_an_archive_do_not_damage_the_store(folder: Path, tmp_path: Path):
    filled("rivers", 3)
    before = contents(folder)
    backup, copy = MemoryBackup(folder, 1), tmp_path / "copy"
    copy.mkdir()
    backup.save(copy)
    (copy / "notes.txt").write_text("mine", encoding="utf-8")
    with backup.restoring(copy) as replace:
        replace()
    assert contents(folder) == before
    assert not [*folder.glob("restored*")]
