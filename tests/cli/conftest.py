from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import ACME, FILE, WITH_TOKEN


@pytest.fixture
def acme(install: Callable[..., Path]) -> None:
    """Install a plugin with settings and tools, and configure its token."""
    install("acme", ACME)
    FILE.write_text(WITH_TOKEN)
