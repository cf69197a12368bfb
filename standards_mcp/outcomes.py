"""Remembers how plugins fared at the last start, so that listing them need not import them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .discovery import PluginRecord, Status

_TRIED = (Status.FAILED, Status.REGISTERED, Status.STARTED)


def remember(records: Iterable[PluginRecord], folder: Path) -> None:
    """Write the status of every plugin that was tried. A folder that cannot be written is no error.

    Args:
        folder: The host's state folder.
    """
    outcomes = {record.name: _outcome(record) for record in records if record.status in _TRIED}
    text = json.dumps(outcomes, indent=1, sort_keys=True)
    file = _file(folder)
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch = file.with_suffix(f".{os.getpid()}")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(file)


def recall(records: Iterable[PluginRecord], folder: Path) -> None:
    """Give plugins that were only discovered the status of their last start.

    What is remembered of another version or distribution does not count.
    """
    try:
        file = _file(folder)
        when = datetime.fromtimestamp(file.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
        outcomes: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for record in records:
        if record.status is not Status.DISCOVERED:
            continue
        # Anything may stand in the file: a newer version's format, or what an editor left.
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            outcome = outcomes[record.name]
            if _identity(record).items() <= outcome.items():
                reason = outcome["reason"]
                record.status = Status(outcome["status"])
                record.reason = f"{reason} (at the last start, {when})" if reason else ""


def _outcome(record: PluginRecord) -> dict[str, str]:
    return {**_identity(record), "status": str(record.status), "reason": record.reason}


def _identity(record: PluginRecord) -> dict[str, str]:
    return {"distribution": record.distribution, "version": record.version}


def _file(folder: Path) -> Path:
    """Return the file for this Python environment; several may share one state folder."""
    environment = hashlib.sha256(sys.prefix.encode()).hexdigest()[:12]
    return folder / f"last-start-{environment}.json"
