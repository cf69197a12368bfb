"""A dataset is replaced as a whole or not at all."""

import errno
import json
import os
import resource
import select
import subprocess
import sys
import time

import pytest

from standards_mcp_knowledge.building import BuildError, dataset_files

BUILDER = """
import sys, time
from pathlib import Path
import numpy as np
from standards_mcp_knowledge.building import BuildOptions, build_dataset
from standards_mcp_knowledge.building.dataset_files import write_index
from standards_mcp_knowledge.manifests import Manifest

class Work:
    def encode(self, texts, model):
        return np.ones((len(texts), 1), dtype=np.float32)

    def call(self, function, *arguments):
        if function is not write_index:
            raise OSError
        vectors, path = arguments
        path.write_bytes(vectors.tobytes())
        if mode == "wait":
            print("waiting", flush=True)
            time.sleep(90)

folder, out, mode = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
files = {"index": "index/docs.index", "metadata": "metadata.json"}
about = {"id": "guide", "name": "Guide", "description": "x"}
options = BuildOptions(manifest=Manifest.of({**about, **files}))
while True:
    build_dataset(folder, out, options, Work(), lambda *_: None)
    print("built", flush=True)
    document = folder / "b.md"
    document.unlink() if document.exists() else document.write_text("b")
"""


@pytest.fixture
def builder(folder, out):
    """Start a process that builds again and again; return it when it has said a word."""
    started = []

    def start(mode):
        command = [sys.executable, "-c", BUILDER, str(folder), str(out), mode]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0)
        started.append(process)
        assert process.stdout
        assert select.select([process.stdout], [], [], 90)[0]
        process.stdout.readline()
        return process

    yield start
    for process in started:
        kill(process)


def kill(process):
    process.kill()
    process.stdout.close()
    process.wait()


def snapshot(out):
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def beside(out):
    return sorted(path.name for path in out.parent.iterdir() if path.suffix != ".lock")


