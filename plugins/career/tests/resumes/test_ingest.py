"""Resumes are taken in from allowed places, each content once."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from standards_mcp import InvalidInputError, NotFoundError, ToolError
from standards_mcp_career.answers import IngestAnswer
from standards_mcp_career.audit import AuditLog
from standards_mcp_career.database import Store
from standards_mcp_career.primitives import hash64
from standards_mcp_career.records import Resume
from standards_mcp_career.resumes import ingest_resume
from standards_mcp_career.service import open_career
from standards_mcp_career.settings import CareerSettings
from standards_mcp_career.tables import find, scan

Ingest = Callable[..., IngestAnswer]
EXAMPLE = b"##Skills \r\n\r\n\r\n\r\n- Kafka"
DEFAULTS = CareerSettings.model_validate({})
NORMAL = "## Skills\n\n\n- Kafka"


def test_a_resume_is_stored_with_its_hashes_and_its_origin(
    ingest: Ingest, store: Store, audit: AuditLog, root: Path
):
    file = root / "Resume.MD"
    file.write_bytes(EXAMPLE)
    answer = ingest(str(file))
    resume_hash = "sha256:" + hashlib.sha256(NORMAL.encode()).hexdigest()
    assert answer == {
        "resume_id": "resume--2",
        "resume_hash": resume_hash,
        "source_hash": hash64(NORMAL),
        "stored": True,
        "trace_id": "trace-0",
    }
    with store.reading() as connection:
        found = find(connection, Resume, "resume--2")
    assert found is not None
    assert found == Resume(
        "resume--2",
        NORMAL,
        resume_hash,
        "2026-01-01T00:00:00Z",
        str(file),
        hashlib.sha256(EXAMPLE).hexdigest(),
        "md-pass-through-v1",
        "2026-01-01T00:00:00Z",
        "0.3",
    )
    events = audit.page("trace-0")["events"]
    assert [(event["event_type"], event["payload"], event["refs"]) for event in events] == [
        (
            "IngestStarted",
            {"source": "app_service", "operation": "ingest_resume", "persist": True},
            [],
        ),
        (
            "IngestCompleted",
            {
                "resume_id": "resume--2",
                "resume_hash": resume_hash,
                "source_hash": hash64(NORMAL),
                "persisted": True,
            },
            ["resume--2"],
        ),
    ]


def test_the_same_content_keeps_its_id_in_any_file(ingest: Ingest, root: Path):
    for name, data in (("a.md", EXAMPLE), ("b.markdown", b"\xef\xbb\xbf" + NORMAL.encode())):
        (root / name).write_bytes(data)
    first = ingest(str(root / "a.md"))
    again = ingest(str(root / "b.markdown"), trace_id="mine")
    assert again == {**first, "stored": False, "trace_id": "mine"}


def test_a_resume_is_only_looked_at_if_it_is_not_to_be_kept(
    ingest: Ingest, store: Store, root: Path
):
    (root / "a.md").write_bytes(EXAMPLE)
    answer = ingest(str(root / "a.md"), persist=False)
    assert answer["stored"] is False
    with store.reading() as connection:
        assert list(scan(connection, Resume)) == []


@pytest.mark.parametrize("name", ["a.txt", "a.TEXT"])
def test_plain_text_gets_a_heading(ingest: Ingest, store: Store, root: Path, name: str):
    (root / name).write_text("Kafka\nGo\n")
    ingest(str(root / name))
    with store.reading() as connection:
        (found,) = scan(connection, Resume)
    assert found.markdown == "# Resume\n\nKafka\nGo\n"
    assert found.extraction_method == "txt-wrap-v1"


def test_threads_that_bring_one_content_store_it_once(ingest: Ingest, root: Path):
    (root / "a.md").write_bytes(EXAMPLE)
    stored: list[bool] = []

    def bring() -> None:
        stored.append(ingest(str(root / "a.md"))["stored"])

    threads = [threading.Thread(target=bring) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(stored) == [False] * 7 + [True]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.md", b"", "Empty input data"),
        ("a.md", b" \n\t", "Extraction failed: it has no text"),
        ("a.txt", b"\xef\xbb\xbf", "Extraction failed: it has no text"),
        ("a.txt", b"\xff\xfe", "Extraction failed: it is not UTF-8 text"),
        ("a.md", b"x" * 100_001, "more than 100,000 bytes.*max_resume_bytes"),
        ("a.doc", b"x", r"\.md, \.markdown, \.txt, \.text, \.docx, \.pdf; not \.doc"),
        ("a", b"x", "not none"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_why(
    ingest: Ingest, audit: AuditLog, root: Path, name: str, data: bytes, message: str
):
    (root / name).write_bytes(data)
    with pytest.raises(InvalidInputError, match=message):
        ingest(str(root / name))
    assert [event["event_type"] for event in audit.page("trace-0")["events"]] == ["IngestStarted"]


def test_links_count_as_what_they_lead_to(ingest: Ingest, root: Path, tmp_path: Path):
    (root / "a.md").write_bytes(EXAMPLE)
    (tmp_path / "outside.md").write_bytes(EXAMPLE)
    (tmp_path / "link.md").symlink_to(root / "a.md")
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "folder").symlink_to(tmp_path)
    (root / "loop.md").symlink_to(root / "loop.md")
    assert ingest(str(tmp_path / "link.md"))["stored"]
    for name in ("link.md", "folder/outside.md"):
        with pytest.raises(NotFoundError, match="resume_roots"):
            ingest(str(root / name))
    with pytest.raises(NotFoundError, match="Failed to open file"):
        ingest(str(root / "loop.md"))


@pytest.mark.parametrize(
    "path",
    ["../a.md", "../none.md", ".hidden.md", ".none.md", "folder/.git/a.md", "/etc/passwd", "x.md"],
)
def test_places_that_are_not_allowed_are_told_as_missing_files_are(
    ingest: Ingest, root: Path, tmp_path: Path, path: str
):
    for file in (root / ".hidden.md", tmp_path / "a.md"):
        file.write_bytes(EXAMPLE)
    given = str(root / path)
    with pytest.raises(NotFoundError) as raised:
        ingest(given)
    start, where = (
        f"Ingestion failed: Failed to open file: {given}. ",
        "plugins.career.resume_roots",
    )
    assert str(raised.value).startswith(start)
    assert where in str(raised.value)
    assert str(root) not in str(raised.value).removeprefix(start)


@pytest.mark.parametrize("path", ["a.md", "", "~/a.md", "file:///a.md"])
def test_a_path_must_be_absolute(ingest: Ingest, path: str):
    with pytest.raises(InvalidInputError, match="absolute path"):
        ingest(path)


@pytest.mark.parametrize(
    "name", ["none.md", "folder.md", "pipe.md", "nul\0.md", "x" * 10_000], ids=range(5)
)
def test_what_is_no_file_is_not_found(ingest: Ingest, root: Path, name: str):
    (root / "folder.md").mkdir()
    os.mkfifo(root / "pipe.md")
    extension = "" if name.endswith(".md") else ".md"
    path = f"{root}/{name}{extension}"
    with pytest.raises(NotFoundError) as raised:
        ingest(path)
    assert str(raised.value).startswith(f"Ingestion failed: Failed to open file: {path}. It is")


def test_a_file_without_permission_is_not_found(ingest: Ingest, root: Path):
    if os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    (root / "a.md").write_bytes(EXAMPLE)
    (root / "a.md").chmod(0)
    with pytest.raises(ToolError, match="Failed to open file"):
        ingest(str(root / "a.md"))


def test_without_roots_no_file_is_read_and_existing_files_look_like_missing_ones(tmp_path: Path):
    (tmp_path / "a.md").write_bytes(EXAMPLE)
    answers = set[str]()
    with closing(open_career(DEFAULTS, is_server=True)) as career:
        for name in ("a.md", "none.md", "x\0.md", "a.exe"):
            with pytest.raises(NotFoundError, match=r"Set plugins\.career\.resume_roots") as raised:
                ingest_resume(career.audit, career.limits, str(tmp_path / name))
            answers.add(str(raised.value).replace(name, ""))
    with closing(open_career(DEFAULTS)) as career:
        assert ingest_resume(career.audit, career.limits, str(tmp_path / "a.md"))["stored"]
    assert len(answers) == 1
