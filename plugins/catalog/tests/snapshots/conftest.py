from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.records import SMALL_CATALOG
from support.snapshots import Place, Site


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    found.publisher.upsert(SMALL_CATALOG)
    found.publish()
    yield found
    found.publisher.close()
    found.node.close()


@pytest.fixture
def site_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], Site]]:
    """Return a function that serves a folder over HTTP."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with ExitStack() as stack:

        def serve(folder: Path) -> Site:
            site = Site(folder)
            thread = threading.Thread(target=site.serve_forever, args=(0.01,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(site.server_close)
            stack.callback(site.shutdown)
            return site

        yield serve


@pytest.fixture
def site(place: Place, site_of: Callable[[Path], Site]) -> Site:
    return site_of(place.folder)
