"""Build a collection of products from a file, then make it active in one write."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import islice
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import filelock
import numpy as np

from standards_mcp import ApiError, InvalidInputError

from .chroma import close_client, remove_orphans
from .columns import Names, columns_of
from .files import delimiter, readers_of
from .product_rows import Products, read_products
from .store import Active, Catalogue

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client

    from standards_mcp_encoders import TextEncoder

Progress: TypeAlias = Callable[[int, int], None]
_STORE_TIMEOUT: Final = 120.0
"""A server takes longer to store a batch than to answer a question."""
_BATCH_SIZE: Final = 2000
"""Chroma takes at most 5,461 records at once."""
_MAX_NAME_LENGTH: Final = 490


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a build.

    Attributes:
        limit: Maximum number of rows; None for all.
        dry_run: True to report without building.
        patience: Seconds to wait for another build.
        progress: Called with the number of stored products and the number of all products.
    """

    limit: int | None = None
    dry_run: bool = False
    patience: float = 0
    progress: Progress = lambda _stored, _total: None


def build(
    catalogue: Catalogue,
    file: Path,
    mapping: Names,
    encoder: TextEncoder,
    options: Options = Options(),
) -> dict[str, Any]:
    """Build the products of a file, make them searchable, and return a report.

    The report counts the rows that were read, and the products that are new or changed
    (`indexed`), are `unchanged` and keep their vectors, or are missing in the file (`removed`). It
    has the columns of each field (`mapping`), the other columns (`unused`), the `skipped` rows, and
    the `unread` values by field.

    Args:
        mapping: The result of `read_mapping`.

    Raises:
        InvalidInputError: The file cannot be read, or has no product.
        ApiError: The store fails, or another build runs.
    """
    read_heading, read_rows = readers_of(file)
    try:
        columns = columns_of(read_heading(file), mapping)
        products = read_products(
            lambda: islice(read_rows(file, columns), options.limit), columns, delimiter(file)
        )
    except OSError as error:
        raise InvalidInputError(f"{file} cannot be read: {error.strerror or error}") from None
    if not products.by_id:
        first = " It has no rows."
        for row in products.report["skipped"][:1]:
            count = products.report["read"]
            first = f" All {count} rows were skipped; row {row['row']} {row['reason']}."
        raise InvalidInputError(f"{file} has no products.{first}")
    with (
        _build_lock(catalogue, options.patience),
        catalogue.translated_errors(),
        ExitStack() as stack,
    ):
        client = None
        if not (options.dry_run and catalogue.is_empty()):  # a dry run creates no store
            client = catalogue.open(_STORE_TIMEOUT)
            stack.callback(close_client, client)
        work = _Build(catalogue, client, encoder, products)
        if client is None or options.dry_run:
            return work.report()
        return work.run(client, file.name, options.progress)


def _build_lock(catalogue: Catalogue, patience: float) -> AbstractContextManager[object]:
    """Lock the state folder against other builds."""
    catalogue.folder.mkdir(parents=True, exist_ok=True)
    try:
        return filelock.FileLock(catalogue.folder / "build.lock").acquire(patience)
    except filelock.Timeout:
        raise ApiError("Another build is running. Try again when it has ended.") from None


