"""Datasets and text encoders that a worker keeps open. Only this module imports FAISS."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import ServiceError
from standards_mcp_encoders import EncoderError, TextEncoder, Vectors, is_address, open_encoder
from standards_mcp_knowledge.documents import Document, Metric, read_metadata
from standards_mcp_knowledge.encoders import BUILT_IN, DEFAULT_MODEL, Encoders, no_encoder, spec_of
from standards_mcp_knowledge.manifests import DatasetError, Files, Stamp, stamp

_REMEDY: Final = "check plugins.knowledge.encoders and its embedding_api_key"
# So an address that hangs takes a fifth of the workers' time at most.
_REST: Final = 4


class AddressEncoder(TextEncoder):
    """An encoder at an address, with a circuit breaker.

    After a failure it is not called for four times the duration of the failure, so an address that
    does not answer takes at most a fifth of the time.
    """

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self.name = encoder.name
        self._failure = ""
        self._rests_until = 0.0

    @override
    def encode(self, texts: Sequence[str]) -> Vectors:
        began = time.monotonic()
        if began < self._rests_until:
            raise EncoderError(self._failure)
        try:
            return self._encoder.encode(texts)
        except ServiceError as error:
            now = time.monotonic()
            self._failure, self._rests_until = str(error), now + _REST * (now - began)
            raise


class OpenEncoders:
    """Open encoders by their specs. Datasets share them."""

    def __init__(self, settings: Encoders) -> None:
        self._settings = settings
        self._open: dict[tuple[str, bool], TextEncoder] = {}

    def of_user(self, model: str) -> TextEncoder:
        """Return the encoder of a model that the user named.

        Raises:
            DatasetError: No encoder is known for it, or it cannot be opened.
        """
        return self._encoder(model, self._settings.key)

    def of_dataset(self, model: str) -> TextEncoder:
        """Return the encoder of a model that a dataset names. Raises as `of_user` does."""
        # The author of a dataset may name any address, so the key goes only to known ones.
        is_known = model in self._settings.specs
        return self._encoder(model, self._settings.key if is_known else None)

    def keep_only(self, used: Collection[TextEncoder]) -> None:
        """Close all encoders but these and the built-in one."""
        self._open = {
            key: encoder
            for key, encoder in self._open.items()
            if key[0] == BUILT_IN or encoder in used
        }

    def _encoder(self, model: str, key: SecretStr | None) -> TextEncoder:
        spec = spec_of(model, self._settings.specs)
        with_key = (spec, key is not None)
        if with_key not in self._open:
            try:
                encoder = open_encoder(
                    spec, key, remedy=_REMEDY, threads=1, timeout=self._settings.timeout
                )
            except ServiceError as error:
                raise no_encoder(model, sentence(error)) from error
            self._open[with_key] = AddressEncoder(encoder) if is_address(spec) else encoder
        return self._open[with_key]


def sentence(error: ServiceError) -> str:
    """Return the text of an error as a sentence."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}"


_MOST_PROBES: Final = 16
_LEAST_CANDIDATES: Final = 64
_DAMAGE: Final = (RuntimeError, AssertionError)
"""The exceptions of FAISS for damaged indexes."""


class OpenDataset:
    """An index with its documents and its encoder, after a check that they fit.

    Attributes:
        dimension: The length of a vector.

    Raises:
        DatasetError: They do not fit.
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
        # An address is not called before a search needs it: it may answer slowly.
        # Four datasets with a dead address once delayed all others by 40 seconds.
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
            DatasetError: The encoder fails, or its vector does not fit the index.
        """
        try:
            vector = self.encoder.encode([query])
        except ServiceError as error:
            raise no_encoder(self.model, sentence(error), is_passing=True) from error
        self._check_dimension(vector.shape[1])
        if not np.isfinite(vector).all():
            raise no_encoder(
                self.model, f"{self.encoder.name} returned an invalid vector", is_passing=True
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
    """The open datasets of a worker. A dataset is opened again when its files change."""

    def __init__(self, encoders: Encoders) -> None:
        self._encoders = OpenEncoders(encoders)
        self._datasets: dict[tuple[Path, Path], OpenDataset] = {}

    def dataset(self, files: Files) -> OpenDataset:
        """Return an open dataset.

        Raises:
            DatasetError: It breaks a rule.
        """
        key = (files.index, files.metadata)
        current = self._datasets.get(key)
        # The host may not have noticed a change yet. An overwritten file changes in the mapped
        # index, too, so the old documents would not belong to it.
        if current is None or current.stamps != _stamps(files):
            # The old one is closed first, because a worker's memory may not hold both.
            self._datasets.pop(key, None)
            # Texts stay in the worker: 100,000 passages take 300 MB as Python objects, and a search
            # returns at most 100.
            self._datasets[key] = OpenDataset(files, self._encoders.of_dataset)
            self._close_encoders()
        return self._datasets[key]

    def keep_only(self, files: Sequence[Files]) -> None:
        """Close all other datasets, and unused encoders."""
        wanted = {(dataset.index, dataset.metadata) for dataset in files}
        for key in self._datasets.keys() - wanted:
            del self._datasets[key]
        self._close_encoders()

    def _close_encoders(self) -> None:
        self._encoders.keep_only([dataset.encoder for dataset in self._datasets.values()])

    def encode(self, texts: Sequence[str], model: str) -> Vectors:
        """Return a row of length 1 for each text, by a model that the user named.

        Raises:
            DatasetError: No encoder is known for the model.
            ServiceError: The encoder fails.
        """
        return self._encoders.of_user(model).encode(texts)


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
    except (*_DAMAGE, MemoryError) as error:
        raise _unreadable(path, error) from error
    try:
        inverted = faiss.extract_index_ivf(index)
    except RuntimeError:  # not an IVF index
        return index
    # An IVF index searches only some of its lists; this number is enough for good recall.
    inverted.nprobe = min(_MOST_PROBES, inverted.nlist)
    return index


def _levels(index: Any) -> Iterator[Any]:
    """Yield an index, then the indexes that it wraps."""
    while index is not None:
        index = _faiss().downcast_index(index)
        yield index
        wrapped = (getattr(index, name, None) for name in ("index", "base_index", "index_ivf"))
        index = next(filter(None, wrapped), None)


def _graph_of(index: Any) -> Any | None:
    """Return the index itself or a wrapped one if it is an HNSW index, else None."""
    return next((level for level in _levels(index) if hasattr(level, "hnsw")), None)


def _check_ids(index: Any, path: Path) -> None:
    """Check that the ids in an index are the row numbers of its documents.

    Raises:
        DatasetError: They are not; results would cite the wrong files.
    """
    for ids in map(_ids_of, _levels(index)):
        if not np.array_equal(np.sort(ids), np.arange(len(ids))):
            raise DatasetError(
                "index", f"Index cannot be read: {path}: its ids are not 0 to {len(ids) - 1}"
            )


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


def _unreadable(path: Path, error: BaseException) -> DatasetError:
    cause = " ".join(str(error).split()) or "it takes more memory than a worker may have"
    return DatasetError("index", f"Index cannot be read: {path}: {cause}")


def _stamps(files: Files) -> tuple[Stamp, Stamp]:
    try:
        return stamp(files.index), stamp(files.metadata)
    except OSError as error:
        raise DatasetError(
            "path", f"{error.filename} cannot be read: {error.strerror}", is_passing=True
        ) from error
