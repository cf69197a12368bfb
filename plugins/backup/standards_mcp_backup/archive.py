"""The archive of a backup: a ZIP file with a manifest, which is its last member.

A member's name is a part, such as ``plugins/catalog``, and a path inside of the part.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Generator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from standards_mcp.commands import printable, upgrade_command
from standards_mcp.files import full_disk, open_private, private_folder

from .errors import BackupError

FORMAT_VERSION: Final = 1
_MANIFEST: Final = "manifest.json"
_MAX_MANIFEST: Final = 64 * 2**20
_BLOCK: Final = 2**20
_UNSAFE: Final = re.compile(r"[\\\x00-\x1f]" if os.name == "posix" else r"[\\\x00-\x1f:]")
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_READ_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,  # an encrypted member; NotImplementedError is a subclass
    ValueError,
)


class Member(BaseModel):
    """A file in the archive, with its size in bytes and its SHA-256 in hexadecimal digits."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Manifest(BaseModel):
    """The contents of an archive.

    Attributes:
        version: The version of the format.
        created: The time at which the backup began, in UTC.
        versions: The versions of the host and of the plugins, by distribution.
        secrets: The keys of the configuration that were left out, because they are secret.
        members: The files by their names in the archive.
    """

    model_config = ConfigDict(extra="forbid")
    format: Literal["standards-mcp-backup"] = "standards-mcp-backup"
    version: int = FORMAT_VERSION
    created: datetime = Field(default_factory=lambda: datetime.now(UTC))
    versions: dict[str, str] = {}
    secrets: list[str] = []
    members: dict[str, Member] = {}

    @property
    def parts(self) -> list[str]:
        """The parts with data, sorted."""
        return sorted({part_of(name) for name in self.members})


def part_of(member: str) -> str:
    """Return the part of a member: the first folder, and below ``plugins`` the second one, too."""
    first, second, *_ = (*PurePosixPath(member).parts, "")
    return f"{first}/{second}" if first == "plugins" else first


