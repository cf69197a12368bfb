"""Similarity in meaning by the built-in text encoder, with the vectors of texts kept."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from standards_mcp_encoders import Vectors
    from standards_mcp_encoders.minilm import MiniLmEncoder

_MAX_KEPT: Final = 4_096
"""Vectors of this many texts are kept, in 6 MB."""

log = logging.getLogger("standards_mcp.ranking")


class Meaning:
    """The encoder, opened at the first use, and the vectors of texts."""

    def __init__(self) -> None:
        # Several searches may run at a time, each in a thread.
        self._lock = threading.Lock()
        self._encoder: MiniLmEncoder | None = None
        self._is_missing = False
        self._kept: dict[str, Vectors] = {}

    def similarities(self, query: str, documents: Sequence[Sequence[str]]) -> list[float]:
        """Return the mean similarity of each document's texts; 0 for each without an encoder."""
        texts = list(dict.fromkeys(text for texts in documents for text in texts))
        with self._lock:
            encoder = self._encoder = self._encoder or self._open()
            if encoder is None or not texts:
                return [0.0] * len(documents)
            if unknown := [text for text in texts if text not in self._kept]:
                if len(self._kept) + len(unknown) > _MAX_KEPT:
                    self._kept.clear()
                    unknown = texts
                self._kept.update(zip(unknown, encoder.encode(unknown), strict=True))
            (vector,) = encoder.encode([query])
            similarity = {text: float(self._kept[text] @ vector) for text in texts}
        return [sum(similarity[text] for text in each) / len(each) for each in documents]

    def _open(self) -> MiniLmEncoder | None:
        if self._is_missing:
            return None
        try:
            from standards_mcp_encoders import EncoderError  # noqa: PLC0415  - needs NumPy
            from standards_mcp_encoders.minilm import shared_minilm  # noqa: PLC0415  - needs NumPy
        except ImportError as exc:
            reason = str(exc)
        else:
            try:
                return shared_minilm()
            except EncoderError as exc:
                reason = str(exc)
        log.warning("tools are searched by words alone", extra={"reason": reason})
        self._is_missing = True
        return None


similarities: Final = Meaning().similarities
