"""Which text encoder a setting names, see `models`, and the encoders that are not embedded."""

from __future__ import annotations

import importlib
import json
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from types import ModuleType
from typing import Any, TypeAlias
from urllib.error import HTTPError, URLError

import numpy as np
from pydantic import SecretStr

from standards_mcp._utils.addresses import is_unencrypted
from standards_mcp.catalog.errors import CatalogError, CatalogUnavailableError

from .minilm import EncoderUnavailableError, MiniLmEncoder, TextEncoder, Vectors, normalised
from .spec import KEY_IN_THE_OPEN, MINILM, NO_MODEL, check_model, is_address

API_KEY_VARIABLE = "STANDARDS_MCP_EMBEDDING_API_KEY"
_Encode: TypeAlias = Callable[[list[str]], Any]
_TEXTS_IN_REQUEST = 64
_TIMEOUT = 60.0


def open_encoder(spec: str, key: SecretStr | None = None) -> TextEncoder:
    """Return the encoder that *spec* names, see `models`.

    Args:
        key: What an endpoint asks for, if it does.

    Raises:
        EncoderUnavailableError: There is none, and search can go on by words alone.
        CatalogError: *spec* is not understood, or what it needs is not installed.
        CatalogUnavailableError: The model cannot be read.
    """
    check_model(spec)
    if spec == MINILM:
        return MiniLmEncoder()
    if spec == NO_MODEL:
        raise EncoderUnavailableError('the configured model is "none"')
    if is_address(spec):
        return HttpEncoder(spec, key)
    library, _, name = spec.partition(":")
    return LibraryEncoder(library, name)


class _Probed(ABC):
    """An encoder whose number of dimensions is found by encoding a word."""

    _known_dimensions: int | None = None

    @property
    def dimensions(self) -> int:
        """The length of one vector."""
        if self._known_dimensions is None:
            self._known_dimensions = int(self.encode(["standard"]).shape[1])
        return self._known_dimensions

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), dimensions), each row of length 1."""


class LibraryEncoder(_Probed):
    """A model of one of the libraries that an extra installs.

    Raises:
        CatalogError: The library is not installed, or has no such model.
    """

    def __init__(self, library: str, model: str) -> None:
        self.name = f"{library}:{model}"
        module_name, load = _LIBRARIES[library]
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise CatalogError(
                f"the text model {self.name!r} needs {library} ({error}); "
                f"run `pip install 'standards-mcp[{library}]'`"
            ) from error
        try:
            self._encode = load(module, model)
        except Exception as error:
            raise CatalogError(f"{library} cannot load the model {model!r}: {error}") from error

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), dimensions), each row of length 1."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return normalised(self._encode(list(texts)))


class HttpEncoder(_Probed):
    """A model behind an HTTP endpoint of the shape of OpenAI's ``/v1/embeddings``.

    Args:
        spec: The endpoint's address with the model's name after ``#``.
        key: Sent to this address only: redirections are refused.

    Raises:
        CatalogError: The key would be sent unencrypted.
    """

    def __init__(self, spec: str, key: SecretStr | None = None, timeout: float = _TIMEOUT) -> None:
        self.name = spec
        self._key = key
        self._url, _, self._model = spec.partition("#")
        if key and is_unencrypted(self._url):
            raise CatalogError(f"{self._url}: {KEY_IN_THE_OPEN}")
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirection)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), dimensions), each row of length 1.

        Raises:
            CatalogUnavailableError: The endpoint does not answer, or not with vectors.
        """
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        starts = range(0, len(texts), _TEXTS_IN_REQUEST)
        batches = [self._post(list(texts[start : start + _TEXTS_IN_REQUEST])) for start in starts]
        return normalised(np.vstack(batches))

    def _post(self, texts: list[str]) -> Vectors:
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"})
        request = urllib.request.Request(self._url, body.encode(), self._headers())  # noqa: S310
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return _vectors(json.load(response), len(texts))
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            if isinstance(error, HTTPError):
                error.close()
            cause = error.reason if isinstance(error, URLError) else error
            raise CatalogUnavailableError(
                f"the embedding endpoint {self._url} failed: {_described(cause)}; "
                f"check [catalog.local] model and {API_KEY_VARIABLE}"
            ) from error

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        return headers


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _described(cause: object) -> str:
    """Return what an operating system or a server says, without numbers and nesting."""
    if isinstance(cause, OSError) and not isinstance(cause, HTTPError):
        cause = cause.strerror or cause
    return " ".join(str(cause).split()) or type(cause).__name__


def _vectors(answer: Any, count: int) -> Vectors:
    rows = sorted(answer["data"], key=lambda item: int(item["index"]))
    vectors = np.array([item["embedding"] for item in rows], dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != count:  # noqa: PLR2004
        raise ValueError(f"{len(vectors)} vectors for {count} texts")
    return vectors


def _load_sentence_transformers(module: ModuleType, model: str) -> _Encode:
    encode: _Encode = module.SentenceTransformer(model).encode
    return encode


def _load_fastembed(module: ModuleType, model: str) -> _Encode:
    embedding = module.TextEmbedding(model_name=model)
    return lambda texts: list(embedding.embed(texts))


def _load_model2vec(module: ModuleType, model: str) -> _Encode:
    encode: _Encode = module.StaticModel.from_pretrained(model).encode
    return encode


_Loader: TypeAlias = Callable[[ModuleType, str], _Encode]
_LIBRARIES: Mapping[str, tuple[str, _Loader]] = {
    "sentence-transformers": ("sentence_transformers", _load_sentence_transformers),
    "fastembed": ("fastembed", _load_fastembed),
    "model2vec": ("model2vec", _load_model2vec),
}
