"""The commands, as users type them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from _pytest.capture import CaptureResult

from standards_mcp.cli import run as run_program
from standards_mcp_encoders import Vectors
from standards_mcp_knowledge.building.dataset_files import read_vectors, write_index

DOCS = Path(__file__).parents[3] / "docs"
pytestmark = pytest.mark.usefixtures("installed")
QUESTION = "How do I switch a single tool off?"
MakeDataset = Callable[..., Path]
Run = Callable[..., CaptureResult[str]]


@pytest.fixture
def config(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration of the datasets alone; the working directory is its folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "config.toml"
    lines = (
        f"state_dir = {json.dumps(str(tmp_path / 'state'))}",
        "[plugins.knowledge]",
        f"root = {json.dumps(str(root))}",
        "workers = 1",
    )
    file.write_text("\n".join(lines), "utf-8")
    return file


@pytest.fixture
def run_in_processes(config: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs ``standards-mcp knowledge``, with worker processes."""

    def run(
        *arguments: str | Path, status: int = 0, group: Sequence[str] = ("knowledge",)
    ) -> CaptureResult[str]:
        capsys.readouterr()
        code = run_program(["--config", str(config), *group, *map(str, arguments)])
        printed = capsys.readouterr()
        assert code == status, printed.err
        return printed

    return run


@pytest.fixture
def run(run_in_processes: Run, workers_here: None) -> Run:
    """Return a function that runs ``standards-mcp knowledge`` without a process."""
    del workers_here
    return run_in_processes


