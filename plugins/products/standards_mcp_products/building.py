"""Build a collection of products from a file, then make it active in one write."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

import filelock
import numpy as np
from typing_extensions import TypedDict

from standards_mcp import ApiError, InvalidInputError

from .chroma import remove_orphans, translated
from .columns import Columns, Names, columns_of
from .files import Row, delimiter, read_heading, read_rows
from .product_rows import Product, Products, Skipped, Unread, read_products
from .service import Catalogue
from .store import Active

if TYPE_CHECKING:
    from chromadb.api.client import Client

_LOCK: Final = "build.lock"
_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a build.

    Attributes:
        limit: Maximum number of rows; None for all.
        dry_run: True to report without building.
        patience: Seconds to wait for another build.
    """

    limit: int | None = None
    dry_run: bool = False
    patience: float = 0


def build(
    catalogue: Catalogue,
    file: Path,
    mapping: Names,
    encoder: Encodes,
    options: Options = Options(),
    progress: Progress = lambda _done, _total: None,
) -> Report:
    """Build the products of a file and make them searchable.

    Args:
        mapping: The result of `read_mapping`.
        progress: Called with the number of stored products and the total.

    Raises:
        InvalidInputError: The file cannot be read, or has no product.
        ApiError: The store fails, or another build runs.
    """
    columns = columns_of(read_heading(file), mapping)
    rows = partial(_rows, file, columns, options.limit)
    products = read_products(rows, columns, delimiter(file))
    if not products.by_id:
        raise InvalidInputError(f"{file} has no products. {_reasons(products)}")
    with (
        _alone(catalogue, options.patience),
        translated(catalogue.place, catalogue.name),
        _client(catalogue, options) as client,
    ):
        work = Build(catalogue, client, encoder, products)
        return work.report() if options.dry_run else work.run(file.name, progress)


def _rows(file: Path, columns: Columns, limit: int | None) -> Iterator[Row]:
    return islice(read_rows(file, columns), limit)


@contextmanager
def _client(catalogue: Catalogue, options: Options) -> Generator[Client | None]:
    """Open the store; a dry run never creates one."""
    if options.dry_run and catalogue.place.is_empty():
        yield None
        return
    # A server takes longer to store a batch than to answer a question.
    place = replace(catalogue.place, timeout=max(_SECONDS, catalogue.place.timeout))
    client = place.open()
    try:
        yield client
    finally:
        place.close(client)


@contextmanager
def _alone(catalogue: Catalogue, patience: float) -> Generator[None]:
    """Lock the state folder against other builds."""
    folder = catalogue.file.folder
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / _LOCK, timeout=patience)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise ApiError("Another build is running. Try again when it has ended.") from None
    try:
        yield
    finally:
        lock.release()


def _reasons(products: Products) -> str:
    if not products.skipped:
        return "It has no rows."
    first = products.skipped[0]
    return f"All {products.read} rows were skipped; row {first['row']} {first['reason']}."


if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client

    from standards_mcp_encoders import Vectors

T = TypeVar("T")
Progress: TypeAlias = Callable[[int, int], None]
_BATCH: Final = 2000
"""Chroma takes at most 5,461 records at once."""
_LONGEST_NAME: Final = 490


class Report(TypedDict):
    """The report of a build.

    `mapping` has the columns of each field, and `unused` those of no field. `doubtful` has columns
    of one name, of which the first was used. `unread` counts the values that could not be read.
    `indexed` products are new or changed, `unchanged` ones kept their vectors, and `removed` ones
    of the last build are missing in the file.
    """

    collection: str
    mapping: Mapping[str, list[str]]
    unused: list[str]
    doubtful: Mapping[str, list[str]]
    read: int
    indexed: int
    unchanged: int
    removed: int
    skipped: list[Skipped]
    unread: Mapping[str, Unread]


class Encodes(Protocol):
    """An encoder of texts."""

    @property
    def name(self) -> str:
        """The model's name, stored with the vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text."""
        ...


