"""Archives that nobody should trust."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from standards_mcp_backup.archive import reading_archive, writing_archive
from standards_mcp_backup.errors import BackupError

Run = Callable[..., Result]
BOOK = "plugins/shelf/emma.txt"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Write an archive with two members."""
    with writing_archive(tmp_path / "good.zip") as (writer, work):
        (work / "emma.txt").write_text("Emma " * 100, encoding="utf-8")
        writer.add("plugins/shelf", work)
    return tmp_path / "good.zip"


def rewritten(archive: Path, change: Callable[[dict[str, Any], zipfile.ZipFile], None]) -> Path:
    """Write the archive anew, with its manifest changed and members added."""
    bad = archive.with_name("bad.zip")
    with zipfile.ZipFile(archive) as good, zipfile.ZipFile(bad, "w") as new:
        manifest = json.loads(good.read("manifest.json"))
        for name in good.namelist():
            if name != "manifest.json":
                new.writestr(name, good.read(name), zipfile.ZIP_DEFLATED)
        change(manifest, new)
        new.writestr("manifest.json", json.dumps(manifest))
    return bad


def restored(path: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with reading_archive(path) as reader:
        reader.extract(reader.manifest.parts, folder)


def member(manifest: dict[str, Any], archive: zipfile.ZipFile, name: str | zipfile.ZipInfo) -> None:
    """Add a member with a right digest."""
    archive.writestr(name, b"x")
    shown = name if isinstance(name, str) else name.filename
    manifest["members"][shown] = {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}


@pytest.mark.parametrize(
    "name",
    [
        *("../evil", "plugins/shelf/../../../evil", "/evil", "plugins/shelf/..", "plugins//evil"),
        *("plugins/shelf/a\\..\\evil", "plugins/shelf/./a", "plugins/../evil", "evil", "plugins/x"),
        *("plugins/shelf/a\nb", "plugins/shelf/"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(archive: Path, tmp_path: Path, name: str):
    bad = rewritten(archive, lambda manifest, new: member(manifest, new, name))
    with pytest.raises(BackupError, match="no backup has"):
        restored(bad, tmp_path / "out")
    assert not [*tmp_path.rglob("evil")]


def test_links_are_refused(archive: Path, tmp_path: Path):
    link = zipfile.ZipInfo("plugins/shelf/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    bad = rewritten(archive, lambda manifest, new: member(manifest, new, link))
    with pytest.raises(BackupError, match="no backup has"):
        restored(bad, tmp_path / "out")


def of_another_version(manifest: dict[str, Any], _: zipfile.ZipFile) -> None:
    manifest["version"] = 2


def with_a_foreign_format(manifest: dict[str, Any], _: zipfile.ZipFile) -> None:
    manifest["format"] = "zip"


def with_unknown_keys(manifest: dict[str, Any], _: zipfile.ZipFile) -> None:
    manifest["run"] = "rm"


def with_another_digest(manifest: dict[str, Any], _: zipfile.ZipFile) -> None:
    manifest["members"][BOOK]["sha256"] = "0" * 64


def with_another_size(manifest: dict[str, Any], _: zipfile.ZipFile) -> None:
    manifest["members"][BOOK]["size"] = 7


def with_a_member_more(_: dict[str, Any], archive: zipfile.ZipFile) -> None:
    archive.writestr("plugins/shelf/more", b"x")


def with_a_member_less(manifest: dict[str, Any], _: zipfile.ZipFile) -> None:
    manifest["members"]["plugins/shelf/more"] = manifest["members"][BOOK]


def with_a_slow_compression(manifest: dict[str, Any], archive: zipfile.ZipFile) -> None:
    archive.writestr("plugins/shelf/more", b"x", zipfile.ZIP_LZMA)
    digest = hashlib.sha256(b"x").hexdigest()
    manifest["members"]["plugins/shelf/more"] = {"size": 1, "sha256": digest}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_another_version, "has the format 2, and this version reads 1"),
        (with_a_foreign_format, "damaged manifest: format"),
        (with_unknown_keys, "damaged manifest: run"),
        (with_another_digest, "is damaged: plugins/shelf/emma.txt has other bytes"),
        (with_another_size, "another size"),
        (with_a_member_more, "other members than its manifest"),
        (with_a_member_less, "other members than its manifest"),
        (with_a_slow_compression, "another size or compression"),
    ],
)
def test_an_archive_that_is_not_as_it_was_written_is_refused(
    archive: Path, tmp_path: Path, change: Callable[..., None], message: str
):
    with pytest.raises(BackupError, match=message):
        restored(rewritten(archive, change), tmp_path / "out")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_is_refused(archive: Path, tmp_path: Path):
    bad = rewritten(archive, lambda manifest, new: member(manifest, new, BOOK))
    with pytest.raises(BackupError, match="other members"):
        restored(bad, tmp_path / "out")


@pytest.mark.parametrize("name", [f"{BOOK}/inside", f"plugins/shelf/{'x' * 300}"])
def test_names_that_no_folder_can_hold_are_refused(archive: Path, tmp_path: Path, name: str):
    bad = rewritten(archive, lambda manifest, new: member(manifest, new, name))
    with pytest.raises(BackupError, match=r"bad\.zip cannot be read or unpacked"):
        restored(bad, tmp_path / "out")


def test_a_bomb_writes_no_more_than_the_archive_says(archive: Path, tmp_path: Path):
    """Fifty million zeros, of which the archive and its manifest say that they are ten."""
    name = "plugins/shelf/bomb"

    def add(manifest: dict[str, Any], new: zipfile.ZipFile) -> None:
        new.writestr(name, bytes(50_000_000), zipfile.ZIP_DEFLATED)
        digest = hashlib.sha256(bytes(10)).hexdigest()
        manifest["members"][name] = {"size": 10, "sha256": digest}

    bad = rewritten(archive, add)
    data = bad.read_bytes()
    size = (50_000_000).to_bytes(4, "little")
    assert data.count(size) == 2
    bad.write_bytes(data.replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(BackupError):
        restored(bad, tmp_path / "out")
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("bomb")) <= 10


def test_more_than_the_disk_has_is_refused(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Usage:
        free = 600

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage)
    with pytest.raises(BackupError, match=r"needs 1,000 bytes .* 600; make room"):
        restored(archive, tmp_path / "out")
    assert not [*(tmp_path / "out").iterdir()]


def test_any_changed_byte_is_refused_or_has_no_effect(archive: Path, tmp_path: Path):
    chance = random.Random(7)  # noqa: S311
    good = archive.read_bytes()
    restored(archive, tmp_path / "good")
    expected = (tmp_path / "good" / BOOK).read_bytes()
    refused = 0
    for _ in range(400):
        data = bytearray(good)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        (tmp_path / "bad.zip").write_bytes(bytes(data))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        try:
            restored(tmp_path / "bad.zip", tmp_path / "out")
        except BackupError:
            refused += 1
        else:
            assert (tmp_path / "out" / BOOK).read_bytes() == expected
    assert refused > 200


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06" + bytes(18), b"no archive" * 100])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, data: bytes):
    (tmp_path / "bad.zip").write_bytes(data)
    with pytest.raises(BackupError, match=r"bad\.zip"):
        restored(tmp_path / "bad.zip", tmp_path / "out")


def test_an_archive_that_was_cut_off_is_refused(archive: Path, tmp_path: Path):
    data = archive.read_bytes()
    for length in range(0, len(data), 37):
        (tmp_path / "bad.zip").write_bytes(data[:length])
        with pytest.raises(BackupError):
            restored(tmp_path / "bad.zip", tmp_path / "out")


@pytest.mark.usefixtures("shelf")
def test_a_refused_archive_changes_nothing(run: Run, tmp_path: Path):
    assert run("backup", "backup.zip").exit_code == 0
    bad = rewritten(Path("backup.zip").absolute(), with_another_digest)
    Path("standards-mcp.toml").rename("kept.toml")
    before = sorted(tmp_path.rglob("*"))
    result = run("restore", bad, "--yes")
    assert result.exit_code == 1
    assert "is damaged" in result.output
    assert sorted(tmp_path.rglob("*")) == before
