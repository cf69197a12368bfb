"""Jobs about whole collections."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, Final

from standards_mcp import InvalidInputError, NotFoundError
from standards_mcp_memory.texts.markdown import no_collection

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

MODEL_KEY: Final = "standards_mcp_model"
REEMBEDDED: Final = ".reembed"
"""The end of the name of a collection that is to take the place of another."""
_REEMBEDDED_KEY: Final = "standards_mcp_reembedded"
_SEARCH_KEY: Final = "standards_mcp_search"
_WITH_WORDS: Final = "words"
WORDS: Final = "words"
"""The name of the sparse vectors of a server."""
_NOT_FOUND: Final = 404


class MissingCollectionError(NotFoundError):
    """There is no such collection.

    Args:
        names: Those that there are.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.names = list(names)
        super().__init__(no_collection(name, names))


@dataclass(frozen=True, slots=True)
class Collection:
    """What is known of a collection.

    Attributes:
        model: The name of the model that made its vectors; None for one that others made.
        dimensions: None where it has other than one unnamed vector, compared by their angle.
        reembedded: The name of the collection whose place it is to take, its own where it has begun
            to take that.
        has_words: True if titles, previews and tags are embedded with contents, and searches match
            words. False for a collection of an earlier version or another program.
    """

    name: str
    count: int
    model: str | None
    dimensions: int | None
    reembedded: str | None = None
    has_words: bool = False

    @property
    def form(self) -> tuple[str | None, bool]:
        """The model of its vectors, and whether words are matched: what `reembed` changes."""
        return self.model, self.has_words


def names(client: QdrantClient) -> list[str]:
    """Return the names of all collections, sorted."""
    return sorted(each.name for each in client.get_collections().collections)


@contextmanager
def found(client: QdrantClient, name: str) -> Generator[None]:
    """Turn what the client raises for a missing collection into an error with the names.

    Raises:
        MissingCollectionError: There is no such collection.
    """
    from qdrant_client.http.exceptions import UnexpectedResponse  # noqa: PLC0415  - takes seconds

    try:
        yield
    except UnexpectedResponse as error:
        if error.status_code != _NOT_FOUND:
            raise
        raise MissingCollectionError(name, names(client)) from None
    except ValueError as error:  # of the embedded store
        if str(error) != f"Collection {name} not found":
            raise
        raise MissingCollectionError(name, names(client)) from None


def describe(client: QdrantClient, name: str) -> Collection:
    """Return what is known of a collection.

    Raises:
        MissingCollectionError: There is no such collection.
    """
    with found(client, name):
        info = client.get_collection(name)
    metadata = info.config.metadata or {}
    model, reembedded = metadata.get(MODEL_KEY), metadata.get(_REEMBEDDED_KEY)
    return Collection(
        name=name,
        count=info.points_count or 0,
        model=model if isinstance(model, str) else None,
        dimensions=_dimensions(info.config.params.vectors),
        reembedded=reembedded if isinstance(reembedded, str) else None,
        has_words=metadata.get(_SEARCH_KEY) == _WITH_WORDS,
    )


def count(client: QdrantClient, name: str) -> int:
    """Return exactly how many memories a collection has.

    Raises:
        MissingCollectionError: There is no such collection.
    """
    with found(client, name):
        return client.count(name, exact=True).count


def create(client: QdrantClient, wanted: Collection) -> None:
    """Make a collection.

    Raises:
        InvalidInputError: The store takes no such name.
    """
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    metadata = {
        MODEL_KEY: wanted.model,
        _SEARCH_KEY: _WITH_WORDS if wanted.has_words else None,
        _REEMBEDDED_KEY: wanted.reembedded,
    }
    vectors = models.VectorParams(size=wanted.dimensions or 0, distance=models.Distance.COSINE)
    words = {WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
    try:
        client.create_collection(
            wanted.name,
            vectors_config=vectors,
            sparse_vectors_config=words if wanted.has_words and is_server(client) else None,
            metadata={key: value for key, value in metadata.items() if value is not None},
        )
    except JSONDecodeError:  # of a server
        raise
    except ValueError as error:
        raise InvalidInputError(f"collection: {error}. Choose another name.") from None


def is_server(client: QdrantClient) -> bool:
    """Return True for the client of a server, False for an embedded store."""
    return client.init_options.get("url") is not None


def drop(client: QdrantClient, name: str) -> None:
    """Delete a collection with all that is in it."""
    client.delete_collection(name)


def _dimensions(vectors: Any) -> int | None:
    from qdrant_client import models  # noqa: PLC0415  - takes seconds

    if not isinstance(vectors, models.VectorParams) or vectors.multivector_config is not None:
        return None
    return vectors.size if vectors.distance == models.Distance.COSINE else None
