"""``standards-mcp audit``: verify the audit log."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from standards_mcp.commands import Report, ServerCommands, counted, examples, reports

from .audit_chain import Verdict, rotated, verify


@click.group()
def audit() -> None:
    """Check the audit log of calls."""


@audit.command(
    "verify",
    epilog=examples("audit verify", "audit verify audit-2025.jsonl audit.jsonl"),
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
@reports
def verify_command(invocation: ServerCommands, files: tuple[Path, ...]) -> Report:
    """Find the first line of the audit log that was changed, or before which one is missing.

    FILES are by default the file of [server.audit] with its older files. Several FILES are the
    parts of one log, the oldest first. Exit code 1 if the log is broken. The last lines, or a whole
    log, can be cut off or made anew without a trace: keep the digest of the last entry elsewhere.
    """
    chosen = [*files]
    if not chosen:
        path = invocation.settings.server.audit.path
        if path is None:
            raise click.UsageError("[server.audit] path is not set; name a FILE")
        chosen = rotated(path)
    elif len(chosen) == 1:
        chosen = rotated(chosen[0])
    for path in chosen:
        if path.exists() and not path.is_file():  # reading would wait
            raise click.ClickException(f"{path} is no file; name the FILE that keeps its lines")
    try:
        verdict = verify(chosen, has_older=len(chosen) > 1)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    data = {"files": [str(path) for path in chosen], **asdict(verdict)}
    return Report(data, lambda: _text(verdict), 1 if verdict.problem else 0)


def _text(verdict: Verdict) -> str:
    state = f"broken: {verdict.problem}" if verdict.problem else "intact"
    if verdict.begun and not verdict.problem:
        state = "intact, as far as its first lines are here"
    lines = [
        f"The audit log is {state} ({counted(verdict.entries, 'intact entry', 'intact entries')})."
    ]
    if verdict.unchained:
        lines.append(f"Lines of earlier versions, without a chain: {verdict.unchained:,}")
    if verdict.last:
        lines.append(f"Last intact entry: {verdict.last}")
    lines += verdict.begun
    if verdict.open_chains:
        lines.append("Processes without an end: they run, were killed, or their end was cut off:")
        lines += [f"  {chain}" for chain in verdict.open_chains]
    return "\n".join(lines)
