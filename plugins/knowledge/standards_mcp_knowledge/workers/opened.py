"""The datasets that a worker keeps open. FAISS is imported here alone."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from standards_mcp import ServiceError
from standards_mcp_encoders import TextEncoder, Vectors
from standards_mcp_knowledge.encoders import DEFAULT_MODEL, Encoders, no_encoder
from standards_mcp_knowledge.errors import DatasetError
from standards_mcp_knowledge.manifests import Files, Stamp, stamp
from standards_mcp_knowledge.metadata import Document, read_metadata
from standards_mcp_knowledge.search import Metric

from .encoding import AddressEncoder, OpenEncoders, sentence

_MOST_PROBES: Final = 16
_LEAST_CANDIDATES: Final = 64
_DAMAGE: Final = (RuntimeError, AssertionError)
"""What FAISS raises when an index is not what it should be."""


class OpenDataset:
    """An index with its documents and its encoder, found to fit together.

    Attributes:
        dimension: The length of a vector.

    Raises:
        DatasetError: They do not.
    """

    def __init__(self, files: Files, encoder_of: Callable[[str], TextEncoder]) -> None:
        self.stamps = _stamps(files)
        metadata = read_metadata(files.metadata)
        self.documents: Sequence[Document] = metadata.documents
        self.model = metadata.model or DEFAULT_MODEL
        self._index = _read_index(files.index)
        self.dimension = int(self._index.d)
        self.metric: Metric = self._metric(files.index)
        if self._index.ntotal != len(self.documents):
            raise DatasetError(
                "index",
                f"Index has {self._index.ntotal} vectors, metadata has "
                f"{len(self.documents)} documents",
            )
        self._graph = _graph_of(self._index)
        _check_ids(self._index, files.index)
        self.encoder = encoder_of(self.model)
        # Nothing is asked at an address before a search needs it: it may not answer for long.
        if not isinstance(self.encoder, AddressEncoder):
            self._check_dimension(self.encoder.dimensions)
        try:
            self._search(np.full((1, self.dimension), self.dimension**-0.5, dtype=np.float32), 1)
        except _DAMAGE as error:
            raise _unreadable(files.index, error) from error

    def _metric(self, path: Path) -> Metric:
        kinds: dict[int, Metric] = {0: "ip", 1: "l2"}
        kind = kinds.get(int(self._index.metric_type))
        if kind is None:
            raise DatasetError(
                "index",
                f"Index cannot be read: {path}: its metric is neither inner product nor L2",
            )
        return kind

    def _check_dimension(self, dimension: int) -> None:
        if dimension != self.dimension:
            raise DatasetError(
                "encoder",
                f"Index has {self.dimension} dimensions, encoder {self.encoder.name} has "
                f"{dimension}",
            )

    def nearest(self, query: str, k: int) -> list[tuple[int, float]]:
        """Return at most *k* rows with FAISS's distances.

        Raises:
            DatasetError: The encoder fails, or gives what the index cannot be searched with.
        """
        try:
            vector = self.encoder.encode([query])
        except ServiceError as error:
            raise no_encoder(self.model, sentence(error), is_passing=True) from error
        self._check_dimension(vector.shape[1])
        if not np.isfinite(vector).all():
            raise no_encoder(
                self.model, f"{self.encoder.name} gave what is no vector", is_passing=True
            )
        return self._search(vector, k)

    def _search(self, vector: Vectors, k: int) -> list[tuple[int, float]]:
        k = min(k, int(self._index.ntotal))
        if k == 0:
            return []
        if self._graph is not None:
            self._graph.hnsw.efSearch = max(_LEAST_CANDIDATES, k)
        distances, rows = self._index.search(vector, k)
        return list(zip(rows[0].tolist(), distances[0].tolist(), strict=True))


class Opened:
    """What one worker has open. Datasets are opened anew when their files change."""

    def __init__(self, encoders: Encoders) -> None:
        self._encoders = OpenEncoders(encoders)
        self._datasets: dict[tuple[Path, Path], OpenDataset] = {}

    def dataset(self, files: Files) -> OpenDataset:
        """Return a dataset, open.

        Raises:
            DatasetError: It breaks a rule.
        """
        key = (files.index, files.metadata)
        kept = self._datasets.get(key)
        # The host may not have noticed a change yet, and a file that is overwritten changes as it
        # is mapped: its documents must not be the old ones.
        if kept is None or kept.stamps != _stamps(files):
            # Not both at a time: that is what a worker's memory is for.
            self._datasets.pop(key, None)
            self._datasets[key] = OpenDataset(files, self._encoders.of_dataset)
            self._close_encoders()
        return self._datasets[key]

    def keep_only(self, files: Sequence[Files]) -> None:
        """Close every other dataset, and encoders that none uses any more."""
        wanted = {(each.index, each.metadata) for each in files}
        for key in self._datasets.keys() - wanted:
            del self._datasets[key]
        self._close_encoders()

    def _close_encoders(self) -> None:
        self._encoders.keep_only([each.encoder for each in self._datasets.values()])

    def encode(self, texts: Sequence[str], model: str) -> Vectors:
        """Return a row of length 1 for each text, by a model that the user has named.

        Raises:
            DatasetError: There is no encoder for the model.
            ServiceError: The encoder fails.
        """
        return self._encoders.of_user(model).encode(texts)


def _faiss() -> Any:
    faiss: Any = importlib.import_module("faiss")
    # A pool of threads makes searches of small indexes slower, and workers are as many as asked.
    faiss.omp_set_num_threads(1)
    return faiss


def _read_index(path: Path) -> Any:
    faiss = _faiss()
    try:
        # Mapped whole: workers share the memory, and only what is read comes into it.
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except (*_DAMAGE, MemoryError) as error:
        raise _unreadable(path, error) from error
    try:
        inverted = faiss.extract_index_ivf(index)
    except RuntimeError:  # it is none
        return index
    # It searches in part: this lets it look far enough.
    inverted.nprobe = min(_MOST_PROBES, inverted.nlist)
    return index


def _levels(index: Any) -> Iterator[Any]:
    """Yield an index and those within it, from without."""
    while index is not None:
        index = _faiss().downcast_index(index)
        yield index
        within = (getattr(index, name, None) for name in ("index", "base_index", "index_ivf"))
        index = next(filter(None, within), None)


def _graph_of(index: Any) -> Any | None:
    """Return the HNSW index that an index is or has within, None if there is none."""
    return next((each for each in _levels(index) if hasattr(each, "hnsw")), None)


def _check_ids(index: Any, path: Path) -> None:
    """Make sure that the ids that an index keeps are the places of its documents.

    Raises:
        DatasetError: They are not, so that results would cite the wrong files.
    """
    for ids in map(_ids_of, _levels(index)):
        if not np.array_equal(np.sort(ids), np.arange(len(ids))):
            raise DatasetError(
                "index", f"Index cannot be read: {path}: its ids are not 0 to {len(ids) - 1}"
            )


def _ids_of(index: Any) -> npt.NDArray[np.int64]:
    """Return the ids that an index keeps itself, which most kinds do not."""
    faiss = _faiss()
    parts: list[npt.NDArray[np.int64]] = []
    if hasattr(index, "id_map"):
        parts = [faiss.vector_to_array(index.id_map)]
    elif hasattr(index, "invlists"):
        lists = index.invlists
        sizes = [(number, int(lists.list_size(number))) for number in range(lists.nlist)]
        parts = [faiss.rev_swig_ptr(lists.get_ids(number), size) for number, size in sizes if size]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _unreadable(path: Path, error: BaseException) -> DatasetError:
    words = " ".join(str(error).split()) or "it takes more memory than a worker may have"
    return DatasetError("index", f"Index cannot be read: {path}: {words}")


def _stamps(files: Files) -> tuple[Stamp, Stamp]:
    try:
        return stamp(files.index), stamp(files.metadata)
    except OSError as error:
        raise DatasetError(
            "path", f"{error.filename} cannot be read: {error.strerror}", is_passing=True
        ) from error
