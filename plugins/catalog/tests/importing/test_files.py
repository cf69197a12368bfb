from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from support.records import read_and_told

from standards_mcp_catalog.importing.files import open_sources
from standards_mcp_catalog.importing.formats.tabular import template
from standards_mcp_catalog.importing.readers import read_documents
from standards_mcp_catalog.importing.report import Problem


def read(*sources: Path, format_="auto", **options) -> tuple[set[str], list[Problem]]:
    documents = read_documents(open_sources(sources, **options), format_)
    records, problems = read_and_told(chain.from_iterable(documents))
    return {record.id for record in records}, problems


def reasons(problems: list[Problem]) -> list[str]:
    return [problem.reason for problem in problems]


@pytest.fixture
def set_bytes(csp_set) -> bytes:
    return json.dumps({"data": csp_set()}).encode()


def as_tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def as_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "pack",
    [
        lambda folder, data: written(folder / "set.json", data),
        lambda folder, data: written(folder / "set.json.gz", gzip.compress(data)),
        lambda folder, data: written(folder / "download", gzip.compress(data)),
        lambda folder, data: as_tar(folder / "sets.tar.gz", {"a/set.json": data}),
        lambda folder, data: as_tar(folder / "sets.tar", {"a/set.json": data}, "w"),
        lambda folder, data: as_zip(folder / "sets.zip", {"a/set.json": data}),
        lambda folder, data: as_zip(folder / "sets.zip", {"a/set.json.gz": gzip.compress(data)}),
    ],
    ids=["plain", "gzip", "gzip without its ending", "tar.gz", "tar", "zip", "gzip in a zip"],
)
def test_a_document_is_read_however_it_is_packed(tmp_path, set_bytes, pack):
    assert read(pack(tmp_path, set_bytes)) == ({"A", "B", "C"}, [])


def test_a_folder_is_read_with_everything_below_it_and_tells_what_it_leaves_out(
    tmp_path, set_bytes, starter
):
    folder = tmp_path / "folder"
    (folder / "deep" / "er").mkdir(parents=True)
    assert reasons(read(folder)[1]) == ["nothing to read"]
    written(folder / "deep" / "er" / "set.json", set_bytes)
    (folder / "own.JSONL").write_text(json.dumps(starter("Z").to_dict()), encoding="utf-8")
    (folder / "table.csv").write_text(template(), encoding="utf-8")
    (folder / ".hidden.json").write_text("{", encoding="utf-8")
    (folder / "sheet.xlsx").write_bytes(b"PK")
    (folder / "gone.csv").symlink_to("nowhere")
    (folder / "deep" / "loop").symlink_to("..")
    ids, problems = read(folder)
    assert ids == {"A", "B", "C", "Z", "D1-M", "D1-M-1", "D1-M-2"}
    assert sorted(reasons(problems)) == [
        "file of another kind", "linked folder not read", "not a plain file",
    ]  # fmt: skip


def test_the_format_is_found_out_from_the_content(tmp_path, set_bytes, starter):
    line = json.dumps(starter("Z").to_dict()).encode()
    for data, expected in (
        (set_bytes, {"A", "B", "C"}),
        (b"\xef\xbb\xbf" + set_bytes, {"A", "B", "C"}),
        (b"[" + set_bytes + b"]", {"A", "B", "C"}),
        (line + b"\n" + line, {"Z"}),
        (line, {"Z"}),
        (b"[" + line + b"]", {"Z"}),
        (template().encode(), {"D1-M", "D1-M-1", "D1-M-2"}),
    ):
        path = tmp_path / "unnamed"
        path.write_bytes(data)
        assert read(path)[0] == expected


@pytest.mark.parametrize("format_", ["auto", "csp", "case", "jsonl", "csv"])
@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"a": 1}', b"[1, 2]", b"7", b"{", b"[" * 200_000, b"\xff\xfe{"]
)
def test_what_is_not_of_the_format_gives_problems_and_never_an_exception(tmp_path, format_, data):
    ids, problems = read(written(tmp_path / "x.json", data), format_=format_)
    assert ids == set()
    assert any(problem.skipped for problem in problems) or format_ != "auto"


def test_what_cannot_be_opened_never_stops_the_others(tmp_path, set_bytes):
    good = written(tmp_path / "set.json", set_bytes)
    torn = tmp_path / "torn.json.gz"
    torn.write_bytes(gzip.compress(set_bytes)[:-20])
    bad_zip = tmp_path / "bad.zip"
    bad_zip.write_bytes(b"PK\x03\x04" + b"x" * 100)
    bad_tar = tmp_path / "bad.tar.gz"
    bad_tar.write_bytes(
        as_tar(tmp_path / "sets.tar.gz", {"a/set.json": set_bytes * 50}).read_bytes()[:900]
    )
    ids, problems = read(tmp_path / "missing.json", torn, bad_zip, bad_tar, good)
    assert ids == {"A", "B", "C"}
    assert len([problem for problem in problems if problem.skipped]) >= 4
    assert {str(torn), str(bad_zip)} <= {problem.source for problem in problems}


