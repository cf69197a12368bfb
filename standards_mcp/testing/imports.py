"""Measure the import of a plugin, and its side effects, in a fresh interpreter.

This module is also the program for that interpreter:
python -P -m standards_mcp.testing.imports MODULE REPORT
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from standards_mcp.plugin import Plugin
from standards_mcp.remote.processes import basic_environment

from . import Allowed

_TIMEOUT: Final = 60

# The import of each takes a tenth of a second or more, or opens connections, and can wait.
_HEAVY: Final = frozenset({
    *("aiohttp", "anthropic", "boto3", "botocore", "faiss", "fitz", "google", "httpx", "keras"),
    *("langchain", "litellm", "lxml", "matplotlib", "nltk", "numpy", "onnxruntime", "openai"),
    *("pandas", "PIL", "pinecone", "polars", "psycopg", "pyarrow", "requests", "scipy"),
    *("sentence_transformers", "sklearn", "spacy", "sqlalchemy", "tantivy", "tensorflow"),
    *("tokenizers", "torch", "transformers", "urllib3"),
})  # fmt: skip


def import_faults(plugin_type: type[Plugin[Any]], allow: Allowed) -> Iterator[str]:
    """Yield the faults of a plugin's import, if it can be imported by name."""
    module = plugin_type.__module__
    if not _is_importable(module):
        return
    report, output = _import_apart(module)
    if report is None:
        yield f"importing {module} in a fresh interpreter fails: {output}"
        return
    if report["seconds"] > allow.import_seconds:
        # The first import compiled the bytecode; a second one reads it from the cache.
        report = _import_apart(module)[0] or report
    yield from _report_faults(report, output, allow)


def _report_faults(report: Mapping[str, Any], output: str, allow: Allowed) -> Iterator[str]:
    if heavy := sorted(_HEAVY.intersection(report["packages"]).difference(allow.imports)):
        yield f"its import imports {', '.join(heavy)}; import it in the function that needs it"
    if report["seconds"] > allow.import_seconds:
        yield (
            f"its import takes {report['seconds']:.2f} s of CPU time, more than "
            f"{allow.import_seconds:g} s; import and compute later"
        )
    if output:
        yield f"its import writes to stdout ({output[:60]!r}); log it or write to sys.stderr"
    if names := ", ".join(report["variables"]):
        yield (
            f"its import changes the environment variables {names}; read the values from the "
            "plugin's settings instead"
        )
    if report["moved"]:
        yield "its import changes the working directory; use absolute paths"
    if report["threads"] > 0:
        yield "its import starts a thread; start it in its lifespan"


def _is_importable(module: str) -> bool:
    """Return True if a module is neither a test nor a program, and can be found."""
    if module.rpartition(".")[2].startswith(("__main__", "conftest", "test_")):
        return False
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _import_apart(module: str) -> tuple[dict[str, Any] | None, str]:
    """Return the report of an import and its stdout; or None and the last line of the error."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        path = os.pathsep.join(str(Path(item).absolute()) for item in sys.path)
        try:
            result = subprocess.run(  # noqa: S603  - our own program
                [sys.executable, "-P", "-m", __name__, module, report],
                # Not our environment: an earlier import of the plugin may have changed it.
                env={**basic_environment(), "PYTHONPATH": path},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, f"it takes more than {_TIMEOUT} seconds"
        if not report.exists():
            lines = result.stderr.decode(errors="replace").strip().splitlines()
            return None, lines[-1] if lines else "it ends the process"
        data: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return data, result.stdout.decode(errors="replace").strip()


def main(module: str, report: str) -> None:
    """Import a module as the host would, and write the effects as JSON."""
    # The host's own imports must not count as imports of the plugin.
    importlib.import_module("standards_mcp.loading.manager")
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
