"""How a setting names a text encoder; known without importing one.

minilm                          all-MiniLM-L6-v2 from a wheel, see `embedding`
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
NO_MODEL: Final = "none"
LIBRARIES: Final = ("sentence-transformers", "fastembed", "model2vec")
KEY_IN_THE_OPEN: Final = "the key of the text model would be sent unencrypted; use https"
SPECS: Final = (
    MINILM, NO_MODEL, *(f"{library}:NAME" for library in LIBRARIES),
    "https://HOST/v1/embeddings#NAME",
)  # fmt: skip
"""The forms of a spec, for messages; what stands in capitals is to be replaced."""

_SECRETS: Final = re.compile(r"(?<=://)[^/?]*@|\?.*", re.DOTALL)


class UnknownModelError(EncoderError, ValueError):
    """A spec has none of the forms in `SPECS`; the message lists them and the nearest one.

    It is a `ValueError`, so that a validator of settings may let it through.
    """


def is_address(spec: str) -> bool:
    """Return whether *spec* names an endpoint."""
    return spec.startswith(("http://", "https://"))


def shown_spec(spec: str) -> str:
    """Return *spec* as it is shown and kept: an address without user, password and query.

    So a new key in a query makes no other model.
    """
    if not is_address(spec):
        return spec
    address, mark, name = spec.partition("#")
    return _SECRETS.sub("", address) + mark + name


def check_model(spec: str) -> None:
    """Check that *spec* names an encoder, without trying to load it.

    Raises:
        UnknownModelError: It does not.
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