def test_the_manifest_describes_the_dataset(write, build, out):
    write({"a.md": "One."})

    report = build(name="  Guide ")

    assert (report.id, report.path) == ("guide", str(out))
    assert json.loads((out / "manifest.json").read_bytes()) == {
        "id": "guide",
        "name": "Guide",
        "description": "What we know",
        "index": "index/docs.index",
        "metadata": "metadata.json",
        "builtBy": "standards-mcp-knowledge",
    }
    metadata = json.loads((out / "metadata.json").read_bytes())
    assert metadata["model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert metadata["stats"].items() >= {"totalFiles": 1, "totalChunks": 1}.items()
    assert beside(out) == ["guide"]


def test_a_folder_without_text_leaves_the_dataset_as_it_is(write, build, out, folder):
    write({"a.md": "One."})
    build()
    before = snapshot(out)
    (folder / "a.md").write_text("")

    report = build()

    assert (report.files, report.chunks) == (0, 0)
    assert [each.path for each in report.skipped] == ["a.md"]
    assert snapshot(out) == before


def test_a_build_that_is_killed_leaves_the_old_dataset_and_the_next_one_clears_up(
    write, build, builder, out
):
    write({"a.md": "One."})
    build()
    before = snapshot(out)
    write({"a.md": "Two."})
    kill(builder("wait"))

    assert snapshot(out) == before
    assert beside(out) == [".guide.build", "guide"]
    assert not list(out.parent.glob("*/manifest.json"))[1:]

    build()

    assert beside(out) == ["guide"]
    assert snapshot(out) != before


def test_a_dataset_is_whole_whenever_a_build_is_killed(write, builder, out):
    write({"a.md": "One."})
    for number in range(4):
        process = builder("again")
        time.sleep(0.015 * number)
        kill(process)

        documents = json.loads((out / "metadata.json").read_bytes())["documents"]
        assert (out / "index" / "docs.index").stat().st_size == 4 * len(documents)
        json.loads((out / "manifest.json").read_bytes())


@pytest.mark.skipif(sys.platform != "linux", reason="where two folders can be exchanged at once")
def test_readers_find_a_dataset_at_every_moment(write, builder, out):
    write({"a.md": "One."})
    process = builder("again")
    end = time.monotonic() + 0.5

    while time.monotonic() < end:
        assert (out / "manifest.json").exists()
    assert process.poll() is None


def test_without_an_exchange_of_folders_the_dataset_is_replaced_too(
    write, build, out, documents, monkeypatch
):
    monkeypatch.setattr(dataset_files, "_exchange", lambda *_: False)
    write({"a.md": "One."})
    build()
    write({"a.md": "Two."})

    build()

    assert [each["content"] for each in documents()] == ["Two."]
    assert beside(out) == ["guide"]


def test_a_dataset_that_a_kill_left_out_of_its_place_is_put_back(write, build, out):
    write({"a.md": "One."})
    build()
    (out.parent / ".guide.build").mkdir()
    out.rename(out.parent / ".guide.build" / "old")

    assert build().unchanged == 1
    assert beside(out) == ["guide"]


def test_two_builds_at_once_are_refused(write, build, builder):
    write({"a.md": "One."})
    builder("wait")

    with pytest.raises(BuildError, match=r"another build is writing .*guide; try again"):
        build()


def test_a_full_disk_leaves_the_old_dataset(write, build, out):
    write({"a.md": "One."})
    build()
    before = snapshot(out)
    write({"b.txt": "Two three. " * 20_000})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        with pytest.raises(BuildError, match=r"cannot write the dataset .*: File too large"):
            build()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert snapshot(out) == before
    assert beside(out) == ["guide"]


def test_a_worker_that_finds_no_space_leaves_the_old_dataset(write, build, work, out):
    write({"a.md": "One."})
    build()
    before = snapshot(out)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    work.call = full
    with pytest.raises(BuildError, match="No space left on device; choose a folder"):
        build()

    assert snapshot(out) == before


def test_a_failure_of_the_encoder_is_passed_on_and_leaves_the_old_dataset(write, build, work, out):
    write({"a.md": "One."})
    build()
    before = snapshot(out)
    write({"a.md": "Two."})

    def fail(*_):
        raise RuntimeError("no encoder")

    work.encode = fail
    with pytest.raises(RuntimeError, match="no encoder"):
        build()

    assert snapshot(out) == before
    assert beside(out) == ["guide"]


def test_a_folder_that_cannot_be_written_is_reported(write, build, out):
    write({"a.md": "One."})
    out.parent.write_text("a file")

    with pytest.raises(BuildError, match=r"cannot write the dataset .*; choose a folder"):
        build()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_missing_permissions_are_reported(write, build, out):
    write({"a.md": "One."})
    out.parent.mkdir()
    out.parent.chmod(0o500)
    try:
        with pytest.raises(BuildError, match="Permission denied; choose a folder"):
            build()
    finally:
        out.parent.chmod(0o700)


def test_a_folder_of_the_user_is_never_replaced(write, build, out):
    write({"a.md": "One."})
    out.mkdir(parents=True)
    build()
    (out / ".DS_Store").write_text("a desktop's")
    build()
    (out / "notes.md").write_text("mine")

    with pytest.raises(BuildError, match=r"also holds notes\.md, which would be lost"):
        build()

    with pytest.raises(
        BuildError, match="holds the dataset 'guide'; choose another folder or that"
    ):
        build(id="other")

    (out / "manifest.json").write_text("{}")
    with pytest.raises(
        BuildError, match="holds files that no build has written; choose another folder"
    ):
        build()
    assert (out / "notes.md").read_text() == "mine"


def test_a_file_in_the_place_of_the_dataset_is_not_replaced(write, build, out):
    write({"a.md": "One."})
    out.parent.mkdir()
    out.write_text("mine")

    with pytest.raises(BuildError, match="is not a folder; choose another place"):
        build()


def test_documents_are_in_a_folder(build, folder):
    folder.rmdir()

    with pytest.raises(BuildError, match="is not a folder; name one that holds the documents"):
        build()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"chunk_words": 9}, "chunk words: use 10 to 2000"),
        ({"chunk_words": 50, "overlap_words": 26}, "overlap words: use 0 to half"),
    ],
)
def test_options_out_of_bounds_are_refused(wrong, reason, build):
    with pytest.raises(ValueError, match=reason):
        build(**wrong)


def test_the_longest_manifest_keeps_within_its_bound(write, build, out):
    write({"a.md": "One."})

    build(id="x" * 64, name="\x01" * 128, description="\x01" * 512)

    assert (out / "manifest.json").stat().st_size <= 10_240


def test_an_invalid_index_is_an_error_of_the_system(tmp_path):
    (tmp_path / "x.index").write_bytes(b"nonsense")

    with pytest.raises(OSError, match="Index type"):
        dataset_files.read_vectors(tmp_path / "x.index")
