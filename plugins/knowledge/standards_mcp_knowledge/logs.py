"""What a log line may say of a query."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 100
_SECRETS: Final = re.compile(
    r"""
    (?<![^\W_])(?:sk|pk|pcsk|ghp|gho|ghs|github_pat|xox[a-z])[-_][\w-]+   # keys of known services
    | (?<=key=)\S+ | (?<=token=)\S+ | (?<=password=)\S+
    | [A-Za-z0-9+/_=-]{32,}                                    # long hex or base64
    """,
    re.VERBOSE | re.IGNORECASE,
)


def loggable(query: str) -> str:
    """Return the beginning of a query on one line, with what looks like a secret as ``***``."""
    line = "".join(each if each.isprintable() else " " for each in query)
    return _SECRETS.sub("***", line)[:_LONGEST]