class _Build:
    """Compare products with the active collection, and build a new one.

    Args:
        client: None for a dry run without a store.
    """

    def __init__(
        self, catalogue: Catalogue, client: Client | None, encoder: TextEncoder, products: Products
    ) -> None:
        self._catalogue, self._encoder, self._products = catalogue, encoder, products
        self._old = self._active_collection(client)
        self._vectors = dict[str, np.ndarray[Any, Any]]()
        self._unchanged = set[str]()
        self._removed = 0
        if self._old is not None:
            self._compare(self._old)

    def report(self) -> dict[str, Any]:
        """Return the planned changes."""
        return {
            "collection": self._catalogue.name,
            "indexed": len(self._products.by_id) - len(self._unchanged),
            "unchanged": len(self._unchanged),
            "removed": self._removed,
            **self._products.report,
        }

    def run(self, client: Client, source: str, progress: Progress) -> dict[str, Any]:
        """Build the collection and make it active."""
        self._check_dimension()
        report = self.report()
        metadata = {"owner": self._catalogue.owner(), "products": self._catalogue.name}
        if self._old is None or report["indexed"] or report["removed"]:
            self._catalogue.activate(self._write_collection(client, metadata, source, progress))
        # Remove the collections of earlier builds, including killed ones.
        active = self._catalogue.active()
        for collection in client.list_collections():
            is_own = metadata.items() <= dict(collection.metadata or {}).items()
            if is_own and (active is None or collection.name != active.collection):
                client.delete_collection(collection.name)
        if (folder := self._catalogue.path) is not None:
            remove_orphans(folder)
        return report

    def _active_collection(self, client: Client | None) -> Collection | None:
        """Return the active collection, None if its vectors are not reusable."""
        active = self._catalogue.active()
        if client is None or active is None or active.model != self._encoder.name:
            return None
        collections = client.list_collections()
        return next((item for item in collections if item.name == active.collection), None)

    def _compare(self, old: Collection) -> None:
        """Find unchanged products and reusable vectors, and count the removed products."""
        stored_ids = set[str]()
        for ids in _batches(self._products.by_id):
            stored: Any = old.get(ids=ids, include=["documents", "metadatas", "embeddings"])
            columns = (stored[name] for name in ("ids", "documents", "metadatas", "embeddings"))
            for doc_id, document, fields, vector in zip(*columns, strict=True):
                stored_ids.add(doc_id)
                product = self._products.by_id[doc_id]
                if document == product.document:
                    self._vectors[doc_id] = vector
                    if _has_equal_fields(fields, product.fields):
                        self._unchanged.add(doc_id)
        self._removed = old.count() - len(stored_ids)

    def _check_dimension(self) -> None:
        """Drop reusable vectors of another dimension: a remote encoder may have changed."""
        vector = next(iter(self._vectors.values()), None)
        if vector is not None and len(self._encoder.encode(["length"])[0]) != len(vector):
            self._vectors.clear()
            self._unchanged.clear()

    def _write_collection(
        self, client: Client, metadata: dict[str, Any], source: str, progress: Progress
    ) -> Active:
        name = f"{self._catalogue.name[:_MAX_NAME_LENGTH]}--{secrets.token_hex(6)}"
        cosine: Any = {"hnsw": {"space": "cosine"}}
        new = client.create_collection(
            name, configuration=cosine, metadata=metadata, embedding_function=None
        )
        products = self._products.by_id
        progress(0, len(products))
        for number, ids in enumerate(_batches(products)):
            batch = [products[doc_id] for doc_id in ids]
            if unknown := [doc_id for doc_id in ids if doc_id not in self._vectors]:
                encoded = self._encoder.encode([products[doc_id].document for doc_id in unknown])
                self._vectors.update(zip(unknown, encoded, strict=True))
            vectors = [self._vectors.pop(doc_id) for doc_id in ids]
            new.add(
                ids=ids,
                embeddings=cast("Any", np.array(vectors, dtype=np.float32)),
                documents=[product.document for product in batch],
                metadatas=[cast("Mapping[str, Any]", product.fields) for product in batch],
            )
            progress(number * _BATCH_SIZE + len(ids), len(products))
        if (count := new.count()) != len(products):
            raise ApiError(f"The store has {count} of {len(products)} products. Build again.")
        # The name of a file may have bytes that are not UTF-8, as surrogates.
        shown_source = source.encode("utf-8", "replace").decode()
        return Active(
            collection=name, products=count, model=self._encoder.name, source=shown_source,
            built=time.time(),
        )  # fmt: skip


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(ids)
    return iter(lambda: list(islice(rest, _BATCH_SIZE)), [])


def _has_equal_fields(stored: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Return True for equal fields. Chroma may change the last bit of a number."""
    return stored.keys() == fields.keys() and all(
        type(value) is type(stored[name])
        and (
            isclose(value, stored[name], rel_tol=1e-12)
            if isinstance(value, float)
            else value == stored[name]
        )
        for name, value in fields.items()
    )
