"""Earlier datasets: whether a build may replace one, and which vectors it can reuse."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from standards_mcp_knowledge.manifests import NAME as MANIFEST

from .files import BUILT_BY, INDEX, METADATA, Passage
from .options import BuildError
from .work import Vectors, Work

_OURS: Final = frozenset((MANIFEST, METADATA, INDEX))
_OF_DESKTOPS: Final = frozenset((".DS_Store", "Thumbs.db", "desktop.ini"))
_ALIKE: Final = 0.99
"""The least cosine of two vectors of one text; a quantised encoder varies a little."""


def check_replaceable(out: Path, identifier: str) -> None:
    """Make sure that nothing is lost with the folder but a dataset that was built.

    Raises:
        BuildError: It holds something else.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise BuildError(f"{out} is not a folder; choose another place for the dataset")
    if not any(out.iterdir()):
        return
    manifest = _json(out / MANIFEST)
    if manifest.get("builtBy") == BUILT_BY and manifest.get("id") != identifier:
        raise BuildError(
            f"{out} holds the dataset '{manifest.get('id')}'; choose another folder or that id"
        )
    if manifest.get("builtBy") != BUILT_BY:
        raise BuildError(f"{out} holds no dataset that was built; choose another folder")
    files = [path for path in out.rglob("*") if not path.is_dir()]
    names = {path.relative_to(out).as_posix() for path in files if path.name not in _OF_DESKTOPS}
    others = names - _OURS
    if others:
        raise BuildError(f"{out} also holds {min(others)}, which would be lost; move it elsewhere")


def known_vectors(
    datasets: Iterable[Path], model: str, texts: set[str], work: Work
) -> dict[str, Vectors]:
    """Return the vectors in built datasets that belong to some of *texts*, by text.

    Datasets are read in their order until all texts are known.
    """
    known: dict[str, Vectors] = {}
    for folder in datasets:
        if missing := texts - known.keys():
            known |= _vectors_in(folder, model, missing, work)
    return known


def _vectors_in(folder: Path, model: str, texts: set[str], work: Work) -> dict[str, Vectors]:
    """Return the vectors of one dataset.

    One of the texts is encoded anew. If that gives another vector, the encoder has changed behind
    its name, and no vector is returned.
    """
    try:
        place = folder.stat()
        metadata = _json(folder / METADATA)
        if metadata.get("model") != model or _json(folder / MANIFEST).get("builtBy") != BUILT_BY:
            return {}
        rows = [Passage.read(document).to_encode for document in metadata["documents"]]
        if texts.isdisjoint(rows):
            return {}
        vectors = work.read_vectors(folder / INDEX)
        # Another build may have replaced the folder: the index would belong to other texts.
        is_replaced = not os.path.samestat(place, folder.stat())
    except (OSError, KeyError, TypeError):
        return {}
    if is_replaced or len(rows) != len(vectors):
        return {}
    known = {text: vector for text, vector in zip(rows, vectors, strict=True) if text in texts}
    text, vector = next(iter(known.items()))
    again = work.encode([text])[0]
    return known if again.shape == vector.shape and np.dot(again, vector) > _ALIKE else {}


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a file; an empty one where there is none."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
