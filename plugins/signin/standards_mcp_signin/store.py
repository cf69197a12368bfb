"""The encrypted file of each user's tokens at one server.

A file is replaced as a whole, so that a killed process leaves the old one or the new one. Its
content names its owner, so that a file under another name is refused.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import filelock
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr, ValidationError

from standards_mcp import ApiError
from standards_mcp.files import FILE_MODE, private_folder, replace_privately, restrict

from .grants import Token

_LOCK_SECONDS: Final = 60.0


class UnreadableError(ApiError):
    """A stored or sealed text was changed, or encrypted with another key."""


class Store:
    """The tokens of users at one server, with one configuration of it.

    Args:
        folder: The folder of the files; it may not exist yet.
        key: The key; None for a file in *folder*.
        identity: The facts for which the tokens are valid; with others, there are none.
    """

    def __init__(self, folder: Path, key: SecretStr | None, identity: object) -> None:
        self._folder, self._key = folder, key
        self._identity = json.dumps(identity, sort_keys=True)

    def read(self, owner: str) -> Token | None:
        """Return the token of a user, or None.

        Raises:
            UnreadableError: The file was changed, or the key is another one.
        """
        try:
            data = self.path(owner).read_bytes().decode("ascii")
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            data = ""
        try:
            return Token.model_validate(self.unseal(owner, data))
        except ValidationError:  # of another version
            return None

    def write(self, owner: str, token: Token) -> None:
        """Store the token of a user.

        Raises:
            OSError: The file cannot be written; the old one is unchanged.
        """
        replace_privately(self.path(owner), self.seal(owner, token.model_dump(mode="json")))

    def delete(self, owner: str) -> None:
        """Delete the token of a user, if there is one."""
        self.path(owner).unlink(missing_ok=True)

    def path(self, owner: str) -> Path:
        """Return the file of a user, whose name tells nothing about them."""
        return self._folder / f"{self._label(owner)}.token"

    @asynccontextmanager
    async def locked(self, owner: str) -> AsyncGenerator[None]:
        """Let no other process change the token of a user during the body.

        Raises:
            ApiError: Another process holds the lock for too long.
        """
        private_folder(self._folder)
        try:
            file = self.path(owner).with_suffix(".lock")
            async with filelock.AsyncFileLock(file, _LOCK_SECONDS, FILE_MODE):
                yield
        except filelock.Timeout:
            raise ApiError("another process is busy with this sign-in; try again later") from None

    def seal(self, owner: str, value: object) -> str:
        """Return JSON data as an encrypted text that only this store can read.

        Raises:
            OSError: The key cannot be read or made.
        """
        text = json.dumps({"owner": self._label(owner), "value": value})
        return self._cipher().encrypt(text.encode()).decode("ascii")

    def unseal(self, owner: str, text: str, seconds: int | None = None) -> Any:
        """Return the data in the sealed text of an owner.

        Args:
            seconds: The greatest age of the text.

        Raises:
            UnreadableError: The text is not from this store, of another owner or too old.
        """
        try:
            content: dict[str, Any] = json.loads(self._cipher().decrypt(text, seconds))
        except (InvalidToken, ValueError, OSError):
            content = {}
        if content.get("owner") != self._label(owner):
            raise UnreadableError("the stored sign-in was changed, or has another key")
        return content["value"]

    def _label(self, owner: str) -> str:
        # A digest, because it is also in the address of a sign-in, whose length is limited.
        return hashlib.sha256(json.dumps([self._identity, owner]).encode()).hexdigest()

    def _cipher(self) -> Fernet:
        if self._key is not None:
            secret = self._key.get_secret_value().encode()
            derived = HKDF(SHA256(), 32, None, b"standards-mcp sign-in").derive(secret)
            return Fernet(base64.urlsafe_b64encode(derived))
        file = private_folder(self._folder) / "key"
        with filelock.FileLock(file.with_suffix(".lock"), _LOCK_SECONDS, FILE_MODE):
            if not file.exists():
                replace_privately(file, Fernet.generate_key())
            restrict(file)
            return Fernet(file.read_bytes())
