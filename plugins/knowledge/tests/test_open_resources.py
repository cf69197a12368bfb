"""Functions of workers, called directly because coverage does not measure workers."""

from __future__ import annotations

import gc
import json
import pickle
import shutil
import sys
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from standards_mcp_encoders import Vectors
from standards_mcp_knowledge.documents import read_metadata
from standards_mcp_knowledge.manifests import DatasetError, Files, Manifest, stamps_of
from standards_mcp_knowledge.settings import KnowledgeSettings
from standards_mcp_knowledge.workers import process, tasks
from standards_mcp_knowledge.workers.open_resources import OpenResources

MakeDataset = Callable[..., Path]
GUIDE = Manifest(id="guide", name="Guide", description="What", index="i", metadata="m")
QUERY = "How do I turn one tool off?"


def files_of(folder: Path) -> Files:
    index, metadata = folder / "docs.index", folder / "metadata.json"
    return Files(index, metadata, stamps_of(index, metadata))


@pytest.fixture
def resources() -> OpenResources:
    encoders = {"nowhere": "http://127.0.0.1:9/v1/embeddings#m"}
    return OpenResources(KnowledgeSettings(encoders=encoders))


def test_a_dataset_is_inspected_searched_and_read(
    resources: OpenResources, make_dataset: MakeDataset
):
    files = files_of(make_dataset())
    tasks.encode(resources, ["word"], "all-MiniLM-L6-v2")
    facts = tasks.check(resources, files)
    assert facts == tasks.Facts(5, 384, "sentence-transformers/all-MiniLM-L6-v2")
    assert tasks.search(resources, files, GUIDE, QUERY, 1)[0]["path"] == "docs/3.md"
    assert tasks.document(resources, files, GUIDE, "docs/1.md") == "Dogs bark at night"
    assert tasks.document(resources, files, GUIDE, "docs/9.md") is None
    assert tasks.paths(resources, files, GUIDE, "DOCS/", 2) == ["docs/0.md", "docs/1.md"]
    tasks.close_others(resources, [])
    assert tasks.encode(resources, ["a"], "minilm").shape == (1, 384)
    assert tasks.call(resources, divmod, 7, 2) == (3, 1)


@pytest.mark.parametrize("kind", ["HNSW8", "IVF2,Flat", "PCA16,Flat"])
def test_indexes_that_search_in_part_look_far_enough(
    resources: OpenResources, make_dataset: MakeDataset, vectors: Vectors, kind: str
):
    noise = np.random.default_rng(5).standard_normal((95, 384))
    rows = np.vstack([vectors, noise / np.linalg.norm(noise, axis=1, keepdims=True)])
    rows = rows.astype("float32")
    files = files_of(make_dataset(kind=kind, rows=rows, metadata=[{}] * len(rows)))
    assert len(tasks.search(resources, files, GUIDE, QUERY, 90)) == 90


@pytest.mark.parametrize("kind", ["HNSW8", "PCA16,HNSW8", "IDMap,HNSW8"])
def test_graphs_look_far_enough_also_within_other_indexes(
    resources: OpenResources, make_dataset: MakeDataset, vectors: Vectors, kind: str
):
    rows = np.vstack([vectors] * 10)
    files = files_of(make_dataset(kind=kind, rows=rows, metadata=[{}] * len(rows)))
    tasks.search(resources, files, GUIDE, QUERY, 1)
    assert resources.dataset(files)._hnsw_layer.hnsw.efSearch == 64


