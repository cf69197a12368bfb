"""Manifests: the valid values, and the errors for all others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from standards_mcp_knowledge.manifests import (
    Excluded,
    Manifest,
    Source,
    manifests_in,
    read_source,
)

MakeDataset = Callable[..., Path]


def left_out(folder: Path, *roots: Path) -> Excluded:
    found = read_source(folder / "manifest.json", roots or [folder.parent])
    assert isinstance(found, Excluded)
    return found


def test_optional_keys_may_be_missing_and_unknown_keys_are_ignored(make_dataset: MakeDataset):
    folder = make_dataset(name=" The guide ", builtBy="somebody")
    found = read_source(folder / "manifest.json", [folder.parent])
    assert isinstance(found, Source)
    assert found.manifest.default_top_k == 5
    assert found.files.index == folder / "docs.index"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"id": ..., "description": ...}, "Required: id, description"),
        ({"index": ..., "id": "NO"}, "Required: index"),
        ({"id": "Capital"}, "Invalid id: 1 to 64 characters of a-z, 0-9 and -"),
        ({"id": "line\n"}, "Invalid id: 1 to 64 characters of a-z, 0-9 and -"),
        ({"id": "a" * 65}, "Invalid id: 1 to 64 characters of a-z, 0-9 and -"),
        ({"name": "  "}, "Invalid name: a text of 1 to 128 characters"),
        ({"name": "n" * 129}, "Invalid name: a text of 1 to 128 characters"),
        ({"name": None}, "Invalid name: a text of 1 to 128 characters"),
        ({"description": "d" * 513}, "Invalid description: a text of 1 to 512 characters"),
        ({"index": 7}, "Invalid index: a path as text"),
        ({"metadata": ""}, "Invalid metadata: a path as text"),
        ({"index": "a\0b"}, "Invalid index: a path as text"),
        ({"defaultTopK": 0}, "Invalid defaultTopK: a whole number from 1 to 100"),
        ({"defaultTopK": 101}, "Invalid defaultTopK: a whole number from 1 to 100"),
        ({"defaultTopK": 5.5}, "Invalid defaultTopK: a whole number from 1 to 100"),
        ({"defaultTopK": True}, "Invalid defaultTopK: a whole number from 1 to 100"),
        ({"defaultTopK": "5"}, "Invalid defaultTopK: a whole number from 1 to 100"),
        ({"index": "none"}, "Index directory not found: {folder}/none"),
        ({"index": "no.index"}, "Index file not found: {folder}/no.index"),
        ({"index": "no.faiss"}, "Index file not found: {folder}/no.faiss"),
        ({"index": "empty"}, "No FAISS index file (*.index, *.faiss) in {folder}/empty"),
        ({"metadata": "no.json"}, "Metadata file not found: {folder}/no.json"),
        ({"metadata": "empty"}, "Metadata file not found: {folder}/empty"),
        ({"index": "/etc/passwd"}, "Path leaves the dataset folders: index"),
        ({"metadata": "../../x.json"}, "Path leaves the dataset folders: metadata"),
        ({"index": "link.index"}, "Path leaves the dataset folders: index"),
        ({"index": "links"}, "Path leaves the dataset folders: index"),
        ({"description": "d" * 10_240}, "Manifest exceeds maximum size of 10240 bytes"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_left_out_with_the_reason(
    make_dataset: MakeDataset, changed: dict[str, Any], reason: str
):
    folder = make_dataset("guide")
    (folder / "empty").mkdir()
    (folder / "links").mkdir()
    (folder / "link.index").symlink_to("/etc/passwd")
    (folder / "links/link.index").symlink_to("/etc/passwd")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8")) | changed
    kept = {key: value for key, value in manifest.items() if value is not ...}
    (folder / "manifest.json").write_text(json.dumps(kept), "utf-8")
    assert left_out(folder).reason == reason.format(folder=folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"text"', "null", "[" * 9000, '{"id": NaN}', "\ud800"]
)
def test_a_manifest_that_is_not_a_json_object_is_left_out(make_dataset: MakeDataset, text: str):
    folder = make_dataset()
    (folder / "manifest.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    found = left_out(folder)
    assert found.reason.startswith("Manifest is not valid JSON")
    assert (found.id, found.kind) == ("guide", "manifest")


def test_a_folder_gives_its_first_index_and_index_comes_before_faiss(make_dataset: MakeDataset):
    folder = make_dataset(index=".")
    for name in ("a.faiss", "b.index", "c.index"):
        (folder / name).write_bytes(b"")
    found = read_source(folder / "manifest.json", [folder.parent])
    assert isinstance(found, Source)
    assert found.files.index.name == "b.index"


def test_files_may_be_in_an_extra_root(make_dataset: MakeDataset, tmp_path: Path):
    elsewhere = make_dataset("elsewhere", into=tmp_path / "more")
    folder = make_dataset(index=str(elsewhere / "docs.index"))
    assert left_out(folder).reason == "Path leaves the dataset folders: index"
    found = read_source(folder / "manifest.json", [folder.parent, tmp_path / "more"])
    assert isinstance(found, Source)


def test_a_manifest_that_leads_out_of_the_folder_is_left_out(
    make_dataset: MakeDataset, root: Path, tmp_path: Path
):
    (root / "linked").symlink_to(make_dataset("other", into=tmp_path / "more"))
    assert left_out(root / "linked").reason == "Path leaves the dataset folders: manifest"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_manifest_that_may_not_be_read_is_left_out(make_dataset: MakeDataset):
    folder = make_dataset()
    (folder / "manifest.json").chmod(0)
    assert left_out(folder).reason == "Manifest cannot be read: Permission denied"


def test_manifests_are_found_one_level_deep_and_by_their_ending(
    make_dataset: MakeDataset, root: Path
):
    make_dataset("deep/er")
    make_dataset("b")
    make_dataset("a")
    (root / "c.manifest.json").write_text("{}", "utf-8")
    (root / "nothing").mkdir()
    (root / "folder.manifest.json").mkdir()
    found = [str(path.relative_to(root)) for path in manifests_in(root)]
    assert found == ["a/manifest.json", "b/manifest.json", "c.manifest.json"]
    assert left_out_id(root / "c.manifest.json") == "c"
    assert manifests_in(root / "missing") == []


def left_out_id(path: Path) -> str:
    found = read_source(path, [path.parent])
    assert isinstance(found, Excluded)
    return found.id


def test_the_schema_names_all_keys_and_the_required_ones():
    schema = Manifest.model_json_schema()
    assert list(schema["properties"]) == [
        "id", "name", "description", "index", "metadata", "defaultTopK",
    ]  # fmt: skip
    assert "defaultTopK" not in schema["required"]
