"""Find the parts of a backup: what plugins and the host keep on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from standards_mcp.commands import install_command
from standards_mcp.files import private_folder
from standards_mcp.transports import Host, PluginKind, Status

from . import Backup
from .approvals import ApprovalsBackup
from .archive import ArchiveWriter
from .errors import BackupError

CONFIGURATION: Final = "configuration"
APPROVALS: Final = "approvals"
_PLUGINS: Final = "plugins/"


def part_name(name: str) -> str:
    """Return the name in an archive for the name of a plugin, configuration or approvals."""
    return name if name in (CONFIGURATION, APPROVALS) else f"{_PLUGINS}{name}"


def short_name(part: str) -> str:
    """Return the name of a part for users, see `part_name`."""
    return part.removeprefix(_PLUGINS)


def names_of(host: Host) -> Iterator[str]:
    """Yield the names of the parts that may have data: approvals, and plugins that are enabled."""
    yield APPROVALS
    for name, record in host.manager.records.items():
        # The data of another server are not ours.
        if record.status is not Status.DISABLED and record.info.kind is not PluginKind.SERVER:
            yield name


def backups_of(host: Host, names: Iterable[str]) -> dict[str, Backup | None]:
    """Return the backup of each name, or None for a plugin that keeps nothing on this machine.

    Args:
        host: A host with its plugins loaded.

    Raises:
        BackupError: A plugin is not installed, has failed, or is disabled or isolated.
    """
    return {name: _backup_of(host, name) for name in names}


def save(backups: Mapping[str, Backup], writer: ArchiveWriter, work: Path) -> None:
    """Write the data of these parts to an archive.

    Args:
        backups: The backups by `names_of`.
        work: An empty folder for copies, on a disk with room for the largest part.

    Raises:
        BackupError: Data cannot be read, or the archive cannot be written.
    """
    for name, backup in backups.items():
        folder = private_folder(work / part_name(name))
        backup.save(folder)
        writer.add(part_name(name), folder)
        shutil.rmtree(folder)


def _backup_of(host: Host, name: str) -> Backup | None:
    if name == APPROVALS:
        return ApprovalsBackup(host.state_dir)
    record = host.manager.records.get(name)
    if record is None:
        install = install_command(f"standards-mcp-{name}")
        reason, fix = "is not installed here", f"Install it, for example with `{install}`"
    elif record.status in (Status.FAILED, Status.DISABLED) or record.plugin is None:
        reason, fix = f"is {record.status}: {record.reason}", "Correct it"
    elif record.info.kind is PluginKind.ISOLATED:
        reason = "is isolated, so its data cannot be reached from this process"
        fix = f"Put `--set plugins.{name}.isolate=false` before the command"
    else:
        return next(iter(host.manager.call(record, "register_backup")), None)
    raise BackupError(f"plugin {name} {reason}. {fix}, or leave it out with `--without {name}`")
