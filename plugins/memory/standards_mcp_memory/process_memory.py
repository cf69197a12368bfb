"""The memory of this process."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def return_memory() -> None:
    """Return to the system what the process no longer uses, where the C library can.

    Opening a store or an encoder reads large files, and what that took would stay with the process.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
