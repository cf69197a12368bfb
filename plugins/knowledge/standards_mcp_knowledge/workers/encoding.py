"""The text encoders that a worker has open."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Final

from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import ServiceError
from standards_mcp_encoders import EncoderError, TextEncoder, Vectors, is_address, open_encoder
from standards_mcp_knowledge.encoders import BUILT_IN, Encoders, no_encoder, spec_of

_REMEDY: Final = "check plugins.knowledge.encoders and its embedding_api_key"
_REST: Final = 4


class AddressEncoder(TextEncoder):
    """An encoder at an address. One that does not answer takes a fifth of the time at most.

    So, after a failure, it is not asked for four times as long as the failure took.
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
    """Encoders by their specs. Each is opened once, and shared by datasets."""

    def __init__(self, settings: Encoders) -> None:
        self._settings = settings
        self._open: dict[tuple[str, bool], TextEncoder] = {}

    def of_user(self, model: str) -> TextEncoder:
        """Return the encoder of a model that the user has named.

        Raises:
            DatasetError: There is none, or it cannot be opened.
        """
        return self._encoder(model, self._settings.key)

    def of_dataset(self, model: str) -> TextEncoder:
        """Return the encoder of a model that a dataset names. Raises as `of_user` does."""
        # Whoever made the dataset may have named an address of theirs.
        is_known = model in self._settings.specs
        return self._encoder(model, self._settings.key if is_known else None)

    def keep_only(self, used: Collection[TextEncoder]) -> None:
        """Close all encoders but these and the built-in one."""
        self._open = {
            key: each for key, each in self._open.items() if key[0] == BUILT_IN or each in used
        }

    def _encoder(self, model: str, key: SecretStr | None) -> TextEncoder:
        spec = spec_of(model, self._settings.specs)
        known = (spec, key is not None)
        if known not in self._open:
            try:
                encoder = open_encoder(
                    spec, key, remedy=_REMEDY, threads=1, timeout=self._settings.timeout
                )
            except ServiceError as error:
                raise no_encoder(model, sentence(error)) from error
            self._open[known] = AddressEncoder(encoder) if is_address(spec) else encoder
        return self._open[known]


def sentence(error: ServiceError) -> str:
    """Return the text of an error as a sentence of its own."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}"
