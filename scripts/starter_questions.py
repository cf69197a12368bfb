"""Ask the starter set the questions of a file in `scripts/answers/`, to measure its answers."""

import argparse
import asyncio
import csv
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from standards_mcp_catalog import Catalog, open_local

Questions = list[dict[str, str]]
_ANSWERS = Path(__file__).parent / "answers"


def measure(
    about: str | None, name: str, of: Callable[[Catalog, Questions], Awaitable[None]]
) -> None:
    """Read the questions ``NAME.csv`` and pass them on with a catalog of the starter set.

    Args:
        about: The docstring of the script, whose first line is its help.
    """
    argparse.ArgumentParser(description=(about or "").partition("\n")[0]).parse_args()
    with (_ANSWERS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        questions = list(csv.DictReader(file))

    async def ask(folder: Path) -> None:
        await of(open_local(folder, "minilm"), questions)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(ask(Path(folder)))
