"""Compare the definitions of a server with the approved ones, and show the difference."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, Final, TypeAlias

Definition: TypeAlias = Mapping[str, Any]
Key: TypeAlias = tuple[str, str]
"""A list of the protocol, such as ``tools``, and the server's own name for an item of it."""

# The first field names the item. These fields reach models or decide what the host allows; icons
# and `_meta` do neither, and change with addresses and versions.
_PINNED: Final[Mapping[str, tuple[str, ...]]] = {
    "tools": ("name", "title", "description", "inputSchema", "outputSchema", "annotations"),
    "prompts": ("name", "title", "description", "arguments"),
    "resourceTemplates": ("uriTemplate", "name", "title", "description", "mimeType"),
}
_NOUNS: Final = {"tools": "tool", "prompts": "prompt", "resourceTemplates": "resource template"}

# Selectors that draw nothing, and so can carry a text that only a model reads.
_UNDRAWN: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_WIDTH: Final = 100
_MOST_COMPARED: Final = 400
"""How many lines are compared one by one: that takes minutes for megabytes made for it."""
_NAMED: Final = 5
_LONGEST_NAME: Final = 64


@dataclass(frozen=True, slots=True)
class Change:
    """A definition that is not approved.

    Attributes:
        before: The approved definition; None for a new item.
    """

    key: Key
    before: Definition | None
    after: Definition

    @property
    def title(self) -> str:
        """The item and how it differs, in words."""
        kind, name = self.key
        shown = _visible(name)[:_LONGEST_NAME]
        return f"{_NOUNS[kind]} {shown!r} {'is new' if self.before is None else 'changed'}"

    def reason(self, server: str) -> str:
        """Return why the item is not served, without any text of the server."""
        how = "it is new" if self.before is None else "its definition changed"
        return f"{how} since the server was approved; {how_to_approve(server)}"

    def lines(self, most: int | None = None) -> Iterator[str]:
        """Yield the difference; lines of the server begin with a space, ``+`` or ``-``.

        Args:
            most: So many characters of each definition are compared; by default all.
        """
        yield self.title
        before = [] if self.before is None else _lines(self.before, most)
        after = _lines(self.after, most)
        if len(before) + len(after) > _MOST_COMPARED:
            yield from _as_a_whole(before, after)
            return
        found = difflib.unified_diff(before, after, n=1, lineterm="")
        yield from (line for line in islice(found, 2, None) if not line.startswith("@@"))


def how_to_approve(server: str) -> str:
    """Return the hint that names the command."""
    return f"`standards-mcp servers approve {server}` shows the difference and asks"


def key_of(kind: str, raw: Mapping[str, Any]) -> Key:
    """Return the key of an item as its server lists it."""
    return kind, str(raw.get(_PINNED[kind][0]) or "")


def pinned(listing: Mapping[str, Any]) -> dict[Key, Definition]:
    """Return the definitions in a listing that need approval; of several with one key, the first.

    The host serves no second item of a name either.
    """
    found: dict[Key, Definition] = {}
    for kind, fields in _PINNED.items():
        for raw in listing.get(kind, ()):
            given = {name: raw[name] for name in fields if raw.get(name) is not None}
            found.setdefault(key_of(kind, raw), given)
    return found


def digest(definition: Definition) -> str:
    """Return the SHA-256 of a definition; the order of its keys does not count."""
    # Not compared as Python values, for which true equals 1.
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()


def difference(changes: Iterable[Change]) -> str:
    """Return all changes as lines that steer no terminal and hide no character."""
    return "\n".join(line for change in changes for line in change.lines())


def excerpt(changes: Iterable[Change], most: int) -> str:
    """Return the beginning of `difference`, with about *most* characters.

    A running host makes it, so a server must not decide how long that takes.
    """
    shown = ""
    for line in (line for change in changes for line in change.lines(most)):
        if len(shown) > most:
            return f"{shown}... and more"
        shown += f"{line}\n"
    return shown.removesuffix("\n")


def summary(changes: list[Change]) -> str:
    """Return which definitions are not approved, in one line."""
    named = ", ".join(change.title for change in changes[:_NAMED])
    more = len(changes) - _NAMED
    return f"{named} and {more} more" if more > 0 else named


def _as_a_whole(before: list[str], after: list[str]) -> Iterator[str]:
    """Yield the lines from the first to the last difference: of *before*, then of *after*."""
    start = _shared(before, after)
    end = _shared(reversed(before[start:]), reversed(after[start:]))
    yield from (f"-{line}" for line in before[start : len(before) - end])
    yield from (f"+{line}" for line in after[start : len(after) - end])


def _shared(first: Iterable[str], second: Iterable[str]) -> int:
    """Return with how many equal lines both begin."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    )


def _lines(definition: Definition, most: int | None) -> list[str]:
    text = json.dumps(definition, indent=2, ensure_ascii=False, sort_keys=True)
    if most is not None and len(text) > most:
        text = f"{text[:most]}\n... {len(text) - most:,} more characters"
    # Not `splitlines`, which would also break at separators within a text of the server.
    shown = (_visible(line) for line in text.split("\n"))
    return [line[at : at + _WIDTH] for line in shown for at in range(0, len(line), _WIDTH)]


def _visible(text: str) -> str:
    r"""Return *text* with every character that is not drawn as ``\u200b``, bidi marks included."""
    plain = text if text.isprintable() else "".join(map(_visible_character, text))
    return _UNDRAWN.sub(lambda match: _escaped(match[0]), plain)


def _visible_character(character: str) -> str:
    return character if character.isprintable() else _escaped(character)


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"
