"""``standards-mcp backup`` and ``standards-mcp restore``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, Protocol

import click
import filelock

from standards_mcp.commands import (
    Report,
    ask,
    did_you_mean,
    divert_stdout,
    examples,
    printable,
    reports,
)
from standards_mcp.errors import StandardsMcpError
from standards_mcp.files import FILE_MODE, private_folder, replace_privately
from standards_mcp.transports import Host

from . import Backup
from .archive import ArchiveReader, reading_archive, writing_archive
from .configuration import secret_variables, without_secrets
from .errors import BackupError
from .journal import Journal, end_journal, restore_command, unfinished
from .parts import APPROVALS, CONFIGURATION, backups_of, names_of, part_name, save, short_name

_FILE_NAME: Final = "standards-mcp.toml"
_BEFORE: Final = "before-restore-"
_without = click.option(
    "--without",
    multiple=True,
    metavar="NAME",
    help="Leave out the data of this plugin, the configuration or the approvals.",
)


class _Sources(Protocol):
    @property
    def paths(self) -> tuple[Path, ...]: ...


class _Invocation(Protocol):
    @property
    def sources(self) -> _Sources: ...

    @property
    def loaded_host(self) -> Host: ...


@click.command(epilog=examples("backup /srv/backups/standards.zip", "backup today.zip --json"))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_without
@click.pass_obj
@reports
def backup(invocation: _Invocation, file: Path, without: tuple[str, ...]) -> Report:
    """Write the data of all plugins, and the configuration without its secrets, to FILE.

    Servers may run meanwhile. FILE is a ZIP archive that only you can read. An existing file is
    replaced when the new one is complete.
    """
    with divert_stdout():
        host = invocation.loaded_host
        _check_names(without, (CONFIGURATION, APPROVALS, *host.manager.records))
        found = backups_of(host, (name for name in names_of(host) if name not in without))
        backups = {name: item for name, item in found.items() if item}
        with _locked(host.state_dir), writing_archive(file) as (writer, work):
            writer.manifest.versions = _versions(host, backups)
            if host.loaded.file and CONFIGURATION not in without:
                text, keys = without_secrets(host.loaded.file.read_text("utf-8-sig"), host)
                folder = private_folder(work / CONFIGURATION)
                (folder / _FILE_NAME).write_text(text, encoding="utf-8")
                writer.add(CONFIGURATION, folder)
                writer.manifest.secrets = [*keys, *secret_variables(host)]
            save(backups, writer, work)
    saved = [short_name(part) for part in writer.manifest.parts]
    empty = sorted(found.keys() - saved)
    size = file.stat().st_size
    data = {
        "file": str(file),
        "bytes": size,
        "saved": saved,
        "without_data": empty,
        "secrets": writer.manifest.secrets,
    }
    lines = [f"Wrote {file} ({size:,} bytes): {', '.join(saved) or 'no data'}"]
    lines += [f"No data on this machine: {', '.join(empty)}"] if empty else []
    secrets = ", ".join(writer.manifest.secrets)
    notes = [f"Not in the archive, because they are secret: {secrets}"] if secrets else []
    notes += unfinished(host.state_dir)
    return Report(data, lambda: "\n".join(lines), notes=notes)


@click.command(epilog=examples("restore standards.zip --dry-run", "restore standards.zip"))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_without
@click.option("--dry-run", is_flag=True, help="Check everything, and change nothing.")
@click.option("--yes", is_flag=True, help="Replace the present data without a question.")
@click.pass_obj
@reports
def restore(
    invocation: _Invocation, file: Path, without: tuple[str, ...], *, dry_run: bool, yes: bool
) -> Report:
    """Replace the data of plugins by the data in FILE, which `backup` has written.

    Restore only archives from people whom you trust. Everything is checked before anything is
    changed. The configuration is restored only if there is none. If the command is interrupted, run
    it again.
    """
    with divert_stdout(), reading_archive(file) as reader, ExitStack() as undo:
        manifest = reader.manifest
        parts = [short_name(part) for part in manifest.parts]
        _check_names(without, parts)
        names = [name for name in parts if name not in without]
        config = _missing_config(invocation) if CONFIGURATION in names else None
        if config and not dry_run:
            replace_privately(config, reader.read(f"{CONFIGURATION}/{_FILE_NAME}"))
        host = _load(invocation, manifest.secrets if config else ())
        if config and not dry_run:
            undo.callback(config.unlink, missing_ok=True)
        backups = backups_of(host, (name for name in names if name != CONFIGURATION))
        with _locked(host.state_dir), _checked(host, reader, backups) as replacements:
            earlier = sorted(host.state_dir.glob(f"{_BEFORE}*.zip"))
            mixed = unfinished(host.state_dir)
            if not dry_run:
                if not yes:
                    ask(
                        f"{'. '.join([*mixed, ''])}This replaces the data of "
                        f"{', '.join(backups) or 'nothing'} by those of "
                        f"{manifest.created:%Y-%m-%d %H:%M} UTC."
                    )
                undo.pop_all()
                _replace(host, file, backups, replacements)
    done = [*([CONFIGURATION] if config else []), *backups]
    data = {"file": str(file), "restored": [] if dry_run else done, "secrets": manifest.secrets}
    lines = [f"{file} can be restored" if dry_run else f"Restored {', '.join(done) or 'nothing'}"]
    if CONFIGURATION in names and config is None:
        lines.append(f"{host.loaded.file} stays as it is")
    secrets = ", ".join(manifest.secrets)
    notes = [f"Set again, because no secret is in the archive: {secrets}"] if secrets else []
    notes += mixed if dry_run else []
    notes += [
        f"An earlier restore did not end; the data before it are in {path}" for path in earlier
    ]
    return Report(data, lambda: "\n".join(lines), notes=notes)


def _check_names(names: Iterable[str], known: Collection[str]) -> None:
    """Refuse an unknown name of ``--without``.

    Raises:
        UsageError: A name is unknown.
    """
    for name in names:
        if name not in known:
            raise click.UsageError(f"--without {name}: no such part{did_you_mean(name, known)}")


def _missing_config(invocation: _Invocation) -> Path | None:
    """Return the path for a new configuration file, or None if there is one."""
    paths = invocation.sources.paths
    return None if any(path.exists() for path in paths) else paths[-1]


def _load(invocation: _Invocation, secrets: Collection[str]) -> Host:
    """Return the loaded host.

    Args:
        secrets: The secrets that a configuration file lacks that was just written.
    """
    try:
        return invocation.loaded_host
    except StandardsMcpError as error:
        if not secrets:
            raise
        keys = ", ".join(secrets)
        raise BackupError(f"{error}; set {keys}, and run this command again") from error


@contextmanager
def _checked(
    host: Host, reader: ArchiveReader, backups: Mapping[str, Backup | None]
) -> Generator[list[Callable[[], None]]]:
    """Extract and check all data, and yield the functions that replace the present data.

    Raises:
        BackupError: The archive is damaged, or a plugin keeps no data with this configuration.
        StandardsMcpError: A copy cannot be used, or another process uses the present data.
    """
    work = host.state_dir / "restore.partial"
    shutil.rmtree(work, ignore_errors=True)  # of a process that was killed
    try:
        reader.extract([part_name(name) for name in backups], private_folder(work))
        with ExitStack() as stack:
            replacements = list[Callable[[], None]]()
            for name, backup_ in backups.items():
                if backup_ is None:
                    raise BackupError(
                        f"plugin {name} keeps no data on this machine with this configuration; "
                        f"change it, or leave its data out with `--without {name}`"
                    )
                folder = work / part_name(name)
                replacements.append(stack.enter_context(backup_.restoring(folder)))
            yield replacements
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _replace(
    host: Host,
    file: Path,
    backups: Mapping[str, Backup | None],
    replacements: Iterable[Callable[[], None]],
) -> None:
    """Replace the data; meanwhile, the present data are in an archive in the state folder.

    A journal beside it says which parts are replaced.

    Raises:
        BackupError: The data cannot be replaced; the message names that archive.
    """
    before = host.state_dir / f"{_BEFORE}{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.zip"
    with writing_archive(before) as (writer, work):
        save({name: item for name, item in backups.items() if item}, writer, work)
    journal = Journal(archive=printable(str(file.absolute())), left=list(backups))
    try:
        journal.save(host.state_dir)
        for replace in replacements:
            replace()
            journal.advance(host.state_dir)
    except (StandardsMcpError, OSError) as error:
        raise BackupError(
            f"{error}. Some data may be replaced; `{restore_command(before)}` brings all back"
        ) from error
    before.unlink()
    end_journal(host.state_dir)


@contextmanager
def _locked(state_dir: Path) -> Generator[None]:
    """Let no other backup or restore run.

    Raises:
        BackupError: Another one runs.
    """
    try:
        with filelock.FileLock(private_folder(state_dir) / "backup.lock", 0, FILE_MODE):
            yield
    except filelock.Timeout:
        raise BackupError("another backup or restore is running; try again when it ends") from None


def _versions(host: Host, names: Iterable[str]) -> dict[str, str]:
    """Return the versions of the host and of these plugins, by distribution."""
    records = host.manager.records
    infos = (records[name].info for name in names if name in records)
    return {"standards-mcp": version("standards-mcp")} | {
        info.distribution: info.version for info in infos
    }
