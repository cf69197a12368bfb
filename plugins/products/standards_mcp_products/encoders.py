"""The text encoder of the products, opened at first use."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from standards_mcp_encoders import check_model, is_address

if TYPE_CHECKING:
    from standards_mcp_encoders import TextEncoder, Vectors

_BUILT_IN: Final = "minilm"
_REMEDY: Final = "check [plugins.products] model and OPENAI_API_KEY"


def known_model(model: str) -> str:
    """Return the spec of an encoder; any spelling of all-MiniLM-L6-v2 is the built-in one.

    Raises:
        ValueError: No encoder has this name.
    """
    if is_address(model):
        check_model(model)
        return model
    name = model.casefold().replace("\\", "/").rpartition("/")[2].rpartition(":")[2]
    if name.removesuffix("-int8") == "all-minilm-l6-v2":
        return _BUILT_IN
    if model == "none":
        raise ValueError("products are found by their vectors: model cannot be none")
    check_model(model)
    return model


class Encoder:
    """A text encoder, opened for the first text. Thread-safe.

    Args:
        spec: The result of `known_model`.
        key: The key for an encoder at an address.
    """

    def __init__(self, spec: str, key: SecretStr | None) -> None:
        self._spec, self._key = spec, key
        self._opening = threading.Lock()
        self._opened: TextEncoder | None = None

    @property
    def name(self) -> str:
        """The model's name for the store. Vectors with equal names are comparable.

        Raises:
            ServiceError: The encoder cannot be opened.
        """
        return self._open().name

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row of length 1 for each text.

        Raises:
            ServiceError: The encoder cannot be opened, or fails.
        """
        return self._open().encode(texts)

    def _open(self) -> TextEncoder:
        with self._opening:
            if self._opened is None:
                from standards_mcp_encoders import open_encoder  # noqa: PLC0415  - NumPy

                key = self._key if is_address(self._spec) else None
                self._opened = open_encoder(self._spec, key, remedy=_REMEDY)
            return self._opened