@pytest.mark.parametrize("kind", ["IDMap,Flat", "IVF1,Flat", "PCA4,IVF1,Flat"])
def test_ids_of_an_index_that_are_not_the_places_of_documents_are_refused(
    resources: OpenResources, make_dataset: MakeDataset, vectors: Vectors, kind: str
):
    folder = make_dataset()
    index = faiss.index_factory(384, kind, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    for first, is_right in ((1, False), (1000, False), (0, True)):
        index.reset()
        index.add_with_ids(vectors, np.arange(first, first + 5))
        faiss.write_index(index, str(folder / "docs.index"))
        if is_right:
            found = tasks.search(resources, files_of(folder), GUIDE, QUERY, 1)
            assert found[0]["path"] == "docs/3.md"
        else:
            with pytest.raises(DatasetError, match="its ids are not 0 to 4"):
                tasks.check(resources, files_of(folder))


def test_ids_within_other_indexes_are_the_places_of_documents_too(
    resources: OpenResources, make_dataset: MakeDataset, vectors: Vectors
):
    folder = make_dataset()
    for ids in (range(1, 6), range(5)):
        inner = faiss.IndexIDMap(faiss.IndexFlatIP(384))
        turned = faiss.RandomRotationMatrix(384, 384)
        turned.init(1)
        index = faiss.IndexPreTransform(turned, inner)
        index.add_with_ids(vectors, np.array(ids))
        faiss.write_index(index, str(folder / "docs.index"))
        if ids[0]:
            with pytest.raises(DatasetError, match="its ids are not 0 to 4"):
                tasks.check(resources, files_of(folder))
    found = tasks.search(resources, files_of(folder), GUIDE, QUERY, 1)
    assert found[0]["path"] == "docs/3.md"


def test_a_changed_dataset_is_opened_anew_for_the_next_search(
    resources: OpenResources, make_dataset: MakeDataset, vectors: Vectors
):
    before = files_of(make_dataset())
    tasks.check(resources, before)
    assert tasks.search(resources, before, GUIDE, QUERY, 1)[0]["path"] == "docs/3.md"
    after = files_of(make_dataset(rows=np.ascontiguousarray(vectors[::-1])))
    # A caller with old stamps gets the new content.
    for files in (before, after):
        assert tasks.search(resources, files, GUIDE, QUERY, 1)[0]["path"] == "docs/1.md"
    shutil.rmtree(before.index.parent)
    with pytest.raises(DatasetError, match="cannot be read: No such file") as raised:
        tasks.check(resources, before)
    assert raised.value.kind == "path"


@pytest.mark.parametrize(
    ("changed", "kind", "reason"),
    [
        ({"rows": 3}, "index", "Index has 3 vectors, metadata has 5 documents"),
        ({"columns": 9}, "encoder", "Index has 9 dimensions, encoder all-MiniLM"),
        ({"metric": "l1"}, "index", "its metric is neither"),
        ({"model": "unknown"}, "encoder", "No encoder for model 'unknown'"),
        ({"model": "model2vec:none"}, "encoder", "pip install 'model2vec<1"),
    ],
)
def test_index_metadata_and_encoder_must_fit(
    resources: OpenResources,
    make_dataset: MakeDataset,
    vectors: Vectors,
    changed: dict[str, object],
    kind: str,
    reason: str,
):
    rows = vectors[: changed.pop("rows", 5), : changed.pop("columns", 384)]  # type: ignore[misc]
    metadata = {"documents": [{}] * 5, "model": changed.pop("model", None)}
    with pytest.raises(DatasetError) as raised:
        tasks.check(resources, files_of(make_dataset(rows=rows, metadata=metadata, **changed)))
    assert raised.value.kind == kind
    assert reason in raised.value.reason


def test_an_address_is_asked_by_a_search_and_after_a_failure_rests(
    resources: OpenResources, make_dataset: MakeDataset
):
    files = files_of(make_dataset(metadata={"documents": [{}] * 5, "model": "nowhere"}))
    assert tasks.check(resources, files).model == "nowhere"
    for _ in range(2):
        with pytest.raises(DatasetError, match=r"check plugins\.knowledge\.encoders") as raised:
            tasks.check(resources, files, True)
        assert raised.value.kind == "endpoint"


def test_an_invalid_vector_is_not_searched(
    resources: OpenResources, make_dataset: MakeDataset, monkeypatch: pytest.MonkeyPatch
):
    dataset = resources.dataset(files_of(make_dataset()))
    wrong = np.full((1, 384), np.nan, np.float32)
    monkeypatch.setattr(dataset.encoder, "encode", lambda _: wrong)
    with pytest.raises(DatasetError, match="returned an invalid vector"):
        dataset.nearest(QUERY, 1)


def test_encoders_go_with_the_last_dataset_that_uses_them(
    resources: OpenResources, make_dataset: MakeDataset, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "model2vec", types.ModuleType("model2vec"))

    class Model:
        from_pretrained = classmethod(lambda cls, _: cls())

        def encode(self, texts: list[str]) -> Vectors:
            return np.ones((len(texts), 384), np.float32)

    monkeypatch.setattr(sys.modules["model2vec"], "StaticModel", Model, raising=False)
    tasks.encode(resources, ["word"], "all-MiniLM-L6-v2")
    good = files_of(make_dataset())
    others = [
        files_of(make_dataset(name, metadata={"documents": [{}] * 5, "model": f"model2vec:{name}"}))
        for name in ("a", "b")
    ]
    for files in (good, *others):
        tasks.check(resources, files)
    models = [weakref.ref(resources.dataset(files).encoder) for files in (good, *others)]
    tasks.close_others(resources, [good, others[0]])
    gc.collect()
    assert [model() is not None for model in models] == [True, True, False]
    # The one for most datasets stays.
    tasks.close_others(resources, [])
    gc.collect()
    assert [model() is not None for model in models] == [True, False, False]
    # And when a dataset changes its model.
    tasks.check(resources, others[0])
    models = [weakref.ref(resources.dataset(others[0]).encoder)]
    after = files_of(make_dataset("a"))
    tasks.check(resources, after)
    gc.collect()
    assert models[0]() is None


def test_an_error_of_faiss_is_reported_in_its_words(
    resources: OpenResources, make_dataset: MakeDataset
):
    folder = make_dataset()
    (folder / "docs.index").write_bytes(b"nothing that FAISS knows")
    with pytest.raises(DatasetError, match=r"Index cannot be read: .*docs.index: .*not recogni"):
        tasks.check(resources, files_of(folder))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "EOF"),
        ('{"documents": {}}', "documents: Input should be a valid array"),
        ('[{"chunk": "x"}]', "0.chunk: Input should be a valid integer"),
        ("[1]", "0: Input should be"),
        ('"text"', "Input should be an object"),
    ],
)
def test_metadata_of_another_shape_is_refused(tmp_path: Path, text: str, reason: str):
    file = tmp_path / "metadata.json"
    file.write_text(text, "utf-8")
    with pytest.raises(DatasetError, match=f"Metadata is not valid: .*{reason}"):
        read_metadata(file)


