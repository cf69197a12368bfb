"""Datasets and text encoders that a worker keeps open. Only this module imports FAISS."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from standards_mcp import ServiceError
from standards_mcp_encoders import HttpEncoder, TextEncoder, Vectors, open_encoder
from standards_mcp_knowledge.documents import Metric, read_metadata
from standards_mcp_knowledge.encoders import DEFAULT_MODEL, no_encoder, spec_of
from standards_mcp_knowledge.manifests import DatasetError, Files, stamps_of
from standards_mcp_knowledge.settings import KnowledgeSettings

_REMEDY: Final = "check plugins.knowledge.encoders and its embedding_api_key"
_REST_FACTOR: Final = 4
"""Pause of an address after a failure, in times of its duration: it takes a fifth of the time."""
_ENDPOINT_TIMEOUT_SHARE: Final = 0.7
_MOST_PROBES: Final = 16
_LEAST_CANDIDATES: Final = 64
_METRICS: Final[dict[int, Metric]] = {0: "ip", 1: "l2"}
_DAMAGE_ERRORS: Final = (RuntimeError, AssertionError)
"""The exceptions of FAISS for damaged indexes."""


class OpenResources:
    """The open datasets and encoders of a worker. A dataset is opened again when its files change.

    Attributes:
        settings: The settings of the plugin.
    """

    def __init__(self, settings: KnowledgeSettings | None = None) -> None:
        self.settings = settings or KnowledgeSettings()
        self._datasets: dict[tuple[Path, Path], OpenDataset] = {}
        # Datasets share encoders, and the last one that uses an encoder releases its memory.
        self._encoders_by_spec: WeakValueDictionary[tuple[str, bool], TextEncoder] = (
            WeakValueDictionary()
        )
        self._last_encoder: TextEncoder | None = None

    def dataset(self, files: Files) -> OpenDataset:
        """Return the dataset with these files; open it if necessary.

        Raises:
            DatasetError: The dataset breaks a rule.
        """
        key = (files.index, files.metadata)
        # The host may not have noticed a change yet. A mapped index changes with its file, so the
        # old documents would no longer belong to it.
        if key in self._datasets and self._datasets[key].stamps != stamps_of(*key):
            # The old dataset is closed first, because a worker's memory may not hold both.
            del self._datasets[key]
        if key not in self._datasets:
            # Texts stay in the worker: 100,000 passages take 300 MB as Python objects, and a search
            # returns at most 100.
            self._datasets[key] = OpenDataset(files, self)
        return self._datasets[key]

    def keep_only(self, datasets: Sequence[Files]) -> None:
        """Close all datasets but these."""
        wanted = {(dataset.index, dataset.metadata) for dataset in datasets}
        for key in self._datasets.keys() - wanted:
            del self._datasets[key]

    def encode(self, texts: Sequence[str], model: str) -> Vectors:
        """Return a row of length 1 for each text, by a model that the user named.

        Raises:
            DatasetError: No encoder is known for the model.
            ServiceError: The encoder fails.
        """
        self._last_encoder = self._encoder(model, with_key=True)
        return self._last_encoder.encode(texts)

    def encoder_of_dataset(self, model: str) -> TextEncoder:
        """Return the encoder of a model that a dataset names.

        Raises:
            DatasetError: No encoder is known for the model, or the encoder cannot be opened.
        """
        # The author of a dataset may name any address, so the key goes to those of the settings.
        return self._encoder(model, with_key=model in self.settings.encoders)

    def _encoder(self, model: str, *, with_key: bool) -> TextEncoder:
        spec = spec_of(model, self.settings.encoders)
        encoder = self._encoders_by_spec.get((spec, with_key))
        if encoder is None:
            key = self.settings.embedding_api_key if with_key else None
            # Shorter than the worker's deadline, so that the error names the address.
            timeout = _ENDPOINT_TIMEOUT_SHARE * self.settings.timeout
            try:
                encoder = open_encoder(
                    spec, key, remedy=_REMEDY, threads=1, timeout=timeout, rest=_REST_FACTOR
                )
            except ServiceError as error:
                raise no_encoder(model, _capitalized(error)) from error
            self._encoders_by_spec[spec, with_key] = encoder
        return encoder


class OpenDataset:
    """An open index with its documents and its encoder.

    Attributes:
        dimension: The length of a vector.

    Raises:
        DatasetError: A file cannot be read, or index, documents and encoder do not fit.
    """

    def __init__(self, files: Files, resources: OpenResources) -> None:
        self.stamps = stamps_of(files.index, files.metadata)
        metadata = read_metadata(files.metadata)
        self.documents = metadata.documents
        self.model = metadata.model or DEFAULT_MODEL
        self._index = _read_index(files.index)
        self.dimension = int(self._index.d)
        if self._index.metric_type not in _METRICS:
            raise _index_error(files.index, "its metric is neither inner product nor L2")
        self.metric: Metric = _METRICS[self._index.metric_type]
        if self._index.ntotal != len(self.documents):
            raise DatasetError(
                "index",
                f"Index has {self._index.ntotal} vectors, metadata has "
                f"{len(self.documents)} documents",
            )
        layers = list(_index_layers(self._index))
        self._hnsw_layer = next((layer for layer in layers if hasattr(layer, "hnsw")), None)
        for ids in map(_ids_of, layers):
            # Other ids would cite the wrong files.
            if not np.array_equal(np.sort(ids), np.arange(len(ids))):
                raise _index_error(files.index, f"its ids are not 0 to {len(ids) - 1}")
        self.encoder = resources.encoder_of_dataset(self.model)
        # An address may answer slowly, so the first request to it is a search. Four datasets with
        # a dead address once delayed all others by 40 seconds.
        if not isinstance(self.encoder, HttpEncoder):
            self._check_dimension(self.encoder.dimensions)
        try:
            self._search(np.full((1, self.dimension), self.dimension**-0.5, dtype=np.float32), 1)
        except _DAMAGE_ERRORS as error:
            raise _index_error(files.index, error) from error

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
            DatasetError: The encoder fails, or its vector does not fit the index.
        """
        try:
            vector = self.encoder.encode([query])
        except ServiceError as error:
            raise no_encoder(self.model, _capitalized(error), "endpoint") from error
        self._check_dimension(vector.shape[1])
        if not np.isfinite(vector).all():
            reason = f"{self.encoder.name} returned an invalid vector"
            raise no_encoder(self.model, reason, "endpoint")
        return self._search(vector, k)

    def _search(self, vector: Vectors, k: int) -> list[tuple[int, float]]:
        k = min(k, int(self._index.ntotal))
        if k == 0:
            return []
        if self._hnsw_layer is not None:
            self._hnsw_layer.hnsw.efSearch = max(_LEAST_CANDIDATES, k)
        distances, rows = self._index.search(vector, k)
        return list(zip(rows[0].tolist(), distances[0].tolist(), strict=True))