class Build:
    """Compare products with the active collection, and build a new one.

    Args:
        client: None for a dry run without a store.
    """

    def __init__(
        self, catalogue: Catalogue, client: Client | None, encoder: Encodes, products: Products
    ) -> None:
        self._catalogue, self._client, self._encoder = catalogue, client, encoder
        self._products = products
        self._old = self._active_collection()
        self._vectors = dict[str, np.ndarray[Any, Any]]()
        self._unchanged = set[str]()
        self._removed = 0
        if self._old is not None:
            self._compare(self._old)

    def report(self) -> Report:
        """Return the planned changes."""
        unchanged, all_ = len(self._unchanged), len(self._products.by_id)
        return {
            "collection": self._catalogue.name,
            "mapping": self._products.columns.mapping,
            "unused": self._products.columns.unused,
            "doubtful": self._products.columns.doubtful,
            "read": self._products.read,
            "indexed": all_ - unchanged,
            "unchanged": unchanged,
            "removed": self._removed,
            "skipped": self._products.skipped,
            "unread": self._products.unread,
        }

    def run(self, source: str, progress: Progress) -> Report:
        """Build the collection and make it active."""
        self._check_lengths()
        report, client = self.report(), self._client
        assert client is not None  # noqa: S101  - only a dry run may have none
        owner = self._catalogue.file.owner()
        active = self._catalogue.file.read()
        if self._old is None or report["indexed"] or report["removed"]:
            active = self._written(client, owner, source, progress)
            self._catalogue.file.write(active)
        self._clear(client, owner, active.collection if active else "")
        return report

    def _active_collection(self) -> Collection | None:
        """Return the collection with reusable vectors, None without one."""
        active = self._catalogue.file.read()
        if self._client is None or active is None or active.model != self._encoder.name:
            return None
        names = {collection.name for collection in _collections(self._client)}
        if active.collection not in names:
            return None
        return self._client.get_collection(active.collection, embedding_function=None)

    def _compare(self, old: Collection) -> None:
        """Find unchanged products and reusable vectors, and count the removed products."""
        stored_ids = set[str]()
        for ids in _batches(list(self._products.by_id)):
            stored = old.get(ids=list(ids), include=["documents", "metadatas", "embeddings"])
            rows = zip(
                stored["ids"],
                stored["documents"] or (),
                stored["metadatas"] or (),
                _vector_rows(stored["embeddings"]),
                strict=True,
            )
            for doc_id, document, fields, vector in rows:
                stored_ids.add(doc_id)
                product = self._products.by_id[doc_id]
                if document == product.document:
                    self._vectors[doc_id] = vector
                    if _same(fields, product.fields):
                        self._unchanged.add(doc_id)
        self._removed = old.count() - len(stored_ids)

    def _check_lengths(self) -> None:
        """Drop reusable vectors if the encoder's dimension has changed, as behind an address."""
        if not self._vectors:
            return
        all_ = self._products.by_id
        # Choose a product that needs a vector anyway, if possible.
        doc_id = next(
            (candidate for candidate in all_ if candidate not in self._vectors), next(iter(all_))
        )
        vector = self._encoder.encode([all_[doc_id].document])[0]
        if len(vector) != len(next(iter(self._vectors.values()))):
            self._vectors.clear()
            self._unchanged.clear()
        self._vectors.setdefault(doc_id, vector)

    def _written(self, client: Client, owner: str, source: str, progress: Progress) -> Active:
        name = f"{self._catalogue.name[:_LONGEST_NAME]}--{secrets.token_hex(6)}"
        new = client.create_collection(
            name,
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine"}},
            metadata={"owner": owner, "products": self._catalogue.name},
        )
        all_ = self._products.by_id
        progress(0, len(all_))
        for number, ids in enumerate(_batches(list(all_))):
            batch = [all_[doc_id] for doc_id in ids]
            new.add(
                ids=list(ids),
                embeddings=cast("Any", self._embedded(ids, batch)),
                documents=[product.document for product in batch],
                metadatas=[cast("Mapping[str, Any]", product.fields) for product in batch],
            )
            progress(number * _BATCH + len(ids), len(all_))
        if (count := new.count()) != len(all_):
            raise ApiError(f"The store has {count} of {len(all_)} products. Build again.")
        return Active(name, count, self._encoder.name, source, time.time())

    def _embedded(self, ids: Sequence[str], batch: Sequence[Product]) -> Vectors:
        new = [position for position, doc_id in enumerate(ids) if doc_id not in self._vectors]
        rows = [self._vectors.get(doc_id) for doc_id in ids]
        if new:
            made = self._encoder.encode([batch[position].document for position in new])
            for position, vector in zip(new, made, strict=True):
                rows[position] = vector
        return np.array(rows, dtype=np.float32)

    def _clear(self, client: Client, owner: str, active: str) -> None:
        """Remove the collections of earlier builds, including killed ones."""
        mine = {"owner": owner, "products": self._catalogue.name}
        for collection in _collections(client):
            is_mine = mine.items() <= dict(collection.metadata or {}).items()
            if is_mine and collection.name != active:
                client.delete_collection(collection.name)
        if (folder := self._catalogue.place.path) is not None:
            remove_orphans(folder)


def _collections(client: Client) -> list[Collection]:
    return list(client.list_collections())


def _batches(ids: Sequence[T]) -> Generator[Sequence[T]]:
    for start in range(0, len(ids), _BATCH):
        yield ids[start : start + _BATCH]


def _vector_rows(vectors: Any) -> Sequence[np.ndarray[Any, Any]]:
    return [] if vectors is None else list(vectors)


def _same(stored: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Return True for equal fields. Chroma may change the last bit of a number."""
    return stored.keys() == fields.keys() and all(
        type(value) is type(stored[name])
        and (
            math.isclose(value, stored[name], rel_tol=1e-12)
            if isinstance(value, float)
            else value == stored[name]
        )
        for name, value in fields.items()
    )
