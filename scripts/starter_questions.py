"""Ask the starter set the questions of a file in `scripts/answers/`, to measure its answers."""

import argparse
import asyncio
import csv
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from standards_mcp_catalog import Catalog, SearchHit, open_local
from standards_mcp_catalog.vocabulary.notation import canonical_key
from standards_mcp_search.text_search import Answer, search_by_text

COUNT = 5
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

    async def ask(folder: Path) -> None:
        await of(open_local(folder, "minilm"), answers(name))

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(ask(Path(folder)))


def answers(name: str) -> Questions:
    """Return the lines of ``NAME.csv``."""
    with (_ANSWERS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


async def search(catalog: Catalog, text: str) -> Answer:
    """Search for a text without arguments."""
    return await search_by_text(catalog, text, COUNT, None, reads_grade=True, reads_subject=True)


def has_code(hits: Iterable[SearchHit], code: str) -> bool:
    """Return True if the standard of a code or a part of it is among hits."""
    wanted = canonical_key(code)
    keys = [canonical_key(hit.record.statement_notation or "") for hit in hits]
    return any(key == wanted or key.startswith(f"{wanted}.") for key in keys)
