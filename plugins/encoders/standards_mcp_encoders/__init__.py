"""Text encoders, also for plugins that embed texts of their own.

``open_encoder("minilm").encode(["a text", "another"])`` returns an array with a row for each text.
`SPECS` lists the forms of a spec, `check_model` checks a spec without loading the model,
`is_address` recognizes endpoints, `is_minilm` spellings of the built-in model's name, and
`shown_spec` removes secrets. `encoder_name` is the name by which an index remembers its encoder.
`EmbeddingClient` is the HTTP client for endpoints, synchronous and asynchronous.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .errors import EncoderError, EncoderUnavailableError
from .spec import (
    SPECS,
    UnknownModelError,
    check_model,
    encoder_name,
    is_address,
    is_minilm,
    shown_spec,
)

if TYPE_CHECKING:
    from .encoders import HttpEncoder, open_encoder
    from .http import EmbeddingClient, EmbeddingError
    from .minilm import TextEncoder, Vectors

__all__ = [
    "SPECS",
    "EmbeddingClient",
    "EmbeddingError",
    "EncoderError",
    "EncoderUnavailableError",
    "HttpEncoder",
    "TextEncoder",
    "UnknownModelError",
    "Vectors",
    "check_model",
    "encoder_name",
    "is_address",
    "is_minilm",
    "open_encoder",
    "shown_spec",
]


_MODULES = {
    "EmbeddingClient": "http",
    "EmbeddingError": "http",
    "HttpEncoder": "encoders",
    "open_encoder": "encoders",
}


if not TYPE_CHECKING:  # it would hide misspelt names from type checkers

    def __getattr__(name: str) -> object:
        # Imported late, since `check_model` needs no NumPy.
        if name in __all__:
            module = _MODULES.get(name, "minilm")
            found: object = getattr(import_module(f"{__name__}.{module}"), name)
            return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
