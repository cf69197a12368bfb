"""Program that imports a module as the host would, and reports the effects.

usage: python -P -m standards_mcp.testing.probe MODULE REPORT
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from pathlib import Path

# The host's own imports must not count as imports of the plugin.
importlib.import_module("standards_mcp.loading.manager")


def main(module: str, report: str) -> None:
    """Write the report as JSON."""
    modules, environment, folder = set(sys.modules), dict(os.environ), Path.cwd()
    threads = threading.active_count()
    started = time.process_time()
    importlib.import_module(module)
    seconds = time.process_time() - started
    data = {
        "seconds": seconds,
        "packages": sorted({name.partition(".")[0] for name in sys.modules.keys() - modules}),
        "variables": sorted({name for name, _ in environment.items() ^ dict(os.environ).items()}),
        "moved": Path.cwd() != folder,
        "threads": threading.active_count() - threads,
    }
    Path(report).write_text(json.dumps(data), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
