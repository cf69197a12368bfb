"""Archives and files that are made to hurt: refused by name, before they cost anything."""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
import zipfile
from itertools import chain
from pathlib import Path

import pytest
from support.records import read_and_told

from standards_mcp_catalog.importing.files import open_sources
from standards_mcp_catalog.importing.readers import read_documents

TABLE = b"code,text\nA1,Count beads\n"
FILES = "standards_mcp_catalog.importing.files"


def read(*paths: Path) -> tuple[list[str | None], list[str]]:
    documents = read_documents(open_sources(paths))
    records, problems = read_and_told(chain.from_iterable(documents))
    codes = [record.statement_notation for record in records]
    return codes, [str(problem) for problem in problems if problem.skipped]


def zip_of(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytearray:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return bytearray(file.getvalue())


def test_more_files_than_the_bound_are_refused_in_archives_and_folders(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{FILES}.MOST_FILES", 20)
    members = {f"{number}.csv": TABLE for number in range(21)}
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, data in members.items():
        (folder / name).write_bytes(data)
    (tmp_path / "x.zip").write_bytes(zip_of(members))
    (tmp_path / "x.tar").write_bytes(tar_of(members))
    for path in (tmp_path / "x.zip", tmp_path / "x.tar", folder):
        assert "it has more than 20 files" in read(path)[1][-1]
    (folder / "0.csv").unlink()
    assert read(folder) == (["A1"] * 20, [])


def test_what_unpacks_to_many_times_its_size_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{FILES}._ALWAYS_ALLOWED", 100_000)
    bomb = b"code,text\n" + b"x" * 5_000_000
    (tmp_path / "x.zip").write_bytes(zip_of({"a.csv": bomb}))
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(bomb))
    for name in ("x.zip", "x.csv.gz"):
        assert "unpack it, and import its parts" in read(tmp_path / name)[1][-1]
    sound = "code,text\n" + "".join(f"A{random.random()},x\n" for _ in range(20_000))  # noqa: S311
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(sound.encode()))
    assert len(read(tmp_path / "x.csv.gz")[0]) == 20_000


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_unpacks_all_at_once_is_refused(tmp_path, method):
    (tmp_path / "x.zip").write_bytes(zip_of({"a.csv": TABLE}, method))
    assert "compressed in an unusual way; unpack it first" in read(tmp_path / "x.zip")[1][0]


def test_links_and_devices_in_archives_are_told(tmp_path):
    info = zipfile.ZipInfo("link.csv")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        pipe = tarfile.TarInfo("pipe.csv")
        pipe.type = tarfile.FIFOTYPE
        tar.addfile(pipe)
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            link = tarfile.TarInfo("link.csv")
            link.type, link.linkname = kind, "/etc/passwd"
            tar.addfile(link)
    not_followed = "link.csv: not a plain file"
    assert read(tmp_path / "x.zip") == ([], [f"{tmp_path / 'x.zip'}:{not_followed}"])
    assert read(tmp_path / "x.tar")[1] == [
        f"{tmp_path / 'x.tar'}:pipe.csv: not a plain file",
        *[f"{tmp_path / 'x.tar'}:{not_followed}"] * 2,
    ]


def tar_of(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_a_damaged_or_truncated_archive_is_told_and_never_an_exception(tmp_path, make):
    sound = bytes(make({f"{number}é.csv": TABLE * 5 for number in range(4)}))
    chance = random.Random(7)  # noqa: S311
    path = tmp_path / "x"
    for _ in range(300):
        data = bytearray(sound[: chance.choice([len(sound), chance.randrange(1, len(sound))])])
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        records, problems = read(path)
        assert records or problems


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_or_device_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", Path("/dev/zero")):
        assert "it is not a plain file; save its content to a file" in read(path)[1][0]