def test_names_in_an_archive_lead_nowhere(tmp_path, set_bytes):
    outside = tmp_path / "outside.json"
    path = tmp_path / "in" / "evil.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("../outside.json")
        info.size = len(set_bytes)
        archive.addfile(info, io.BytesIO(set_bytes))
        link = tarfile.TarInfo("link.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    ids, problems = read(path)
    assert ids == {"A", "B", "C"}  # read from the archive, and nowhere else
    assert reasons(problems) == ["not a plain file"]
    assert not outside.exists()


def test_an_archive_in_an_archive_or_one_that_unpacks_to_too_much_is_given_up(tmp_path):
    bomb, many = b"0" * 3_000_000, {f"{number}.json": b"0" * 30_000 for number in range(100)}
    for path in (
        as_zip(tmp_path / "bomb.zip", {"a.json": bomb}),
        as_tar(tmp_path / "bomb.tar.gz", many),
        written(tmp_path / "set.json.gz", gzip.compress(bomb)),
    ):
        ids, problems = read(path, largest=1_000_000)
        assert ids == set()
        assert "unpacks to more than 1,000,000 bytes" in str(problems[-1])
    inner = as_zip(tmp_path / "inner.zip", {"a.json": b"{}"}).read_bytes()
    outer = as_zip(tmp_path / "outer.zip", {"b.json": inner})
    assert reasons(read(outer)[1]) == ["archive in an archive"]


def test_a_damaged_file_in_an_archive_never_stops_the_others(tmp_path, set_bytes):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bad.json", set_bytes.replace(b"beads", b"rings"))
        archive.writestr("good.json", set_bytes)
    path.write_bytes(path.read_bytes().replace(b"rings", b"kings", 1))
    ids, problems = read(path)
    assert ids == {"A", "B", "C"}
    assert [(each.reason, each.source.rpartition(":")[2]) for each in problems] == [
        ("damaged archive", "bad.json")
    ]


def test_what_an_archive_has_besides_data_is_told(tmp_path, set_bytes):
    sheet = as_zip(tmp_path / "x.xlsx", {"[Content_Types].xml": b"<a/>", "xl/s.xml": b"<a/>"})
    assert "save it as CSV" in str(read(sheet)[1][0])
    assert reasons(read(as_zip(tmp_path / "x.zip", {}))[1]) == ["nothing to read"]
    members = {"a.json": set_bytes, "notes.pdf": b"x", "__MACOSX/._a.json": b"x"}
    for path in (as_zip(tmp_path / "x.zip", members), as_tar(tmp_path / "x.tar", members, "w")):
        assert reasons(read(path)[1]) == ["file of another kind"]


def test_a_folder_is_never_left_by_a_link(tmp_path, set_bytes):
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    (folder / "below").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret.json").write_bytes(set_bytes)
    (folder / "absolute.json").symlink_to(outside / "secret.json")
    (folder / "below" / "relative.json").symlink_to("../../outside/secret.json")
    (folder / "chain.json").symlink_to("absolute.json")
    (folder / "whole").symlink_to(outside)
    (folder / "circle.json").symlink_to("circle.json")
    ids, problems = read(folder)
    assert ids == set()
    assert Counter(reasons(problems)) == {
        "link that leaves the folder": 4, "not a plain file": 1
    }  # fmt: skip
    assert all(each.skipped for each in problems)


def test_a_link_within_a_folder_is_read_and_so_is_one_that_is_named(tmp_path, set_bytes):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".store").write_bytes(set_bytes)
    (folder / "set.json").symlink_to(".store")
    (tmp_path / "named.json").symlink_to(folder / "set.json")
    (tmp_path / "same").symlink_to(folder)
    for path in (folder, tmp_path / "same", tmp_path / "named.json"):
        assert read(path) == ({"A", "B", "C"}, [])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_what_may_not_be_read_is_told(tmp_path, set_bytes):
    (tmp_path / "closed").mkdir(mode=0)
    written(tmp_path / "set.json", set_bytes).chmod(0)
    assert reasons(read(tmp_path)[1]) == ["cannot be read"] * 2


def test_an_encrypted_member_is_told(tmp_path, set_bytes):
    path = as_zip(tmp_path / "x.zip", {"a.json": set_bytes, "b.json": set_bytes})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the encryption flag in the first directory entry
    data[6] |= 1
    path.write_bytes(data)
    ids, problems = read(path)
    assert ids == {"A", "B", "C"}
    assert reasons(problems) == ["cannot be unpacked"]


def test_json_that_breaks_off_is_told_with_the_name_of_its_file_once(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text('{"data": {"id": ', encoding="utf-8")
    (problem,) = read(path)[1]
    assert str(problem).startswith(f"{path}: cannot be read (it is not JSON that can be read: ")
    assert str(problem).count("broken.json") == 1
