"""A build reads the supported files, and reports the skipped ones."""

import os

import pytest

from standards_mcp_knowledge.building import build_dataset


@pytest.fixture
def paths(documents):
    return lambda: [each["path"] for each in documents()]


def test_files_of_known_kinds_are_read_in_the_order_of_their_paths(write, build, paths):
    write({"b.md": "b", "a/z.TXT": "z", "a.rst": "a", "c.json": "{}", "d.markdown": "d"})

    report = build()

    assert paths() == ["a.rst", "a/z.TXT", "b.md", "d.markdown"]
    assert (report.files, report.skipped) == (4, [])


def test_hidden_files_and_folders_are_skipped_and_reported(write, build, paths):
    write({"a.md": "a", ".b.md": "b", ".git/c.md": "c", ".ignored": ""})

    report = build()

    assert paths() == ["a.md"]
    assert [(each.path, each.reason) for each in report.skipped] == [
        (".b.md", "hidden"),
        (".git/", "hidden"),
    ]


def test_links_that_leave_the_folder_are_skipped_and_reported(
    write, build, paths, folder, tmp_path
):
    write({"a/b.md": "b"})
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.md").write_text("secret")
    (folder / "inside.md").symlink_to("a/b.md")
    (folder / "out.md").symlink_to(tmp_path / "secret" / "key.md")
    (folder / "outside").symlink_to(tmp_path / "secret")
    (folder / "again").symlink_to("a")
    (folder / "round.md").symlink_to("round.md")
    (folder / "gone.md").symlink_to("nothing.md")

    report = build()

    assert paths() == ["a/b.md", "inside.md"]
    assert [(each.path, each.reason) for each in report.skipped] == [
        ("again/", "a link to a folder"),
        ("gone.md", "it cannot be read: No such file or directory"),
        ("out.md", "a link that leaves the folder"),
        ("outside/", "a link that leaves the folder"),
        ("round.md", "it cannot be read: Too many levels of symbolic links"),
    ]


def test_a_dataset_inside_its_folder_is_not_one_of_the_documents(folder, work, options):
    (folder / "a.md").write_text("a")
    for _ in range(2):
        report = build_dataset(folder, folder / "guide", options, work, lambda *_: None)

    assert (report.files, report.unchanged, report.skipped) == (1, 1, [])


def test_special_files_are_not_opened(write, build, folder):
    write({"a.md": "a"})
    os.mkfifo(folder / "pipe.md")

    assert [(each.path, each.reason) for each in build().skipped] == [("pipe.md", "not a file")]


def test_a_name_that_is_not_utf8_is_reported(write, build, folder):
    write({"a.md": "a"})
    (folder / os.fsdecode(b"gr\xf6sse.md")).write_text("x")

    reasons = [(each.path, each.reason) for each in build().skipped]

    assert reasons == [("gr?sse.md", "its name is not UTF-8")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_files_are_reported(write, build, folder):
    write({"a.md": "a", "b.md": "b", "c/d.md": "d"})
    (folder / "b.md").chmod(0)
    (folder / "c").chmod(0)
    try:
        reasons = [(each.path, each.reason) for each in build().skipped]
    finally:
        (folder / "c").chmod(0o700)

    refused = "it cannot be read: Permission denied"
    assert reasons == [("b.md", refused), ("c/", refused)]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        (["*.txt"], ["a/c.txt"]),
        (["a/*"], ["a/b.md", "a/c.txt"]),
        (["a/**/*.md", "**/top.md"], ["a/b.md", "top.md"]),
    ],
)
def test_globs_say_which_files_are_read(include, expected, write, build, paths):
    write({"top.md": "t", "a/b.md": "b", "a/c.txt": "c"})

    build(include=tuple(include))

    assert paths() == expected
