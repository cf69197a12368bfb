"""Where imported memories come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, cast

SOURCE_KEY: Final = "source"
"""The key of a payload under which the origin of a memory is stored."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The file and heading that a memory was imported from.

    Attributes:
        root: The whole path of the file or folder that was imported.
        file: The whole path of the file.
        heading: None for a memory that is a whole file.
        key: The `id` of the file's front matter.
        content_hash: The hash of the memory as it was imported.
    """

    root: str = ""
    file: str = ""
    heading: str | None = None
    key: str | None = None
    content_hash: str = ""

    @classmethod
    def read(cls, stored: object) -> Origin | None:
        """Return the origin that a payload has; None if it has none, or another program's."""
        if not isinstance(stored, Mapping):
            return None
        values = cast("Mapping[str, Any]", stored)
        root, file = values.get("root"), values.get("file")
        if not (isinstance(root, str) and isinstance(file, str)):
            return None
        heading, key, content_hash = (values.get(each) for each in ("heading", "id", "hash"))
        return cls(
            root,
            file,
            heading if isinstance(heading, str) else None,
            key if isinstance(key, str) else None,
            content_hash if isinstance(content_hash, str) else "",
        )

    def as_payload(self) -> dict[str, str]:
        """Return it as a payload stores it."""
        optional = {"heading": self.heading, "id": self.key}
        given = {name: value for name, value in optional.items() if value is not None}
        return {"root": self.root, "file": self.file, **given, "hash": self.content_hash}

    def is_from(self, root: str) -> bool:
        """Return True if it was imported from this file or folder."""
        return root in (self.root, self.file)

    def is_within(self, root: str) -> bool:
        """Return True if this file or folder, or one in it, was imported."""
        return PurePath(self.root).is_relative_to(root)
