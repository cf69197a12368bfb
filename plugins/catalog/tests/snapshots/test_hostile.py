"""Sources that send something else than what was published."""

from __future__ import annotations

import itertools
import json
import os
import sys
from http.server import SimpleHTTPRequestHandler
from typing import Any

import pytest
from support.records import SMALL_CATALOG
from support.snapshots import ZEBRAS, Place, Site

from standards_mcp_catalog.importing.web import Web
from standards_mcp_catalog.snapshots.format import MANIFEST, PIECES, SnapshotError, SnapshotFile
from standards_mcp_catalog.snapshots.sources import open_source


@pytest.fixture(autouse=True)
def later(place: Place) -> Place:
    """Let the node have a snapshot, and publish a later one."""
    place.pull()
    place.publisher.upsert([ZEBRAS])
    place.publish()
    return place


def check_refused(place: Place, source: Any, message: str) -> None:
    """Check that a pull fails with *message*, changes nothing, and works with a true source."""
    with pytest.raises(SnapshotError, match=message):
        place.pull(source)
    assert [each.id for each in place.node.records()] == [each.id for each in SMALL_CATALOG]
    assert place.node.stats().details["index"] == "current"
    assert place.pull().is_new
    assert place.descriptions() == [ZEBRAS.description]


def sends(body: bytes, status: int = 200, **headers: str) -> Any:
    def answer(handler: SimpleHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def endless(handler: SimpleHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"x" * 65_536)
    except OSError:
        pass  # the node has gone


def cut(handler: SimpleHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"x")
    handler.close_connection = True


@pytest.mark.parametrize(
    ("path", "answer", "message"),
    [
        (f"/{PIECES}", sends(b"changed"), "is damaged or was changed"),
        (f"/{PIECES}", sends(b""), "is damaged or was changed"),
        (f"/{PIECES}", sends(b"", 404), "404"),
        (f"/{PIECES}", sends(b"", 500), "500"),
        (f"/{PIECES}", endless, r"is larger than [\d,]+ bytes"),
        (f"/{PIECES}", cut, "cannot be read"),
        (f"/{MANIFEST}", endless, r"is larger than 16,777,216 bytes"),
        (f"/{MANIFEST}", sends(b"", 404), "404"),
        (f"/{MANIFEST}", sends(b"<html>"), "is not the manifest"),
        (f"/{MANIFEST}", sends(b"[]"), "is not the manifest"),
        (f"/{MANIFEST}", sends(b"[" * 100_000), "is not the manifest"),
        (f"/{MANIFEST}", sends(b'{"manifest": 1, "signature": 2}'), "is not the manifest"),
        (f"/{MANIFEST}", sends(b'{"manifest": "{}", "signature": "00"}'), "is not signed by"),
        (
            f"/{PIECES}",
            sends(b"", 302, Location="http://127.0.0.2:9/pieces"),
            r"redirects to another host, http://127\.0\.0\.2:9",
        ),
        (f"/{MANIFEST}", sends(b"", 307, Location="file:///etc/passwd"), "snapshot.json: it "),
        (f"/{MANIFEST}", sends(b"", 302, Location=f"/{MANIFEST}"), "redirects too often"),
    ],
)
def test_a_web_server_that_sends_something_else(
    place: Place, site: Site, path: str, answer: Any, message: str
):
    site.answers[path] = answer
    check_refused(place, site.source, message)


def test_a_body_that_comes_too_slowly_is_given_up(place: Place, site: Site):
    clock = itertools.count(0, 100.0)
    web = Web(other_hosts=False, sleep=lambda _: None, clock=lambda: next(clock))
    site.answers[f"/{PIECES}"] = sends(b"x" * 50_000)
    check_refused(place, open_source(site.url, web), "it came too slowly")


def test_a_changed_manifest_is_not_signed(place: Place, site: Site):
    content = json.loads((place.folder / MANIFEST).read_bytes())
    content["manifest"] = content["manifest"].replace('"records":9', '"records":8')
    site.answers[f"/{MANIFEST}"] = sends(json.dumps(content).encode())
    check_refused(place, site.source, "is not signed by")


@pytest.mark.parametrize(
    "name",
    ["../../evil", "index/../../evil", "/etc/evil", "index/text/..", "C:\\evil", "index/a/b/c"],
)
def test_names_that_lead_elsewhere_are_refused_even_if_they_are_signed(place: Place, name: str):
    good = place.manifest().files
    place.sign(files=good | {name: good["index/manifest.json"]})
    with pytest.raises(SnapshotError, match=f"{MANIFEST} is invalid: files"):
        place.pull()


@pytest.mark.parametrize(
    "changes",
    [
        {"files": {}},
        {"counter": -1},
        {"files": {"catalog.sqlite3": SnapshotFile.model_construct(size=10**15, pieces=())}},
    ],
)
def test_manifests_without_sense_are_refused_even_if_they_are_signed(place: Place, changes: Any):
    place.sign(**changes)
    with pytest.raises(SnapshotError, match=f"{MANIFEST} is invalid"):
        place.pull()


def test_a_folder_without_a_piece_or_with_a_longer_one(place: Place):
    for path in (place.folder / PIECES).iterdir():
        path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(SnapshotError, match=r"is larger than [\d,]+ bytes"):
        place.pull()
    for path in (place.folder / PIECES).iterdir():
        path.unlink()
    with pytest.raises(SnapshotError, match="is missing; if it was published a moment ago"):
        place.pull()
    place.publish()
    assert place.pull().is_new


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_in_a_folder_is_not_waited_for(place: Place):
    (place.folder / MANIFEST).unlink()
    os.mkfifo(place.folder / MANIFEST)
    with pytest.raises(SnapshotError, match="is missing"):
        place.pull()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://standards.example.org/x", "use https"),
        ("ftp://standards.example.org/x", "use https"),
        ("https://ann:secret@standards.example.org/x", "no user name"),
        ("https://[x", "is not an address"),
    ],
)
def test_addresses_that_are_refused(address: str, message: str):
    with pytest.raises(SnapshotError, match=message) as caught:
        open_source(address)
    assert "secret" not in str(caught.value)
