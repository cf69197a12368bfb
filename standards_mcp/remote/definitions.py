"""Definitions as other servers list them: their fields, and the names that they get here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from standards_mcp._utils.text import readable
from standards_mcp.contributions.base import MAX_NAME

_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]|\.(?=\.|$)")

# The protocol's own entries are about one connection, and so not for ours.
_RESERVED: Final = "io.modelcontextprotocol/"


Ask: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Sends a request of MCP to a server and returns the result as it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The server that a definition is of.

    Attributes:
        name: That of its table.
        prefix: What the declared names of its items begin with.
        ask: Asks it.
        completes: Whether it completes arguments.
        timeout: Seconds for one answer, in place of ``tools.timeout``.
    """

    name: str
    prefix: str
    ask: Ask
    completes: bool
    timeout: float | None

    def declared(self, own: str) -> str:
        """Return the name of an item, with all characters that a name may have."""
        return declared_name(self.name, self.prefix, own)


def object_of(value: object) -> Mapping[str, Any]:
    """Return *value* if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Mapping[str, Any]]:
    """Return the objects in a list; none if it is no list."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def text_of(value: object) -> str:
    """Return *value* without space around it if it is a text, else an empty one."""
    return value.strip() if isinstance(value, str) else ""


def optional_text(value: object) -> str | None:
    """Return *value* as it is if it is a text, else None."""
    return value if isinstance(value, str) else None


def readable_text(value: object) -> str | None:
    """Return *value* if it is a text, without what would steer a terminal, else None.

    For what people read of a definition; contents go through as they are.
    """
    return readable(value) if isinstance(value, str) else None


def meta_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``_meta`` of a definition or an answer, as far as it is for clients."""
    return {
        key: value
        for key, value in object_of(raw.get("_meta")).items()
        if not key.startswith(_RESERVED)
    }


def extra_of(raw: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return these fields of a definition, where it has them."""
    return {name: raw[name] for name in names if raw.get(name) is not None}


def declared_name(server: str, prefix: str, own: str) -> str:
    """Return the name of an item of a server, with all characters that a name may have."""
    name = _ODD.sub("_", prefix + own)
    return name if name[:1].isalpha() else f"{server}.{name}"


def unique_name(name: str, identity: str) -> str:
    """Return a name of the allowed length that differs for another *identity*, and stays the same.

    A number would depend on what else the server lists.
    """
    digest = hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:8]
    return f"{name[: MAX_NAME - len(digest) - 1].rstrip('.')}_{digest}"
