"""Jobs on whole collections, and the description of a collection."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, Final

from standards_mcp import InvalidInputError, NotFoundError
from standards_mcp_memory.rendering import missing_collection_text

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

COPY_SUFFIX: Final = ".reembed"
"""The suffix of the copy that `reembed` makes of a collection."""
WORDS: Final = "words"
"""The name of the sparse vectors of a server."""
_MODEL_KEY: Final = "standards_mcp_model"
_REEMBED_KEY: Final = "standards_mcp_reembedded"
_SEARCH_KEY: Final = "standards_mcp_search"
_SEARCH_WITH_WORDS: Final = "words"
_NOT_FOUND: Final = 404


class MissingCollectionError(NotFoundError):
    """A collection does not exist.

    Args:
        names: The existing collections.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.names = list(names)
        super().__init__(missing_collection_text(name, names))


@dataclass(frozen=True, slots=True)
class Collection:
    """The description of a collection.

    Attributes:
        model: The name of the model of the vectors; None if another program made them.
        dimensions: The length of the vectors; None unless each memory has one unnamed vector with
            the distance cosine.
        reembed_source: For a copy by `reembed`, the name of the original; for an original that the
            copy is replacing, its own name.
        has_words: True if titles, previews and tags are embedded with contents, and searches match
            words. False for a collection of an earlier version or another program.
    """

    name: str
    count: int
    model: str | None
    dimensions: int | None
    reembed_source: str | None = None
    has_words: bool = False

    @property
    def form(self) -> tuple[str | None, bool]:
        """The model, and True if words are matched: the properties that `reembed` changes."""
        return self.model, self.has_words


def names(client: QdrantClient) -> list[str]:
    """Return the names of all collections, sorted."""
    return sorted(entry.name for entry in client.get_collections().collections)


@contextmanager
def missing_collection_errors(client: QdrantClient, name: str) -> Generator[None]:
    """Raise the client's error for a missing collection as `MissingCollectionError`.

    Raises:
        MissingCollectionError: The collection does not exist.
    """
    from qdrant_client.http.exceptions import UnexpectedResponse  # noqa: PLC0415  - takes seconds

    try:
        yield
    except (UnexpectedResponse, ValueError) as error:
        status = error.status_code if isinstance(error, UnexpectedResponse) else None
        # Errors of the embedded store have no status.
        if status != _NOT_FOUND and str(error) != f"Collection {name} not found":
            raise
        raise MissingCollectionError(name, names(client)) from None


def describe(client: QdrantClient, name: str) -> Collection:
    """Return the description of a collection."""
    info = client.get_collection(name)
    metadata = info.config.metadata or {}
    model, reembed_source = metadata.get(_MODEL_KEY), metadata.get(_REEMBED_KEY)
    return Collection(
        name=name,
        count=info.points_count or 0,
        model=model if isinstance(model, str) else None,
        dimensions=_dimensions(info.config.params.vectors),
        reembed_source=reembed_source if isinstance(reembed_source, str) else None,
        # Within a collection, all vectors have one form of text: mixed ones would rank old memories
        # below new ones.
        has_words=metadata.get(_SEARCH_KEY) == _SEARCH_WITH_WORDS,
    )


def count(client: QdrantClient, name: str) -> int:
    """Return the exact number of memories; the count of a server's description is rough.

    Raises:
        MissingCollectionError: The collection does not exist.
    """
    return client.count(name, exact=True).count


def create(client: QdrantClient, collection: Collection) -> None:
    """Create a collection.

    Raises:
        InvalidInputError: The store does not accept the name.
    """
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    metadata = {
        _MODEL_KEY: collection.model,
        _SEARCH_KEY: _SEARCH_WITH_WORDS if collection.has_words else None,
        _REEMBED_KEY: collection.reembed_source,
    }
    vectors = models.VectorParams(size=collection.dimensions or 0, distance=models.Distance.COSINE)
    words = {WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
    try:
        client.create_collection(
            collection.name,
            vectors_config=vectors,
            sparse_vectors_config=words if collection.has_words and is_server(client) else None,
            metadata={key: value for key, value in metadata.items() if value is not None},
        )
    except JSONDecodeError:  # a ValueError too, but from the answer of a server
        raise
    except ValueError as error:
        raise InvalidInputError(f"collection: {error}. Choose another name.") from None


def drop(client: QdrantClient, collection: Collection) -> None:
    """Delete a collection with its memories, if it exists."""
    client.delete_collection(collection.name)


def is_server(client: QdrantClient) -> bool:
    """Return True for the client of a server, False for an embedded store."""
    return client.init_options.get("url") is not None


def _dimensions(vectors: Any) -> int | None:
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    if not isinstance(vectors, models.VectorParams) or vectors.multivector_config is not None:
        return None
    return vectors.size if vectors.distance == models.Distance.COSINE else None
