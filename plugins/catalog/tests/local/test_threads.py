"""The embedded catalog beside others that use threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from support.waiting import WAIT

from standards_mcp_catalog.local.catalog import LocalCatalog

pytestmark = pytest.mark.anyio


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Return the event that functions hang on; it is set at the latest when the test ends."""
    event = threading.Event()
    yield event
    event.set()


async def test_the_catalog_answers_while_others_hold_the_default_threads(
    release: threading.Event, tmp_path: Any
):
    catalog = LocalCatalog(tmp_path / "catalog", "none")
    limiter = anyio.to_thread.current_default_thread_limiter()
    async with anyio.create_task_group() as group:
        for _ in range(int(limiter.total_tokens)):
            group.start_soon(anyio.to_thread.run_sync, release.wait)
        await anyio.wait_all_tasks_blocked()
        try:
            with anyio.fail_after(WAIT):
                assert (await catalog.search("counting")).hits == ()
        finally:
            release.set()
    await catalog.aclose()