def test_the_main_job_takes_one_command(run_in_processes: Run, tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    shutil.copy(DOCS / "administering.md", folder)
    (folder / "cake.txt").write_text("Bake the cake for an hour.")
    found = json.loads(run_in_processes("try", folder, QUESTION, "--json").out)
    assert "administering.md" in {hit["path"] for hit in found["results"]}
    assert found["metadata"]["query"] == QUESTION
    # The second time, nothing is encoded but the question.
    said = run_in_processes("try", folder, QUESTION, "--top", "1").out
    assert said.startswith("1. ")
    assert len(said.splitlines()) == 2


def test_try_and_build_reuse_the_vectors_of_each_other(run: Run, root: Path, tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "cake.txt").write_text("Bake the cake for an hour.")
    (folder / "tools.md").write_text("# Tools\n\nA tool is switched off in the settings.")
    about = ("--id", "guide", "--name", "Guide", "--description", "Tools and cakes.")
    run("try", folder, QUESTION)
    assert json.loads(run("build", folder, *about, "--json").out)["unchanged"] == 2
    # A vector that differs from the vector of its text was not encoded again.
    tried = tmp_path / "state/plugins/knowledge/tried"
    shutil.rmtree(tried)
    index = root / "guide/index/docs.index"
    vectors = read_vectors(index)
    vectors[1] = -vectors[1]
    write_index(vectors, index)
    run("try", folder, QUESTION)
    (found,) = tried.glob("*/index/docs.index")
    assert np.allclose(read_vectors(found), vectors)


def test_a_dataset_is_built_checked_listed_and_searched(run: Run, root: Path, tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tools.md").write_text("# Tools\n\n## Off\n\nA tool is switched off by disable.\n")
    (folder / "cake.txt").write_text("Bake the cake for an hour.")
    (folder / "damaged.pdf").write_bytes(b"%PDF-1.7 nothing")
    about = ("--id", "guide", "--name", "Guide", "--description", "Tools and cakes.")
    built = json.loads(run("build", folder, *about, "--json").out)
    assert (built["files"], built["chunks"], built["unchanged"]) == (2, 2, 0)
    assert built["path"] == str(root / "guide")
    assert [each["path"] for each in built["skipped"]] == ["damaged.pdf"]
    assert "2 passages of 2 files, 2 unchanged" in run("build", folder, *about).out
    run("build", folder, *about, "--out", "elsewhere")
    other = ("--id", "other", "--name", "Other", "--description", "Another.")
    refused = run("build", folder, *other, "--out", "elsewhere", status=1)
    assert "holds the dataset 'guide'; choose another folder" in refused.err
    assert (tmp_path / "elsewhere/manifest.json").is_file()

    assert run("check").out == f"guide ({root}/guide/manifest.json): good\n"
    checked = json.loads(run("check", "guide", "elsewhere", "--json", status=1).out)
    assert [each["status"] for each in checked["datasets"]] == ["ready", "error"]
    assert "neither the id" in run("check", "nothing", status=1).err

    assert run("list").out == "guide: Guide, 2 passages\n   Tools and cakes.\n"
    found = json.loads(run("search", "guide", QUESTION, "--json").out)
    assert [hit["path"] for hit in found["results"]] == ["tools.md", "cake.txt"]
    assert "Available datasets: guide" in run("search", "zoo", QUESTION, status=1).err


def test_an_index_that_takes_more_memory_than_a_worker_has_is_made_anew(
    run_in_processes: Run, root: Path, tmp_path: Path
):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "cake.txt").write_text("Bake the cake for an hour.")
    about = ("--id", "guide", "--name", "Guide", "--description", "Tools and cakes.")
    run_in_processes("build", folder, *about)
    # Its header states more vectors than that.
    index = root / "guide/index/docs.index"
    index.write_bytes(index.read_bytes()[:37] + (2**33).to_bytes(8, "little"))
    printed = run_in_processes("build", folder, *about).out
    assert "1 passages of 1 files, 0 unchanged" in printed


@pytest.mark.measured
def test_letters_that_a_pipe_does_not_know_end_no_command(config: Path, tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/Ł.md").write_text("# Ł\n\nThe depot is closed.\n", "utf-8")
    command = [sys.executable, "-m", "standards_mcp", "--config", config]
    printed = subprocess.run(
        [*command, "knowledge", "try", "docs", "When is it open?"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
    ).stdout
    assert printed.startswith("1. \\u0141.md  \\u0141  (")


def test_the_health_of_an_empty_library_says_how_to_fill_it(run: Run):
    checked = run("plugins", "check", group=())
    assert "no datasets yet; `standards-mcp knowledge build` makes one" in " ".join(
        checked.out.split()
    )


def test_a_check_reports_the_error_of_each_dataset(
    run: Run, make_dataset: MakeDataset, root: Path, vectors: Vectors
):
    assert run("check").out == f"There are no datasets in {root}.\n"
    make_dataset("good")
    make_dataset("bad", rows=np.ascontiguousarray(vectors[:2]))
    lines = run("check", status=1).out.splitlines()
    assert lines[0].endswith("manifest.json): Index has 2 vectors, metadata has 5 documents")
    assert lines[1].endswith(": good")
    assert run("check", "good").out.endswith(": good\n")
    assert run("check", "good", root / "good").out.count(": good") == 1
    assert run("check", root / "bad", status=1).out.startswith("bad (")
    assert "neither the id" in run("check", "x" * 300, status=1).err
    assert "left out\n   Index has 2" in run("list", "--errors").out
    outside = root.parent / "outside"
    (root / "bad").rename(outside)
    (root / "linked").symlink_to(outside)
    linked = f"({root}/linked/manifest.json): Path leaves the dataset folders: manifest"
    assert linked in run("check", status=1).out
    assert linked in run("check", root / "linked", status=1).out


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("build", "none", "--id", "a", "--name", "A", "--description", "A"), 2, "does not exist"),
        (
            ("build", ".", "--id", "A B", "--name", "A", "--description", "A"),
            2,
            "Invalid id: 1 to 64",
        ),
        (("build", ".", "--id", "a"), 2, "Missing option '--name'"),
        (("try", "empty", "What?"), 1, "has no documents that can be read"),
        (("try", "empty", " "), 2, "1 to 1,024 characters"),
        (("search", "guide", "a", "--top", "0"), 2, "not in the range"),
        (
            ("build", "full", "--id", "a", "--name", "A", "--description", "A", "--model", "x"),
            1,
            "No encoder for model 'x'",
        ),
    ],
)
def test_bad_usage_and_failures_have_an_exit_status_and_a_sentence(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], status: int, said: str
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/a.md").write_text("text")
    assert said in run(*arguments, status=status).err


def test_the_schema_is_printed(run: Run):
    schema = json.loads(run("schema").out)
    assert schema["properties"]["id"]["pattern"] == "^[a-z0-9-]{1,64}$"
