"""Open the text encoder of a spec: the built-in one, a library's model, or an HTTP endpoint."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from typing_extensions import override

from standards_mcp.commands import install_command

from .errors import EncoderError, EncoderUnavailableError
from .minilm import TextEncoder, Vectors, normalised, shared_minilm
from .spec import MINILM, NO_MODEL, REMEDY, TIMEOUT, check_model, is_address

if TYPE_CHECKING:
    from .http import EmbeddingClient


def open_encoder(
    spec: str,
    key: SecretStr | None = None,
    *,
    remedy: str = REMEDY,
    threads: int | None = None,
    timeout: float = TIMEOUT,
    rest: float = 0,
) -> TextEncoder:
    """Return the encoder that *spec* names, see `SPECS`. ``minilm`` is shared by the process.

    Args:
        key: The API key of an endpoint, if it needs one.
        remedy: The setting to check, for the errors of an endpoint.
        threads: Number of threads for a call of ``minilm``, by default one for each processor. The
            first caller in a process decides.
        timeout: Seconds for one answer of an endpoint.
        rest: See `EmbeddingClient`: the pause of an endpoint after a failure.

    Raises:
        EncoderUnavailableError: *spec* is ``none``, or minilm is not installed. Search can go on
            by words alone.
        EncoderError: *spec* is invalid, its library is not installed, or the model cannot be
            read.
    """
    check_model(spec)
    if spec == MINILM:
        return shared_minilm(threads)
    if spec == NO_MODEL:
        raise EncoderUnavailableError('the configured model is "none"')
    if is_address(spec):
        # The HTTP client would delay the first search by a tenth of its time.
        from .http import EmbeddingClient  # noqa: PLC0415

        client = EmbeddingClient(spec, key, remedy=remedy, timeout=timeout, rest=rest)
        return HttpEncoder(client)
    library, _, name = spec.partition(":")
    return LibraryEncoder(library, name)


class LibraryEncoder(TextEncoder):
    """A model of one of the `LIBRARIES`, each installed by an extra.

    Raises:
        EncoderError: The library is not installed, or cannot load the model.
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
    """A model behind an HTTP endpoint, see `EmbeddingClient`."""

    def __init__(self, client: EmbeddingClient) -> None:
        self.name = client.name
        self._client = client

    @override
    def encode(self, texts: Sequence[str]) -> Vectors:
        return self._client.embed(texts)


_LOADERS: Mapping[str, Callable[[Any, str], Callable[[list[str]], Any]]] = {
    "sentence-transformers": lambda module, name: module.SentenceTransformer(name).encode,
    "fastembed": lambda module, name: module.TextEmbedding(model_name=name).embed,
    "model2vec": lambda module, name: module.StaticModel.from_pretrained(name).encode,
}
"""By library: a function that loads a model by name, and returns its function for encoding."""