class ArchiveWriter:
    """Adds files to a new archive.

    Attributes:
        manifest: The manifest, which is written at the end.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.manifest = Manifest()

    def add(self, part: str, folder: Path) -> None:
        """Add all files below a folder."""
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = f"{part}/{path.relative_to(folder).as_posix()}"
            digest, size = hashlib.sha256(), 0
            with path.open("rb") as file, self._archive.open(name, "w", force_zip64=True) as member:
                while block := file.read(_BLOCK):
                    digest.update(block)
                    size += len(block)
                    member.write(block)
            self.manifest.members[name] = Member(size=size, sha256=digest.hexdigest())


@contextmanager
def writing_archive(target: Path) -> Generator[tuple[ArchiveWriter, Path]]:
    """Write an archive that only its owner can read; it gets its name at the end of the block.

    The caller holds the lock of the commands.

    Yields:
        The writer, and a folder for temporary files, which is on the disk of the archive.

    Raises:
        BackupError: The archive cannot be written. A file that had its name is as it was.
    """
    target = target.absolute()
    work = target.with_name(f".{target.name}.partial")
    try:
        if target.exists() and not target.is_file():
            raise BackupError(f"{target} is not a file; name a new one")
        shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
        work.mkdir(0o700)
        try:
            with open_private(work / "archive") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                    writer = ArchiveWriter(archive)
                    yield writer, private_folder(work / "files")
                    archive.writestr(_MANIFEST, writer.manifest.model_dump_json(indent=1))
                file.flush()
                os.fsync(file.fileno())
            (work / "archive").replace(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        reason = full_disk.MESSAGE if full_disk.is_full(error, target) else error
        raise BackupError(f"the backup {target} cannot be written: {reason}") from error


class ArchiveReader:
    """Reads an archive, and trusts nothing in it.

    Attributes:
        manifest: The manifest, which fits the members of the archive.

    Raises:
        BackupError: The file is no backup, is damaged, or has names that lead out of a folder.
    """

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        infos = {info.filename: info for info in archive.infolist()}
        last = infos.pop(_MANIFEST, None)
        if last is None or last.file_size > _MAX_MANIFEST:
            raise BackupError(f"{path} is not a backup of standards-mcp")
        try:
            self.manifest = Manifest.model_validate_json(archive.read(last))
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise BackupError(f"{path} has a damaged manifest: {reason}") from None
        if self.manifest.version != FORMAT_VERSION:
            raise BackupError(
                f"{path} has the format {self.manifest.version}, and this version reads "
                f"{FORMAT_VERSION}; upgrade with `{upgrade_command()}`"
            )
        members = self.manifest.members
        if len(archive.infolist()) != len(infos) + 1 or infos.keys() != members.keys():
            raise BackupError(f"{path} has other members than its manifest")
        for name, info in infos.items():
            _check_member(path, info, members[name])

    def extract(self, parts: Collection[str], folder: Path) -> None:
        """Write the members of these parts to a folder, each below its name.

        Raises:
            BackupError: A member is damaged, or the disk is too small.
        """
        wanted = {
            name: member for name, member in self.manifest.members.items() if part_of(name) in parts
        }
        needed = sum(member.size for member in wanted.values())
        free = shutil.disk_usage(folder).free
        # A copy may have to be written a second time, to the disk of its data.
        if 2 * needed > free:
            raise BackupError(
                f"{self._path} needs {2 * needed:,} bytes on the disk of {folder}, which has "
                f"{free:,}; make room first"
            )
        for name in wanted:
            target = folder.joinpath(*PurePosixPath(name).parts)
            # Names may be too long, or one may be a folder of another one.
            with _explained(self._path):
                private_folder(target.parent)
                with open_private(target) as file:
                    self._copy(name, file)

    def read(self, name: str) -> bytes:
        """Return the content of a member, after a look at the whole archive.

        Raises:
            BackupError: The archive has no such member, or any member is damaged.
        """
        content = io.BytesIO()
        with Path(os.devnull).open("wb") as nowhere:
            for each in self.manifest.members:
                self._copy(each, content if each == name else nowhere)
        if name not in self.manifest.members:
            raise BackupError(f"{self._path} has no {name}")
        return content.getvalue()

    def _copy(self, name: str, target: IO[bytes]) -> None:
        """Write the content of a member to a file.

        Raises:
            BackupError: The content is not what the manifest says, or cannot be written.
        """
        member, digest = self.manifest.members[name], hashlib.sha256()
        with _explained(self._path), self._archive.open(name) as source:
            while block := source.read(_BLOCK):  # it has the size that was checked, at most
                digest.update(block)
                target.write(block)
        if digest.hexdigest() != member.sha256:
            raise BackupError(f"{self._path} is damaged: {name} has other bytes")


@contextmanager
def reading_archive(path: Path) -> Generator[ArchiveReader]:
    """Open an archive.

    Raises:
        BackupError: As `ArchiveReader`, or the file cannot be read.
    """
    with ExitStack() as stack:
        with _explained(path):
            archive = stack.enter_context(zipfile.ZipFile(path))
            reader = ArchiveReader(archive, path)
        yield reader


@contextmanager
def _explained(path: Path) -> Generator[None]:
    try:
        yield
    except _READ_ERRORS as error:
        full = full_disk.MESSAGE if full_disk.is_full(error) else ""
        raise BackupError(f"{path} cannot be read or unpacked: {full or error}") from error


def _check_member(path: Path, info: zipfile.ZipInfo, member: Member) -> None:
    """Refuse a member that a backup cannot have.

    Raises:
        BackupError: Its name leads elsewhere, it is no file, or the manifest has another size.
    """
    name, kind = info.filename, stat.S_IFMT(info.external_attr >> 16)
    parts = name.split("/")
    is_unsafe = (
        _UNSAFE.search(name) is not None
        or not {"", ".", ".."}.isdisjoint(parts)
        or not part_of(name).count("/") < len(parts) - 1
    )
    if is_unsafe or kind not in (0, stat.S_IFREG):
        raise BackupError(f"{path} has a member that no backup has: {printable(name)}")
    if info.file_size != member.size or info.compress_type not in _METHODS:
        raise BackupError(f"{path} is damaged: {printable(name)} has another size or compression")
