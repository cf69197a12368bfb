"""Data as JSON has it, which is all that clients can be sent."""

from __future__ import annotations

import json
from typing import Any


def json_copy(value: object) -> Any:
    r"""Return a copy of a value that shares nothing with it, with lists in place of tuples.

    Raises:
        ValueError: It cannot be written as JSON: it holds something else, refers to itself, or has
            half a character, as in ``"\ud83d"``, which no encoding of text can write.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as exc:
        half = exc.object[exc.start]
        raise ValueError(f"a text in it has half a character ({half!a})") from None
    except (TypeError, RecursionError) as exc:
        raise ValueError(str(exc)) from None
    return json.loads(text)
