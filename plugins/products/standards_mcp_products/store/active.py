"""The file ``active.json``: which collection has the products that the last build made.

A build makes it anew beside the old one and renames it, so readers see the old file or the new.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from standards_mcp import ApiError

_NAME: Final = "active.json"


@dataclass(frozen=True, slots=True)
class Active:
    """What a build has made.

    Attributes:
        collection: Its name in the store.
        products: How many it has.
        model: What made the vectors.
        source: The name of the file that it was made from.
        built: When, in seconds since the epoch.
    """

    collection: str
    products: int
    model: str
    source: str
    built: float


class ActiveFile:
    """Knows which build counts, for each store and name.

    Args:
        folder: The plugin's state folder.
        store: The folder or the address of the store.
        name: What the settings call the products.

    Attributes:
        folder: The plugin's state folder.
    """

    def __init__(self, folder: Path, store: str, name: str) -> None:
        self.folder, self._file = folder, folder / _NAME
        self._store, self._name = store, name

    def read(self) -> Active | None:
        """Return the build that counts; None if there is none.

        Raises:
            ApiError: The file cannot be read.
        """
        try:
            entry: Any = self._content().get("stores", {}).get(self._store, {}).get(self._name)
            return None if entry is None else Active(**entry)
        except (AttributeError, TypeError):
            raise self._damaged() from None

    def owner(self) -> str:
        """Return the id of this state folder, which is made where there is none yet.

        A server may have collections of several state folders, and each removes its own only.
        """
        self.read()  # a damaged file is not written again
        content = self._content()
        if not content.get("owner"):
            content["owner"] = secrets.token_hex(8)
            self._write(content)
        return str(content["owner"])

    def write(self, active: Active) -> None:
        """Let a build count from now on."""
        content = self._content()
        stores = content.setdefault("stores", {})
        stores.setdefault(self._store, {})[self._name] = asdict(active)
        self._write(content)

    def _content(self) -> dict[str, Any]:
        try:
            found = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise self._damaged() from None
        return cast("dict[str, Any]", found)

    def _write(self, content: Mapping[str, Any]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        draft = self._file.with_name(f".{_NAME}.{os.getpid()}")
        try:
            with draft.open("w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._file)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise ApiError(f"cannot write {self._file}: {error.strerror or error}") from error

    def _damaged(self) -> ApiError:
        return ApiError(
            f"{self._file} cannot be read. Remove it, and run `standards-mcp products build FILE`."
        )
