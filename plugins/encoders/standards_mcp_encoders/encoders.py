"""Which text encoder a setting names, see `spec`, and the encoders that are not embedded."""

from __future__ import annotations

import importlib
import json
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError

import numpy as np
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import is_unencrypted, may_use_proxy
from standards_mcp.commands import install_command

from .errors import EncoderError, EncoderUnavailableError
from .minilm import TextEncoder, Vectors, normalised, shared_minilm
from .spec import KEY_IN_THE_OPEN, MINILM, NO_MODEL, check_model, is_address, shown_spec

API_KEY_VARIABLE = "STANDARDS_MCP_EMBEDDING_API_KEY"
_CATALOG_REMEDY = f"check [plugins.catalog.local] model and {API_KEY_VARIABLE}"
_TEXTS_IN_REQUEST = 64
_TIMEOUT = 60.0


def open_encoder(
    spec: str,
    key: SecretStr | None = None,
    *,
    remedy: str = _CATALOG_REMEDY,
    threads: int | None = None,
    timeout: float = _TIMEOUT,
) -> TextEncoder:
    """Return the encoder that *spec* names, see `SPECS`. ``minilm`` is shared by the process.

    Args:
        key: What an endpoint asks for, if it does.
        remedy: What an error of an endpoint says to check: the setting that names it, and its key.
        threads: How many a call of ``minilm`` uses, by default one for each processor. Whoever
            opens it first in a process decides.
        timeout: Seconds that an endpoint has for an answer.

    Raises:
        EncoderUnavailableError: *spec* is ``none``, or minilm is not installed. Search can go on
            by words alone.
        EncoderError: *spec* is not understood, or what it needs is not installed.
        EncoderError: The model cannot be read.
    """
    check_model(spec)
    if spec == MINILM:
        return shared_minilm(threads)
    if spec == NO_MODEL:
        raise EncoderUnavailableError('the configured model is "none"')
    if is_address(spec):
        return HttpEncoder(spec, key, remedy, timeout)
    library, _, name = spec.partition(":")
    return LibraryEncoder(library, name)


class LibraryEncoder(TextEncoder):
    """A model of one of the libraries that an extra installs.

    Raises:
        EncoderError: The library is not installed, or has no such model.
    """

    def __init__(self, library: str, model: str) -> None:
        self.name = f"{library}:{model}"
        try:
            module = importlib.import_module(library.replace("-", "_"))
        except ImportError as error:
            raise EncoderError(
                f"the text model {self.name!r} needs {library} ({error}); "
                f"run `{install_command('standards-mcp', library)}`"
            ) from error
        try:
            self._encode = _LOADERS[library](module, model)
        except Exception as error:
            raise EncoderError(f"{library} cannot load the model {model!r}: {error}") from error

    @override
    def encode(self, texts: Sequence[str]) -> Vectors:
        return normalised(list(self._encode(list(texts))))


class HttpEncoder(TextEncoder):
    """A model behind an HTTP endpoint of the shape of OpenAI's ``/v1/embeddings``.

    Args:
        spec: The endpoint's address with the model's name after ``#``.
        key: Sent to this address only: redirections are refused.
        remedy: See `open_encoder`.
        timeout: See `open_encoder`.

    Raises:
        EncoderError: The key would be sent unencrypted.
    """

    def __init__(
        self,
        spec: str,
        key: SecretStr | None = None,
        remedy: str = _CATALOG_REMEDY,
        timeout: float = _TIMEOUT,
    ) -> None:
        self.name = shown_spec(spec)
        self._timeout = timeout
        self._remedy = remedy
        self._key = key
        self._url, _, self._model = spec.partition("#")
        self._shown = shown_spec(self._url)
        if key and is_unencrypted(self._url):
            raise EncoderError(f"{self._shown}: {KEY_IN_THE_OPEN}; {remedy}")
        handlers: list[Any] = [_NoRedirection]
        if not may_use_proxy(self._url):
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), dimensions), each row of length 1.

        Raises:
            EncoderError: The endpoint does not answer, or not with vectors.
        """
        starts = range(0, len(texts), _TEXTS_IN_REQUEST)
        batches = [self._post(list(texts[start : start + _TEXTS_IN_REQUEST])) for start in starts]
        return normalised(np.vstack(batches))

    def _post(self, texts: list[str]) -> Vectors:
        body = json.dumps({"model": self._model, "input": texts, "encoding_format": "float"})
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        request = urllib.request.Request(self._url, body.encode(), headers)  # noqa: S310
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return _vectors(json.load(response), len(texts))
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
            if isinstance(error, HTTPError):
                error.close()
            cause = error.reason if isinstance(error, URLError) else error
            raise EncoderError(
                f"the embedding endpoint {self._shown} failed: {_described(cause)}; {self._remedy}"
            ) from error


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


_LOADERS: Mapping[str, Callable[[Any, str], Callable[[list[str]], Any]]] = {
    "sentence-transformers": lambda module, name: module.SentenceTransformer(name).encode,
    "fastembed": lambda module, name: module.TextEmbedding(model_name=name).embed,
    "model2vec": lambda module, name: module.StaticModel.from_pretrained(name).encode,
}
"""How the module of each library opens a model by its name."""
