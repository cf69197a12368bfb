"""Text of others, such as keys and names of plugins, as it can be shown on a terminal."""

from __future__ import annotations

import re
from typing import Final

# Control characters but for tabs and line ends, and those that turn the direction of a line.
_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Return *text* with whatever would steer a terminal as ``\u001b``, as JSON and TOML do."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
