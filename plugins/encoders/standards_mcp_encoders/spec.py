"""Specs of text encoders, as settings write them; parsed without importing an encoder.

minilm                          all-MiniLM-L6-v2, the built-in encoder, see `minilm`
none                            no encoder: search by words only
sentence-transformers:NAME      a model of the extra ``sentence-transformers``
fastembed:NAME                  a model of the extra ``fastembed``
model2vec:NAME_OR_PATH          a model of the extra ``model2vec``
https://HOST/v1/embeddings#NAME an endpoint of the shape of OpenAI's
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from .errors import EncoderError

MINILM: Final = "minilm"
MINILM_NAME: Final = "all-MiniLM-L6-v2-w7a8"
"""The name of the built-in encoder: weights of seven bits, activations of eight.

Encoders with other numbers have other names, such as all-MiniLM-L6-v2-int8 of earlier versions.
"""
NO_MODEL: Final = "none"
LIBRARIES: Final = ("sentence-transformers", "fastembed", "model2vec")
API_KEY_VARIABLE: Final = "STANDARDS_MCP_EMBEDDING_API_KEY"
REMEDY: Final = "check the address, the model and the key"
TIMEOUT: Final = 60.0
"""Seconds for one answer of an endpoint."""
KEY_IN_THE_OPEN: Final = "the key of the text model would be sent unencrypted; use https"
SPECS: Final = (
    MINILM, NO_MODEL, *(f"{library}:NAME" for library in LIBRARIES),
    "https://HOST/v1/embeddings#NAME",
)  # fmt: skip
"""The forms of a spec, for messages; replace the words in capitals."""

_SECRETS: Final = re.compile(r"(?<=://)[^/?]*@|\?.*", re.DOTALL)


class UnknownModelError(EncoderError, ValueError):
    """A spec has none of the forms in `SPECS`; the message says which forms are possible.

    This is a `ValueError`, so that Pydantic validators may raise it.
    """


def is_address(spec: str) -> bool:
    """Return True if *spec* is the address of an endpoint."""
    return spec.startswith(("http://", "https://"))


def shown_spec(spec: str) -> str:
    """Return *spec* for messages and the index: an address without user, password and query.

    Thus a new key in the query does not change the model of an index.
    """
    if not is_address(spec):
        return spec
    address, mark, name = spec.partition("#")
    return _SECRETS.sub("", address) + mark + name


def encoder_name(spec: str) -> str:
    """Return `TextEncoder.name` of the encoder of *spec*, without opening it."""
    return MINILM_NAME if spec == MINILM else shown_spec(spec)


def is_minilm(model: str) -> bool:
    """Return True if *model* is all-MiniLM-L6-v2 in any spelling, such as ``ORG/NAME``.

    Vectors of its other forms are near enough to those of the built-in one to be compared.
    """
    name = model.casefold().replace("\\", "/").rpartition("/")[2].rpartition(":")[2]
    return name in {"all-minilm-l6-v2", "all-minilm-l6-v2-int8", MINILM_NAME.casefold()}


def check_model(spec: str) -> None:
    """Check that *spec* names an encoder, without trying to load it.

    Raises:
        UnknownModelError: *spec* has none of the forms in `SPECS`.
    """
    start, mark, name = spec.partition("#" if is_address(spec) else ":")
    if is_address(spec):
        if not name:
            shown = shown_spec(start)
            raise UnknownModelError(
                f"{shown!r} names no model; write it after the address: {shown}#NAME"
            )
        return
    if spec in (MINILM, NO_MODEL) or (start in LIBRARIES and name):
        return
    if start in LIBRARIES:
        raise UnknownModelError(f"{spec!r} names no model; write {start}:NAME")
    known = LIBRARIES if mark else (MINILM, NO_MODEL, *LIBRARIES)
    close = get_close_matches(start.casefold(), known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0] + mark + name!r}?" if close else ";"
    raise UnknownModelError(f"unknown text model {spec!r}{hint} use one of {', '.join(SPECS)}")
