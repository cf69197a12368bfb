"""How answers look to people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from standards_mcp_knowledge.answers import Listed
from standards_mcp_knowledge.building import BuildReport
from standards_mcp_knowledge.search import Hit

top: Final = click.option("--top", type=click.IntRange(1, 100), help="The most results.")


def hits(found: Sequence[Hit]) -> str:
    """Return results, the best first, each with its file."""
    if not found:
        return "Nothing was found."
    return "\n\n".join(
        f"{rank}. {hit['path']}  {hit['title']}  ({hit['score']:.2f})\n   "
        + " ".join(hit["snippet"].split())
        for rank, hit in enumerate(found, 1)
    )


def dataset(each: Listed) -> str:
    """Return a dataset in two lines."""
    if "error" in each:
        return f"{each['id']}: left out\n   {each['error']}"
    return f"{each['id']}: {each['name']}, {each['documents']} passages\n   {each['description']}"


def report(built: BuildReport) -> str:
    """Return what a build has done."""
    done = f"{built.chunks} passages of {built.files} files, {built.unchanged} unchanged"
    skipped = (f"skipped {each.path}: {each.reason}" for each in built.skipped)
    return "\n".join([f"{built.id}: {done}, in {built.path}", *skipped])


def report_json(built: BuildReport) -> Mapping[str, Any]:
    """Return the same for programs."""
    return {
        "id": built.id,
        "path": str(built.path),
        "files": built.files,
        "chunks": built.chunks,
        "unchanged": built.unchanged,
        "skipped": [{"path": each.path, "reason": each.reason} for each in built.skipped],
    }
