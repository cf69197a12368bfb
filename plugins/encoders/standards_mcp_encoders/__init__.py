"""Text encoders, also for plugins that embed texts of their own.

``open_encoder("minilm").encode(["a text", "another"])`` returns an array with a row for each text.
`SPECS` lists what `open_encoder` takes, `check_model` checks it without opening anything,
`is_address` tells whether it names an endpoint, and `shown_spec` leaves its secrets out.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .errors import EncoderError, EncoderUnavailableError
from .spec import SPECS, UnknownModelError, check_model, is_address, shown_spec

if TYPE_CHECKING:
    from .encoders import open_encoder
    from .minilm import TextEncoder, Vectors

__all__ = [
    "SPECS",
    "EncoderError",
    "EncoderUnavailableError",
    "TextEncoder",
    "UnknownModelError",
    "Vectors",
    "check_model",
    "is_address",
    "open_encoder",
    "shown_spec",
]


def __getattr__(name: str) -> object:
    # Imported when asked for: whoever only names a model needs no NumPy.
    if name in __all__:
        module = "encoders" if name == "open_encoder" else "minilm"
        found: object = getattr(import_module(f"{__name__}.{module}"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
