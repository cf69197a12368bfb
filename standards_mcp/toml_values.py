"""Writes single keys and values as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from .printable import printable

_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(key: str) -> str:
    """Return *key*, quoted where TOML needs that."""
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)


def toml_value(value: object) -> str:
    """Return JSON data as TOML on one line; a null, which TOML does not know, is left out."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        pairs = [f"{toml_key(k)} = {toml_value(each)}" for k, each in items if each is not None]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        elements = cast("Sequence[object]", value)
        return f"[{', '.join(toml_value(each) for each in elements if each is not None)}]"
    if isinstance(value, str):
        # JSON escapes what TOML does, but for a few characters.
        return printable(json.dumps(value, ensure_ascii=False))
    import tomlkit  # noqa: PLC0415  - keys alone are written at every start

    return str(cast("Any", tomlkit).item(value).as_string())
