"""The format of a snapshot: a signed manifest, and files in pieces.

FOLDER/snapshot.json      the manifest as a text, and the signature of this text
FOLDER/pieces/<SHA-256>   the pieces of all files, each named by its digest

The names of pieces come from their contents, so a piece of an earlier snapshot is kept and used
again, and a pull that was interrupted asks only for missing pieces.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from standards_mcp_catalog.errors import CatalogError

FORMAT: Final = "standards-mcp-snapshot"
VERSION: Final = 1
MANIFEST: Final = "snapshot.json"
PIECES: Final = "pieces"
DATABASE: Final = "catalog.sqlite3"
INDEX: Final = "index/"
"""The files of the index have names that begin with this."""
PIECE_BYTES: Final = 4 * 2**20
LARGEST_MANIFEST: Final = 16 * 2**20
# A signature for another purpose must not be valid here, if a key is ever used for two.
_PURPOSE: Final = b"standards-mcp snapshot\n"
_PART: Final = r"\.?[A-Za-z0-9_-][A-Za-z0-9._-]*"

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(pattern=f"^({DATABASE}|{INDEX}{_PART}(/{_PART})?)$")]


class SnapshotError(CatalogError):
    """A snapshot cannot be written, read or trusted; the catalog is as it was."""


class Piece(NamedTuple):
    """A part of a file; *offset* and *size* are in bytes."""

    digest: str
    offset: int
    size: int


class SnapshotFile(BaseModel):
    """A file of a snapshot: its size in bytes, and the SHA-256 of each piece.

    All pieces have `PIECE_BYTES`, and the last one the rest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: Annotated[int, Field(ge=0)]
    pieces: tuple[Digest, ...]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.pieces) != -(-self.size // PIECE_BYTES):
            raise ValueError("the number of pieces does not fit the size")
        return self

    def spans(self) -> Iterator[Piece]:
        """Yield the pieces in their order."""
        for number, digest in enumerate(self.pieces):
            offset = number * PIECE_BYTES
            yield Piece(digest, offset, min(PIECE_BYTES, self.size - offset))


class Manifest(BaseModel):
    """What a snapshot contains.

    Attributes:
        schema_version: The version of the database.
        index_version: The version of the index.
        model: The text encoder of the vectors, or None without vectors.
        counter: Greater than in every earlier snapshot of the publisher.
        files: The database and the files of the index, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["standards-mcp-snapshot"] = FORMAT
    version: Literal[1] = VERSION
    schema_version: int
    index_version: int
    model: str | None
    counter: Annotated[int, Field(gt=0)]
    time: datetime
    records: Annotated[int, Field(ge=0)]
    files: dict[FileName, SnapshotFile]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not {DATABASE, f"{INDEX}manifest.json"} <= self.files.keys():
            raise ValueError("the database or the index is missing")
        return self

    @property
    def title(self) -> str:
        """The time and the counter, for messages."""
        return f"snapshot {self.counter} of {self.time:%Y-%m-%d %H:%M} UTC"

    @property
    def index(self) -> dict[str, SnapshotFile]:
        """The files of the index, by their names in its folder."""
        items = self.files.items()
        return {name.removeprefix(INDEX): file for name, file in items if name.startswith(INDEX)}

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return sum(file.size for file in self.files.values())


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of *data* in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def digest_of_files(files: Mapping[str, SnapshotFile]) -> str:
    """Return a digest that changes with the name or the content of any of *files*."""
    listed = sorted((name, file.size, file.pieces) for name, file in files.items())
    return digest_of(json.dumps(listed).encode())


def public_text(key: Ed25519PrivateKey) -> str:
    """Return the public key of *key* as nodes have it in ``[plugins.catalog.snapshots]``."""
    return key.public_key().public_bytes_raw().hex()


def signed(manifest: Manifest, key: Ed25519PrivateKey) -> bytes:
    """Return the content of the file `MANIFEST`."""
    text = manifest.model_dump_json()
    signature = key.sign(_PURPOSE + text.encode()).hex()
    return json.dumps({"manifest": text, "signature": signature}, indent=1).encode()


def verified(data: bytes, publisher: str) -> Manifest:
    """Return the manifest in *data*.

    Args:
        data: The content of the file `MANIFEST`.
        publisher: The public key, see `public_text`.

    Raises:
        SnapshotError: *data* is not a manifest, another key has signed it, it was changed after
            that, or another version of this program has written it.
    """
    try:
        envelope: dict[str, str] = json.loads(data)
        text, signature = envelope["manifest"].encode(), bytes.fromhex(envelope["signature"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SnapshotError(f"{MANIFEST} is not the manifest of a snapshot") from error
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(publisher))
    try:
        key.verify(signature, _PURPOSE + text)
    except InvalidSignature:
        raise SnapshotError(
            f"{MANIFEST} is not signed by {publisher}: it was changed, or it is of another "
            "publisher; compare [plugins.catalog.snapshots] publisher with the key that "
            "`standards-mcp data publish` prints"
        ) from None
    content: dict[str, Any] = json.loads(text)
    if (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        raise SnapshotError(
            f"the snapshot has version {content.get('version')!r} of the format, and this "
            f"standards-mcp reads {VERSION}; install the same version here and at the publisher"
        )
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SnapshotError(f"{MANIFEST} is invalid: {where}: {first['msg']}") from None
