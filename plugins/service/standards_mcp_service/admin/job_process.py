"""Run one import in a process of its own: ``python -m standards_mcp_service.admin.job_process``.

The first line of stdin is the order. The process ends when stdin ends, as it does with the service.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from standards_mcp.errors import StandardsMcpError
from standards_mcp.files import write_private

if TYPE_CHECKING:
    from .contributed import Progress  # its imports cost time and memory

PROGRESS: Final = "progress.json"
RESULT: Final = "result.json"
_Function: TypeAlias = "Callable[[Mapping[str, Any], Progress], Iterable[Any]]"
_NICENESS: Final = 10
_WRITE_SECONDS: Final = 0.3


def main() -> None:
    """Run the import of the order, and write its result to a file."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        order: dict[str, Any] = json.loads(stdin.readline())
    threading.Thread(target=_end_with_service, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)  # calls come first
    folder = Path(order["folder"])
    try:
        module, _, name = order["function"].partition(":")
        function: _Function = getattr(import_module(module), name)
        result = [*function(order["arguments"], _Progress(folder))]
    except (StandardsMcpError, click.ClickException) as exc:
        text = exc.format_message() if isinstance(exc, click.ClickException) else str(exc)
        result = _error(text)
    except Exception as exc:  # noqa: BLE001  - the page shows it
        traceback.print_exc()
        result = _error(f"The import failed: {type(exc).__name__}: {exc}")
    write_whole(folder / RESULT, result)


def _error(message: str) -> list[Any]:
    """Return an `ImportResult` with an error."""
    return [message, True, {}, {}]


def _end_with_service() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


class _Progress:
    """Writes the progress to a file, a few times a second."""

    def __init__(self, folder: Path) -> None:
        self._file, self._written_at, self._phase = folder / PROGRESS, 0.0, ""

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase == self._phase and now - self._written_at < _WRITE_SECONDS:
            return
        self._written_at, self._phase = now, phase
        write_whole(self._file, {"phase": phase, "done": done, "total": total})


def write_whole(file: Path, data: Mapping[str, Any] | list[Any]) -> None:
    """Replace a private file of JSON, so that readers see the old data or the new."""
    new = file.with_suffix(".new")
    write_private(new, json.dumps(data))
    new.replace(file)


if __name__ == "__main__":
    sys.stdout = sys.stderr
    main()
