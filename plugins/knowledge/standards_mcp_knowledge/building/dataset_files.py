"""Replace a dataset as a whole, and reuse the vectors of built datasets.

A new dataset is written into the sibling folder ``.NAME.build``, one level too deep for a server to
find its manifest. A killed build leaves that folder, and the next build removes it.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import filelock
import numpy as np

from standards_mcp_encoders import Vectors
from standards_mcp_knowledge.documents import Passage, read_metadata
from standards_mcp_knowledge.manifests import MANIFEST_NAME, DatasetError, read_values
from standards_mcp_knowledge.workers.blocking import Workers

from .options import BuildError, BuildOptions

METADATA: Final = "metadata.json"
INDEX: Final = "index/docs.index"
_BUILT_BY: Final = "standards-mcp-knowledge"
_DESKTOP_FILES: Final = frozenset((".DS_Store", "Thumbs.db", "desktop.ini"))
_MIN_COSINE: Final = 0.99
"""Minimum cosine of two vectors of the same text; quantised encoders vary a little."""
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


def text_to_encode(passage: Passage) -> str:
    """Return the text to embed, with the title, because few passages name their subject."""
    return f"{passage.get('title')}\n{passage.get('content')}"


@contextmanager
def locked_for_build(out: Path, identifier: str) -> Generator[None]:
    """Lock the folder of a dataset against other builds, and prepare it for `write_dataset`.

    Temporary files are removed at the start, after a killed build, and at the end.

    Raises:
        BuildError: Another build writes *out*, or *out* holds other files or cannot be written.
    """
    lock = filelock.FileLock(out.with_name(f".{out.name}.lock"), timeout=0)
    with _as_build_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise BuildError(f"another build is writing {out}; try again when it is done") from None
    try:
        with _as_build_errors(out):
            _remove_scratch(out)
            _check_replaceable(out, identifier)
        yield
    finally:
        with suppress(OSError):  # the next build tries again
            _remove_scratch(out)
        lock.release()


# Workers map index files into memory. Truncating a mapped file would crash them, so files are never
# overwritten.
def write_dataset(
    out: Path,
    options: BuildOptions,
    passages: Sequence[Passage],
    vectors: Vectors,
    workers: Workers,
) -> None:
    """Replace a dataset; readers see the old one or the new one.

    Args:
        vectors: Row i belongs to passage i.

    Raises:
        BuildError: The dataset cannot be written; the old one is unchanged.
    """
    new, old = _scratch_folder(out) / "new", _scratch_folder(out) / "old"
    manifest = options.manifest.model_dump(exclude_unset=True, by_alias=True)
    with _as_build_errors(out):
        (new / INDEX).parent.mkdir(parents=True)
        workers.call(write_index, vectors, new / INDEX)
        _write_json(new / METADATA, _metadata(options, passages, vectors.shape[1]))
        _write_json(new / MANIFEST_NAME, {**manifest, "builtBy": _BUILT_BY})
        for name in (INDEX, METADATA, MANIFEST_NAME):
            with (new / name).open("rb+") as file:
                os.fsync(file.fileno())
        if not out.exists():
            new.rename(out)
        elif not _exchange(new, out):
            out.rename(old)
            new.rename(out)


def reusable_vectors(
    datasets: Iterable[Path], model: str, texts: set[str], workers: Workers
) -> dict[str, Vectors]:
    """Return the vectors of *texts* from built datasets, by text.

    Datasets are read in their order until all texts have vectors.
    """
    vectors: dict[str, Vectors] = {}
    for folder in datasets:
        if missing := texts - vectors.keys():
            vectors |= _vectors_in(folder, model, missing, workers)
    return vectors


def _vectors_in(folder: Path, model: str, texts: set[str], workers: Workers) -> dict[str, Vectors]:
    """Return the vectors of texts from one dataset.

    One of the texts is encoded again. If its vector differs, the encoder has changed under the same
    name, and no vector is returned.
    """
    try:
        status_before = folder.stat()
        metadata = read_metadata(folder / METADATA)
        rows = list(map(text_to_encode, metadata.documents))
        if metadata.model != model or not _built_id(folder) or texts.isdisjoint(rows):
            return {}
        vectors = workers.call(read_vectors, folder / INDEX)
        # If another build replaced the folder meanwhile, the index belongs to other texts.
        is_replaced = not os.path.samestat(status_before, folder.stat())
    except (OSError, DatasetError):
        return {}
    if is_replaced or len(rows) != len(vectors):
        return {}
    reused = {text: vector for text, vector in zip(rows, vectors, strict=True) if text in texts}
    text, vector = next(iter(reused.items()))
    new_vector = workers.encode([text], model)[0]
    return (
        reused
        if new_vector.shape == vector.shape and np.dot(new_vector, vector) > _MIN_COSINE
        else {}
    )


def read_vectors(path: Path) -> Vectors:
    """Return the vectors of an index that `write_index` wrote. It runs in a worker.

    Raises:
        OSError: The index cannot be read.
    """
    import faiss  # noqa: PLC0415  - never in the process of the command

    try:
        index: Any = faiss.read_index(str(path))
        vectors: Vectors = index.reconstruct_n(0, index.ntotal)
    except (RuntimeError, AssertionError, MemoryError) as error:
        raise OSError(" ".join(str(error).split())) from error
    return vectors


def write_index(vectors: Vectors, path: Path) -> None:
    """Write a new file with an exact index by inner product. It runs in a worker.

    Raises:
        OSError: The file cannot be written.
    """
    import faiss  # noqa: PLC0415

    index: Any = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    # FAISS's own writer does not report the cause of a failure.
    path.write_bytes(faiss.serialize_index(index).tobytes())


def _metadata(
    options: BuildOptions, passages: Sequence[Passage], dimensions: int
) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {
        "model": options.model,
        "datasetId": options.manifest.id,
        "name": options.manifest.name,
        "description": options.manifest.description,
        "createdAt": now,
        "stats": {
            "totalFiles": len({passage.get("path") for passage in passages}),
            "totalChunks": len(passages),
            "embeddingDimensions": dimensions,
            "indexedAt": now,
        },
        "documents": passages,
    }


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
        file.write("\n")


def _check_replaceable(out: Path, identifier: str) -> None:
    """Check that the folder is empty or holds only a built dataset, which a build may replace.

    Raises:
        BuildError: *out* is not a folder, or holds other files or another dataset.
    """
    if not out.exists():
        return
    if not out.is_dir():
        raise BuildError(f"{out} is not a folder; choose another place for the dataset")
    if not any(out.iterdir()):
        return
    built_id = _built_id(out)
    if built_id is None:
        raise BuildError(f"{out} holds files that no build has written; choose another folder")
    if built_id != identifier:
        raise BuildError(f"{out} holds the dataset '{built_id}'; choose another folder or that id")
    files = [path for path in out.rglob("*") if not path.is_dir()]
    names = {path.relative_to(out).as_posix() for path in files if path.name not in _DESKTOP_FILES}
    foreign = names - {MANIFEST_NAME, METADATA, INDEX}
    if foreign:
        raise BuildError(f"{out} also holds {min(foreign)}, which would be lost; move it elsewhere")


def _built_id(folder: Path) -> str | None:
    """Return the id of a dataset that a build has written, else None."""
    try:
        values = read_values(folder / MANIFEST_NAME)
    except DatasetError:
        return None
    return str(values.get("id")) if values.get("builtBy") == _BUILT_BY else None


def _scratch_folder(out: Path) -> Path:
    return out.with_name(f".{out.name}.build")


def _remove_scratch(out: Path) -> None:
    """Remove the sibling folder; first restore the old dataset if the new one was not put there."""
    scratch = _scratch_folder(out)
    if (scratch / "old").exists() and not out.exists():
        (scratch / "old").rename(out)
    if scratch.exists():
        shutil.rmtree(scratch)


@contextmanager
def _as_build_errors(out: Path) -> Generator[None]:
    """Raise errors of the file system as `BuildError`, with a remedy."""
    try:
        yield
    except (OSError, NotImplementedError) as error:  # the latter: no locks on this file system
        reason = error.strerror if isinstance(error, OSError) else None
        raise BuildError(
            f"cannot write the dataset {out}: {reason or error}; "
            "choose a folder that can be written and has space"
        ) from error


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders atomically; return False if the system does not support it."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    result: int = rename(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE
    )
    return result == 0