def _faiss() -> Any:
    faiss: Any = importlib.import_module("faiss")
    # More threads slow down searches of small indexes, and there are several workers.
    faiss.omp_set_num_threads(1)
    return faiss


def _read_index(path: Path) -> Any:
    faiss = _faiss()
    try:
        # A mapped file is shared by all workers, and only the pages in use are loaded.
        # IO_FLAG_MMAP maps the lists of IVF indexes only, and copies flat and HNSW ones into each
        # worker: 30 MB for 20,000 vectors.
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except (*_DAMAGE_ERRORS, MemoryError) as error:
        raise _index_error(path, error) from error
    try:
        ivf_index = faiss.extract_index_ivf(index)
    except RuntimeError:  # not an IVF index
        return index
    # An IVF index searches only some of its lists; this number is enough for good recall.
    ivf_index.nprobe = min(_MOST_PROBES, ivf_index.nlist)
    return index


def _index_layers(index: Any) -> Iterator[Any]:
    """Yield an index, then the indexes that it wraps."""
    while index is not None:
        index = _faiss().downcast_index(index)
        yield index
        wrapped = (getattr(index, name, None) for name in ("index", "base_index", "index_ivf"))
        index = next(filter(None, wrapped), None)


def _ids_of(index: Any) -> npt.NDArray[np.int64]:
    """Return the ids that an index stores; most kinds store none."""
    faiss = _faiss()
    parts: list[npt.NDArray[np.int64]] = []
    if hasattr(index, "id_map"):
        parts = [faiss.vector_to_array(index.id_map)]
    elif hasattr(index, "invlists"):
        lists = index.invlists
        sizes = [(number, int(lists.list_size(number))) for number in range(lists.nlist)]
        parts = [faiss.rev_swig_ptr(lists.get_ids(number), size) for number, size in sizes if size]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _index_error(path: Path, cause: object) -> DatasetError:
    text = " ".join(str(cause).split()) or "it takes more memory than a worker may have"
    return DatasetError("index", f"Index cannot be read: {path}: {text}")


def _capitalized(error: ServiceError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}"
