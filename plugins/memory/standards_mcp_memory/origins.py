"""Record what states a memory, which decides what imports update and prune.

A memory has one origin for each file and heading that states it, and `STORED` if a tool or a line
of JSONL stored it. An import adds the origins that it reads, and takes their places from the other
memories. It rewrites a memory for an edited file only if nothing else states the old text;
otherwise it makes a new memory. A prune forgets the origins that are gone, and deletes a memory
that has none left. `STORED` is never gone.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple, cast

SOURCE_KEY: Final = "source"
"""The key of a payload under which the origins of a memory are stored."""


class Statement(NamedTuple):
    """A version of the text at one place of a file."""

    file: str
    heading: str | None
    version: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The file and heading that a memory was imported from.

    Attributes:
        root: The whole path of the file or folder that was imported.
        file: The whole path of the file; empty for `STORED`.
        heading: None for a memory that is a whole file.
        key: The `id` of the file's front matter.
        version: The hash of the text of the file and heading when it was imported. It is empty if
            another memory has the text of that place now.
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
        """Return the fields that a payload stores, none for `STORED`."""
        if self == STORED:
            return {}
        optional = {"heading": self.heading, "id": self.key}
        given = {name: value for name, value in optional.items() if value is not None}
        return {"root": self.root, "file": self.file, **given, "hash": self.version}

    @property
    def statement(self) -> Statement:
        """Its place with the version."""
        return Statement(self.file, self.heading, self.version)

    @property
    def place(self) -> tuple[str, str | None]:
        """Its file and heading."""
        return self.file, self.heading

    def is_within(self, path: str) -> bool:
        """Return True if its file is at a path, or in a folder."""
        return self != STORED and PurePath(self.file).is_relative_to(path)


STORED: Final = Origin()
"""The origin of a memory that a tool or a line of JSONL stored."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The files that an import has read, and the texts that they state."""

    files: AbstractSet[str] = field(default_factory=set[str])
    statements: AbstractSet[Statement] = field(default_factory=set[Statement])

    def lacks(self, origin: Origin) -> bool:
        """Return True if the file of an origin does not state the memory any more."""
        if origin == STORED:
            return False
        if origin.file in self.files:
            return origin.statement not in self.statements
        # Without the folder around it, it may be on a disk or machine that is not here.
        return os.path.exists(Path(origin.root).parent) and _is_gone(origin.file)  # noqa: PTH110


def origins_in(stored: object) -> tuple[Origin, ...]:
    """Return the origins that a payload stores; `STORED` if it stores none."""
    entries = cast("list[object]", stored) if isinstance(stored, list) else [stored]
    found = [
        Origin.read(cast("Mapping[str, Any]", each))
        for each in entries
        if isinstance(each, Mapping)
    ]
    return tuple(dict.fromkeys(found)) or (STORED,)


def with_origin(origins: tuple[Origin, ...], new: Origin) -> tuple[Origin, ...]:
    """Return origins with another one, which replaces the one of the same place."""
    before = next((each for each in origins if each.place == new.place), None)
    if before is None:
        return (*origins, new)
    if PurePath(new.root).is_relative_to(before.root):
        # A file that was imported alone still belongs to the folder that was imported.
        new = replace(new, root=before.root)
    return tuple(new if each is before else each for each in origins)


def without_places(
    origins: tuple[Origin, ...], places: Collection[tuple[str, str | None]]
) -> tuple[Origin, ...]:
    """Return the origins that are at none of these places.

    If none is left, return all of them without versions: they still tell what a prune may delete.
    """
    left = tuple(each for each in origins if each.place not in places)
    return left or tuple(replace(each, version="") for each in origins)


def _is_gone(file: str) -> bool:
    """Return True if there is no such file. One that nobody may look at is not gone."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