def test_metadata_may_be_a_list_or_an_object_with_more(tmp_path: Path):
    file = tmp_path / "metadata.json"
    file.write_text(json.dumps({"documents": [{"more": 1}], "model": "m", "stats": {}}), "utf-8")
    assert read_metadata(file).model == "m"
    file.write_text('  [{"id": "a", "title": null}]', "utf-8")
    assert read_metadata(file).documents == [{"id": "a", "title": None}]
    with pytest.raises(DatasetError, match=r"cannot be read: .*Is a directory"):
        read_metadata(tmp_path)


def answered(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the error that a worker sends to the host."""
    return pickle.loads(process.answer_to(function, *arguments))[1]  # noqa: S301  - our own


def test_an_answer_is_sent_for_every_exception():
    error = answered(divmod, 1, 0)
    assert isinstance(error, ZeroDivisionError)
    assert "Traceback" in error.__notes__[0]
    with pytest.raises(MemoryError):
        process.answer_to(bytearray, 2**62)

    class LocalError(Exception):
        pass

    def fail() -> None:
        raise LocalError("text")

    error = answered(fail)
    assert str(error) == "LocalError: text"
    assert "in fail" in error.__notes__[0]
    # A result that cannot be sent is an error.
    assert "pickle" in str(answered(lambda: fail))
