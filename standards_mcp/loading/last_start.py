"""Remembers how the last start of each plugin went, so that a list need not import them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import TypeAdapter

from standards_mcp._utils.files import keep_text, of_environment

from .records import PluginInfo, PluginRecord, Status

Step: TypeAlias = Literal["load", "start"]
Outcome: TypeAlias = dict[str, str]


_OUTCOMES = TypeAdapter(dict[str, dict[str, str]])
_TRIED = (Status.FAILED, Status.REGISTERED, Status.STARTED)


def save(records: Iterable[PluginRecord], folder: Path, step: Step) -> None:
    """Write the outcome of each plugin that was tried. It is no error if the folder is read-only.

    Args:
        folder: The host's state folder.
        step: The last step. Loading does not show how a plugin starts, so a failure to start is
            kept until the next start.
    """
    known = _read(folder)
    outcomes = {
        record.name: _outcome(record, known.get(record.name, {}), step)
        for record in records
        if record.status in _TRIED
    }
    keep_text(_file(folder), json.dumps({**known, **outcomes}, indent=1, sort_keys=True))


def restore(records: Iterable[PluginRecord], folder: Path) -> None:
    """Give plugins that were only discovered the status of their last start.

    The outcome of another version or distribution is ignored.
    """
    known = _read(folder)
    for record in records:
        outcome = known.get(record.name, {})
        if record.status is not Status.DISCOVERED or not _is_of(record.info, outcome):
            continue
        # Another version of the host may have written other words.
        with suppress(KeyError, ValueError):
            reason = f"{outcome['reason']} (at the last start, {outcome['time']})"
            record.status = Status(outcome["status"])
            record.reason = reason if outcome["reason"] else ""


def _outcome(record: PluginRecord, earlier: Outcome, step: Step) -> Outcome:
    if _is_of(record.info, earlier):
        started_before = earlier.get("step") == "start"
        # Most commands load plugins and start none; they must not overwrite the last start.
        if record.status is Status.REGISTERED and started_before:
            return earlier
        if record.status is Status.FAILED and not started_before and step == "start":
            # It failed when it was loaded for this start, and was not started.
            step = "load" if earlier.get("reason") == record.reason else step
    return {
        **_identity(record.info),
        "status": str(record.status),
        "reason": record.reason,
        "step": step,
        "time": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _read(folder: Path) -> dict[str, Outcome]:
    """Return the outcomes by plugin name; none if the file is missing or damaged."""
    try:
        return _OUTCOMES.validate_json(_file(folder).read_bytes())
    except (OSError, ValueError):
        return {}


def _is_of(info: PluginInfo, outcome: Outcome) -> bool:
    return _identity(info).items() <= outcome.items()


def _identity(info: PluginInfo) -> dict[str, str]:
    return {"distribution": info.distribution, "version": info.version}


def _file(folder: Path) -> Path:
    return of_environment(folder, "last-start", ".json")
