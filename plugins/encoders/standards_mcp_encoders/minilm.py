"""The interface of text encoders, and the built-in encoder that needs no download.

The model is all-MiniLM-L6-v2 (Reimers and Gurevych, https://arxiv.org/abs/1908.10084).
``scripts/quantise_model.py`` makes its file, which computes in numbers of eight bits.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import os
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from standards_mcp.commands import install_command

from .errors import EncoderError, EncoderUnavailableError
from .spec import MINILM_NAME

Vectors: TypeAlias = npt.NDArray[np.float32]

_FILES: Final = resources.files("standards_mcp_encoders")
_MODEL: Final = "minilm.onnx"
_SHA256: Final = "512ac1284d1402b20b900998698b60a80010edfeda717c6c844286a7be077545"
_MAX_TOKENS: Final = 256
_SHARED_LOCK = threading.Lock()
_SHARED = WeakValueDictionary[str, "MiniLmEncoder"]()
_BATCH_TOKENS: Final = 512  # more tokens in one call gain nothing


class TextEncoder(ABC):
    """Turns texts into vectors whose dot product is the texts' similarity.

    Attributes:
        name: Identifies the model in an index: equal names mean comparable vectors.
    """

    name: str

    @cached_property
    def dimensions(self) -> int:
        """The length of one vector, by default found by encoding a word."""
        return int(self.encode(["standard"]).shape[1])

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), dimensions), each row of length 1.

        *texts* is not empty.
        """


def shared_minilm(threads: int | None = None) -> MiniLmEncoder:
    """Return the encoder that this process shares as long as there is a reference to it.

    An encoder takes 60 MB and a tenth of a second. Several threads may use it at a time.

    Args:
        threads: See `MiniLmEncoder`; the first caller decides.
    """
    with _SHARED_LOCK:
        encoder = _SHARED.get(MINILM_NAME)
        if encoder is None:
            _SHARED[MINILM_NAME] = encoder = MiniLmEncoder(threads)
        return encoder


class MiniLmEncoder(TextEncoder):
    """all-MiniLM-L6-v2 on the CPU: 384 dimensions, the first 256 tokens of a text.

    The vector of a text does not depend on the other texts of a call.

    Args:
        threads: Number of threads for a call, by default one for each processor.

    Raises:
        EncoderUnavailableError: A library is not installed.
        EncoderError: The file of the model cannot be read, or is not the expected one.
    """

    name = MINILM_NAME

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._session = _open_session(_checked_model())
        self._tokenizer = _open_tokenizer()

    @cached_property
    @override
    def dimensions(self) -> int:
        return 384

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return the L2-normalised means of the token vectors, shape (len(texts), 384)."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        encodings = self._tokenizer.encode_batch([_encodable(text) for text in texts])
        tokens: list[list[int]] = [encoding.ids for encoding in encodings]

        def encode_batch(rows: list[int]) -> None:
            ids = np.array([tokens[row] for row in rows], dtype=np.int64)
            vectors[rows] = normalised(self._session.run(None, {"ids": ids})[0])

        batches = list(_batches([len(ids) for ids in tokens]))
        if self._threads == 1 or len(batches) == 1:
            for rows in batches:
                encode_batch(rows)
        else:
            # Threads within a call of the runtime would take longer: the model is small.
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(encode_batch, batches))
        return vectors


def normalised(vectors: npt.ArrayLike) -> Vectors:
    """Return *vectors*, shape (n, d), with each row scaled to length 1; zero rows stay zero."""
    array = np.asarray(vectors, dtype=np.float32)
    lengths: Vectors = np.linalg.norm(array, axis=1, keepdims=True)
    return (array / np.maximum(lengths, 1e-12)).astype(np.float32)


def _checked_model() -> Path:
    """Return the file of the model, after checking that it is the expected one."""
    file, repair = Path(str(_FILES / _MODEL)), install_command("standards-mcp", replace=True)
    try:
        with file.open("rb") as content:
            sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise EncoderError(f"cannot read {file}: {error}; run `{repair}`") from error
    if sha256 != _SHA256:
        raise EncoderError(
            f"{file} is not the expected text model (SHA-256 {sha256}, expected {_SHA256}); "
            f"run `{repair}`"
        )
    return file


def _encodable(text: str) -> str:
    # A lone surrogate becomes a question mark: the tokenizer takes UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows of equal length, at most `_BATCH_TOKENS` tokens or one row at once."""
    rows_by_length = defaultdict[int, list[int]](list)
    for row, length in enumerate(lengths):
        rows_by_length[length].append(row)
    for length, rows in rows_by_length.items():
        count = max(1, _BATCH_TOKENS // length)
        for start in range(0, len(rows), count):
            yield rows[start : start + count]


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EncoderUnavailableError(
            f"{name} cannot be imported ({error}); run `{install_command(name)}`"
        ) from error


def _open_session(model: Path) -> Any:
    # Without this, the runtime reports its use over the network.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    runtime = _imported("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The graph has the runtime's fused operators already.
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # By its path: from bytes, the runtime would copy the 23 MB once more.
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _open_tokenizer() -> Any:
    """Return BERT's uncased tokenizer, to which ``[SEP]`` and the like in a text are plain text."""
    library = _imported("tokenizers")
    vocabulary = _vocabulary()
    words = library.models.WordPiece(vocabulary, unk_token="[UNK]")  # noqa: S106  no password
    tokenizer = library.Tokenizer(words)
    tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = library.processors.BertProcessing(
        ("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"])
    )
    tokenizer.enable_truncation(_MAX_TOKENS)
    return tokenizer


@cache
def whole_words() -> frozenset[str]:
    """Return the words that the tokenizer does not split, such as the common words of English."""
    return frozenset(token for token in _vocabulary() if token.isalpha())


def _vocabulary() -> dict[str, int]:
    file = _FILES / "bert-base-uncased-vocab.txt.gz"
    lines = gzip.decompress(file.read_bytes()).decode("utf-8").split("\n")
    return {token: number for number, token in enumerate(lines) if token}
