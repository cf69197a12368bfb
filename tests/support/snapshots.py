"""Snapshots: a small catalog to publish, a node that pulls it, and a web server between them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from standards_mcp_catalog.importing.web import Web
from standards_mcp_catalog.local.store import LocalStore
from standards_mcp_catalog.snapshots.format import (
    MANIFEST,
    Manifest,
    public_text,
    signed,
    verified,
)
from standards_mcp_catalog.snapshots.publishing import Published, publish
from standards_mcp_catalog.snapshots.pulling import Pulled, pull
from standards_mcp_catalog.snapshots.sources import open_source

from .records import record

KEY = Ed25519PrivateKey.generate()
PUBLISHER = public_text(KEY)
ZEBRAS = record(99, "Count zebras at the water hole.")


class Place:
    """A publisher, its folder, and a node."""

    def __init__(self, path: Path) -> None:
        self.publisher = LocalStore(path / "publisher", "none")
        self.node = LocalStore(path / "node", "none")
        self.folder = path / "published"

    def publish(self) -> Published:
        return publish(self.publisher, self.folder, KEY)

    def pull(self, source: object = None, **options: Any) -> Pulled:
        found = source if callable(source) else open_source(str(source or self.folder))
        return pull(self.node, found, PUBLISHER, **options)

    def manifest(self) -> Manifest:
        return verified((self.folder / MANIFEST).read_bytes(), PUBLISHER)

    def sign(self, **changes: Any) -> None:
        """Publish the manifest with *changes*, signed by the publisher's key."""
        changed = self.manifest().model_copy(update=changes)
        (self.folder / MANIFEST).write_bytes(signed(changed, KEY))

    def descriptions(self, text: str = "zebras") -> list[str]:
        return [hit.record.description for hit in self.node.search(text, 1).hits]


class Site(ThreadingHTTPServer):
    """A web server of a folder. A test may answer some paths in its own way.

    Attributes:
        answers: By the beginning of a path: a function that gets the handler.
        paths: The paths that were asked for.
    """

    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, Callable[[SimpleHTTPRequestHandler], None]] = {}
        self.paths: list[str] = []
        site = self

        class Handler(SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                site.paths.append(self.path)
                for beginning, answer in site.answers.items():
                    if self.path.startswith(beginning):
                        answer(self)
                        return
                super().do_GET()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.source = open_source(self.url, Web(other_hosts=False, sleep=lambda _: None))
