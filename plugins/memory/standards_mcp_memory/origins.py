"""Record the sources of memories, so that imports update and prune the right ones.

A memory has one origin for each file and heading that states it, and `STORED` if a tool or a line
of JSONL stored it. An import adds the origins that it reads, and takes their places from the other
memories. It rewrites a memory for an edited file only if nothing else states the old text;
otherwise it makes a new memory. A prune removes the origins that are gone, and deletes a memory
without origins. `STORED` is never gone.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple, cast

SOURCE_KEY: Final = "source"
"""The payload key of the origins of a memory."""


class Statement(NamedTuple):
    """A version of the text at one place of a file."""

    file: str
    heading: str | None
    version: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The file and heading that a memory was imported from.

    Paths are absolute, so that a folder and one of its files give one memory. Another machine has
    other paths; there, unchanged texts are found by their hash.

    Attributes:
        root: The absolute path of the file or folder that was imported.
        file: The absolute path of the file; empty for `STORED`.
        heading: None for a memory that is a whole file.
        key: The `id` of the file's front matter.
        version: The hash of the text at the time of the import. It is empty if another memory has
            the text of this file and heading now.
    """

    root: str = ""
    file: str = ""
    heading: str | None = None
    key: str | None = None
    version: str = ""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Origin:
        """Return a stored origin; `STORED` for a value that another program wrote."""
        names = ("root", "file", "heading", "id", "hash")
        root, file, heading, key, version = map(stored.get, names)
        if not (isinstance(root, str) and isinstance(file, str) and file):
            return STORED
        return cls(
            root,
            file,
            heading if isinstance(heading, str) else None,
            key if isinstance(key, str) else None,
            version if isinstance(version, str) else "",
        )

    def as_payload(self) -> dict[str, str]:
        """Return the fields for a payload; empty for `STORED`."""
        if self == STORED:
            return {}
        optional = {"heading": self.heading, "id": self.key}
        present = {name: value for name, value in optional.items() if value is not None}
        return {"root": self.root, "file": self.file, **present, "hash": self.version}

    @property
    def statement(self) -> Statement:
        """Its place with the version."""
        return Statement(self.file, self.heading, self.version)

    @property
    def place(self) -> tuple[str, str | None]:
        """Its file and heading."""
        return self.file, self.heading

    def is_within(self, path: str) -> bool:
        """Return True if its file is at a path or below it."""
        return self != STORED and PurePath(self.file).is_relative_to(path)


# It is one more origin, so that one rule decides about prunes. Memories of earlier versions have no
# origin and count as stored, too.
STORED: Final = Origin()
"""The origin of a memory that a tool or a line of JSONL stored."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The files that an import has read, and the texts that they state."""

    files: AbstractSet[str] = field(default_factory=set[str])
    statements: AbstractSet[Statement] = field(default_factory=set[Statement])

    def lacks(self, origin: Origin) -> bool:
        """Return True if the file of an origin no longer states the memory."""
        if origin == STORED:
            return False
        if origin.file in self.files:
            return origin.statement not in self.statements
        # If the folder around it is missing too, it may be on another disk or machine.
        return os.path.exists(Path(origin.root).parent) and _is_gone(origin.file)  # noqa: PTH110


def origins_in(stored: object) -> tuple[Origin, ...]:
    """Return the origins in a payload; `STORED` if it has no origin."""
    entries = cast("list[object]", stored) if isinstance(stored, list) else [stored]
    origins = [
        Origin.read(cast("Mapping[str, Any]", entry))
        for entry in entries
        if isinstance(entry, Mapping)
    ]
    return tuple(dict.fromkeys(origins)) or (STORED,)


def with_origin(origins: tuple[Origin, ...], new: Origin) -> tuple[Origin, ...]:
    """Return origins with a new one, which replaces an origin of the same place."""
    before = next((origin for origin in origins if origin.place == new.place), None)
    if before is None:
        return (*origins, new)
    if PurePath(new.root).is_relative_to(before.root):
        # A single file that is imported again still belongs to the folder imported before.
        new = replace(new, root=before.root)
    return tuple(new if origin is before else origin for origin in origins)


def without_places(
    origins: tuple[Origin, ...], places: Collection[tuple[str, str | None]]
) -> tuple[Origin, ...]:
    """Return the origins outside of these places.

    If no origin is left, return all of them without versions, so that a prune still knows the
    folder of the memory.
    """
    left = tuple(origin for origin in origins if origin.place not in places)
    return left or tuple(replace(origin, version="") for origin in origins)


def _is_gone(file: str) -> bool:
    """Return True if the file is missing. A file in an unreadable folder counts as present."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
