"""Makes a collection of products beside the active one, and then makes it active at once."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from typing_extensions import TypedDict

from standards_mcp import ApiError
from standards_mcp_products.service import Catalogue
from standards_mcp_products.store import Active, remove_orphans

from .products import Product, Products, Skipped, Unread

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client

    from standards_mcp_encoders import Vectors

T = TypeVar("T")
Progress: TypeAlias = Callable[[int, int], None]
_BATCH: Final = 2000
"""Chroma takes at most 5,461 at once."""
_LONGEST_NAME: Final = 490


class Report(TypedDict):
    """What a build has done.

    `mapping` has the columns of each field, and `unused` those of no field. `doubtful` has columns
    of one name, of which the first was used. `unread` counts the values that could not be read.
    `indexed` are new or changed, `unchanged` have kept their vectors, and `removed` were in the
    last build and are in the file no more.
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
    """What makes vectors."""

    @property
    def name(self) -> str:
        """What is kept of the model."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each text."""
        ...


class Work:
    """What is to be done to make products those that searches find.

    Args:
        client: None where there is no store yet, for a dry run.
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
        """Return what is to be done."""
        unchanged, all_ = len(self._unchanged), len(self._products.found)
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
        """Do it."""
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
        """Return the collection whose vectors can be kept."""
        active = self._catalogue.file.read()
        if self._client is None or active is None or active.model != self._encoder.name:
            return None
        names = {each.name for each in _collections(self._client)}
        if active.collection not in names:
            return None
        return self._client.get_collection(active.collection, embedding_function=None)

    def _compare(self, old: Collection) -> None:
        """Find out which products are unchanged, with their vectors, and how many are gone."""
        known = set[str]()
        for ids in _batches(list(self._products.found)):
            found = old.get(ids=list(ids), include=["documents", "metadatas", "embeddings"])
            rows = zip(
                found["ids"],
                found["documents"] or (),
                found["metadatas"] or (),
                _rows(found["embeddings"]),
                strict=True,
            )
            for doc_id, document, fields, vector in rows:
                known.add(doc_id)
                product = self._products.found[doc_id]
                if document == product.document:
                    self._vectors[doc_id] = vector
                    if _same(fields, product.fields):
                        self._unchanged.add(doc_id)
        self._removed = old.count() - len(known)

    def _check_lengths(self) -> None:
        """Keep no vectors if the encoder makes others by now, as an address may of one name."""
        if not self._vectors:
            return
        all_ = self._products.found
        # One that has to be embedded anyway, if there is one.
        doc_id = next((each for each in all_ if each not in self._vectors), next(iter(all_)))
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
        all_ = self._products.found
        progress(0, len(all_))
        for number, ids in enumerate(_batches(list(all_))):
            batch = [all_[each] for each in ids]
            new.add(
                ids=list(ids),
                embeddings=cast("Any", self._embedded(ids, batch)),
                documents=[each.document for each in batch],
                metadatas=[cast("Mapping[str, Any]", each.fields) for each in batch],
            )
            progress(number * _BATCH + len(ids), len(all_))
        if (count := new.count()) != len(all_):
            raise ApiError(f"The store has {count} of {len(all_)} products. Build again.")
        return Active(name, count, self._encoder.name, source, time.time())

    def _embedded(self, ids: Sequence[str], batch: Sequence[Product]) -> Vectors:
        new = [position for position, each in enumerate(ids) if each not in self._vectors]
        rows = [self._vectors.get(each) for each in ids]
        if new:
            made = self._encoder.encode([batch[position].document for position in new])
            for position, vector in zip(new, made, strict=True):
                rows[position] = vector
        return np.array(rows, dtype=np.float32)

    def _clear(self, client: Client, owner: str, active: str) -> None:
        """Remove the collections of earlier builds, also of those that were killed."""
        mine = {"owner": owner, "products": self._catalogue.name}
        for each in _collections(client):
            is_mine = mine.items() <= dict(each.metadata or {}).items()
            if is_mine and each.name != active:
                client.delete_collection(each.name)
        if (folder := self._catalogue.place.path) is not None:
            remove_orphans(folder)


def _collections(client: Client) -> list[Collection]:
    return list(client.list_collections())


def _batches(ids: Sequence[T]) -> Generator[Sequence[T]]:
    for start in range(0, len(ids), _BATCH):
        yield ids[start : start + _BATCH]


def _rows(vectors: Any) -> Sequence[np.ndarray[Any, Any]]:
    return [] if vectors is None else list(vectors)


def _same(stored: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """Tell whether fields are the same. Chroma may change the last bit of a number."""
    return stored.keys() == fields.keys() and all(
        type(value) is type(stored[name])
        and (
            math.isclose(value, stored[name], rel_tol=1e-12)
            if isinstance(value, float)
            else value == stored[name]
        )
        for name, value in fields.items()
    )
