"""The folders of the user, found without a library where that would delay a start."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_NAME = "standards-mcp"


def user_state_folder(environment: Mapping[str, str]) -> str:
    """Return the user's folder for the state of this program, which may not exist."""
    if sys.platform == "linux":
        # As platformdirs does, whose import takes 10 ms of each start.
        base = environment.get("XDG_STATE_HOME", "").strip() or os.path.expanduser("~/.local/state")
        return os.path.join(base, _NAME)
    from platformdirs import user_state_path  # noqa: PLC0415  - see above

    return str(user_state_path(_NAME, appauthor=False))
