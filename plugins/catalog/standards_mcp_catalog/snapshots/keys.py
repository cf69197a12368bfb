"""The private key of a publisher."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from standards_mcp.files import FILE_MODE, private_folder, write_private

from .format import SnapshotError

NAME: Final = "publisher.pem"
_OTHERS: Final = 0o077


def private_key(folder: Path) -> Ed25519PrivateKey:
    """Return the private key in *folder*. The first call makes one, which only its owner can read.

    Raises:
        SnapshotError: The key cannot be read or written, or others can read it.
    """
    import filelock  # noqa: PLC0415  - costs start-up time

    path = folder / NAME
    try:
        private_folder(folder)
        with filelock.FileLock(f"{path}.lock", 10, FILE_MODE):
            if not path.exists():
                # Rename a complete file: a kill must not leave half a key.
                new = path.with_name(f"{NAME}.new")
                write_private(new, _pem(Ed25519PrivateKey.generate()))
                new.replace(path)
            if os.name == "posix" and path.stat().st_mode & _OTHERS:
                raise SnapshotError(
                    f"other users can read the private key {path}; run `chmod 600 {path}`, or "
                    "delete it to publish with a new key, if others may have copied it"
                )
            key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise SnapshotError(f"cannot use the private key {path}: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SnapshotError(f"{path} is not an Ed25519 key; delete it to publish with a new key")
    return key


def _pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
