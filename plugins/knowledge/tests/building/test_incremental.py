"""A second build encodes what has changed, and nothing else."""

import json

import numpy as np
import pytest

from standards_mcp_knowledge.building import build_dataset
from standards_mcp_knowledge.building.dataset_files import read_vectors
from standards_mcp_knowledge.workers.pool import OverdueError, UnavailableError


@pytest.fixture
def rows(out, documents):
    """Return the vectors of the dataset, by the content of its documents."""
    return lambda: dict(
        zip(
            (each["content"] for each in documents()),
            read_vectors(out / "index" / "docs.index"),
            strict=True,
        )
    )


def test_unchanged_passages_keep_their_vectors(write, build, work, rows):
    write({"a.md": "# A\n\nOne.\n\n## B\n\nTwo.", "b.md": "# C\n\nThree."})
    build()
    before = rows()
    work.encoded.clear()
    write({"a.md": "# A\n\nOne.\n\n## B\n\nTwo and more.", "c.md": "# D\n\nFour."})

    report = build()

    after = rows()
    assert (report.chunks, report.unchanged) == (4, 2)
    assert work.encoded == [
        "A\n# A\n\nOne.",  # encoded anew to see whether the encoder is the same
        "A: B\n## B\n\nTwo and more.",
        "D\n# D\n\nFour.",
    ]
    assert np.array_equal(before["# C\n\nThree."], after["# C\n\nThree."])


def test_vectors_follow_moved_passages_and_leave_with_deleted_ones(write, build, rows, folder):
    write({"a.md": "# A\n\nOne.", "b.md": "# B\n\nTwo."})
    build()
    before = rows()
    (folder / "a.md").rename(folder / "z.md")
    write({"a.md": "# A\n\nZero."})
    (folder / "b.md").unlink()

    report = build()

    assert (report.chunks, report.unchanged) == (2, 1)
    assert list(rows()) == ["# A\n\nZero.", "# A\n\nOne."]
    assert np.array_equal(before["# A\n\nOne."], rows()["# A\n\nOne."])


def test_another_model_keeps_no_vector(write, build):
    write({"a.md": "One."})
    build()

    assert build(model="minilm").unchanged == 0


def test_an_encoder_that_has_changed_behind_its_name_keeps_no_vector(write, build, work, rows):
    write({"a.md": "One.", "b.md": "Two."})
    build()
    work.salt = 1

    assert build().unchanged == 0
    assert np.array_equal(rows()["Two."], work.encode(["b\nTwo."], "")[0])


def test_vectors_of_other_datasets_are_reused(write, build, work, rows, tmp_path):
    write({"a.md": "One.", "b.md": "Two."})
    others = [tmp_path / "none", tmp_path / "tried"]
    build(id="tried", place=others[1])
    work.encoded.clear()
    write({"c.md": "Three."})

    report = build(others=others)

    assert (report.chunks, report.unchanged) == (3, 2)
    assert work.encoded == ["a\nOne.", "c\nThree."], "one text shows that the encoder is the same"
    assert np.array_equal(rows()["Two."], work.encode(["b\nTwo."], "")[0])
    assert build(others=others).unchanged == 3
    write({"a.md": "Four.", "b.md": "Five.", "c.md": "Six."})
    assert build(others=others).unchanged == 0, "no text is known"


@pytest.mark.parametrize("manifest", [b"{}", b'{"builtBy": "another program"}'])
def test_vectors_of_datasets_that_others_made_are_not_reused(manifest, write, build, tmp_path):
    write({"a.md": "One."})
    other = tmp_path / "other"
    build(id="other", place=other)
    (other / "manifest.json").write_bytes(manifest)

    assert build(others=[other]).unchanged == 0


def test_vectors_of_a_dataset_that_is_replaced_meanwhile_are_not_reused(
    write, build, work, rows, tmp_path, folder, monkeypatch
):
    other = tmp_path / "other"
    write({"a.md": "One."})
    build(id="other", place=other)

    def replace(function, *arguments):
        if function is read_vectors:
            monkeypatch.undo()
            (folder / "a.md").write_text("Two.")
            build(id="other", place=other)
            (folder / "a.md").write_text("One.")
        return function(*arguments)

    monkeypatch.setattr(work, "call", replace)

    assert build(others=[other]).unchanged == 0
    assert np.array_equal(rows()["One."], work.encode(["a\nOne."], "")[0])


@pytest.mark.parametrize("damaged", ["metadata.json", "index/docs.index"])
def test_a_dataset_that_is_damaged_is_made_anew(damaged, write, build, out):
    write({"a.md": "One."})
    build()
    sound = (out / damaged).read_bytes()
    (out / damaged).write_bytes(sound[: len(sound) // 2])

    assert build().unchanged == 0
    assert build().unchanged == 1


@pytest.mark.parametrize("error", [UnavailableError(1), OverdueError(300)], ids=["ends", "hangs"])
def test_an_index_that_costs_its_worker_keeps_no_vector(error, write, build, work):
    write({"a.md": "One."})
    build()
    call = work.call

    def fail(function, *arguments):
        if function is read_vectors:
            raise error
        return call(function, *arguments)

    work.call = fail
    assert build().unchanged == 0


def test_metadata_of_another_shape_keeps_no_vector(write, build, out):
    write({"a.md": "One."})
    build()
    metadata = json.loads((out / "metadata.json").read_bytes())
    for documents in ([], [{"title": "a"}], ["a"], None):
        (out / "metadata.json").write_text(json.dumps(metadata | {"documents": documents}))

        assert build().unchanged == 0


def test_a_text_that_is_there_twice_is_encoded_once(write, build, work):
    write({"x/a.md": "One.", "y/a.md": "One."})

    assert build().chunks == 2
    assert work.encoded == ["a\nOne."]


def test_progress_counts_up_to_all_passages(write, folder, out, work, options):
    write({f"{number}.md": "x" for number in range(20)})
    seen = []

    build_dataset(folder, out, options, work, lambda *counts: seen.append(counts))

    assert seen == [(0, 20), (16, 20), (20, 20)]
