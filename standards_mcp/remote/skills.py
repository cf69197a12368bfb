"""Skills of other MCP servers: check their entries, and each file against its digest."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote

from pydantic import BaseModel, Field, ValidationError

from standards_mcp._utils.text import printable
from standards_mcp.contributions.base import raise_first_fault
from standards_mcp.contributions.front_matter import FrontMatter
from standards_mcp.contributions.resources import Contents
from standards_mcp.contributions.skills import (
    MAX_BYTES,
    MAX_FILES,
    SKILL_FILE,
    RegisteredSkill,
    file_contents,
)
from standards_mcp.errors import ApiError

from .definitions import Origin, object_of, objects_of, readable_text, why_not_valid


class _File(BaseModel):
    uri: str
    digest: Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0, strict=True)]


class _Entry(BaseModel):
    uri: str
    frontmatter: FrontMatter
    resources: Annotated[list[_File], Field(max_length=MAX_FILES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSkill(RegisteredSkill):
    """A skill of another server.

    Attributes:
        list_again: Called if the bytes of a file are not the listed ones.
    """

    origin: Origin
    list_again: Callable[[], None]

    async def read(self, file: Mapping[str, Any]) -> Contents:
        """Return the contents of a file in the entry.

        Raises:
            ApiError: They are not those that the server listed, and that were approved.
        """
        uri = file["uri"]
        answer = await self.origin.ask("resources/read", {"uri": uri})
        for part in objects_of(answer.get("contents")):
            with suppress(LookupError, ValueError):  # not Base64
                text = part.get("text")
                is_text = isinstance(text, str)
                data = str(text).encode() if is_text else base64.b64decode(str(part["blob"]))
                if f"sha256:{hashlib.sha256(data).hexdigest()}" == file["digest"]:
                    return file_contents(uri, data)  # nothing but the verified bytes
        self.list_again()
        raise ApiError(f"{uri} is not as its server listed it. Try again in a moment.")


def read_remote_skill(
    origin: Origin, list_again: Callable[[], None], raw: Mapping[str, Any]
) -> RemoteSkill:
    """Return a skill of another server. If it cannot be served, its ``error`` is the reason.

    Args:
        raw: The entry in the server's list.
    """
    uri, fields, error = str(raw.get("uri") or ""), object_of(raw.get("frontmatter")), ""
    try:
        _check(raw)
    except ValueError as exc:
        reason = why_not_valid(exc) if isinstance(exc, ValidationError) else str(exc)
        error = f"its entry breaks a rule: {reason}"
    return RemoteSkill(
        plugin=origin.name,
        declared=origin.declared(uri.partition("://")[2].removesuffix(f"/{SKILL_FILE}")),
        published=uri,
        title=None,
        description=readable_text(fields.get("description")) or "",
        entry={"uri": uri, "frontmatter": fields, "resources": [] if error else raw["resources"]},
        timeout=origin.timeout,
        error=error,
        origin=origin,
        list_again=list_again,
    )


def _check(raw: Mapping[str, Any]) -> None:
    """Raise a ValueError if clients would refuse an entry, or could not show its description."""
    # Nobody can verify bytes that differ from read to read, so an approval would mean nothing.
    raise_first_fault({"its files are dynamic": raw.get("resources") == "dynamic"})
    entry = _Entry.model_validate(raw)
    description = entry.frontmatter.description
    uris, folder = {file.uri for file in entry.resources}, entry.uri.removesuffix(SKILL_FILE)
    is_whole = len(uris) == len(entry.resources) and all(uri.startswith(folder) for uri in uris)
    raise_first_fault(
        {
            "its description has control characters": printable(description) != description,
            "its URI has another name": not folder.endswith(f"/{entry.frontmatter.name}/"),
            "its resources are not files of its folder, each once": not is_whole,
            f"its {SKILL_FILE} is not listed": entry.uri not in uris,
            "it is too large": sum(file.size for file in entry.resources) > MAX_BYTES,
            "its URIs are not plain paths": not all(map(_is_plain, uris | {entry.uri})),
            f"its URI does not end with {SKILL_FILE}": not entry.uri.endswith(f"/{SKILL_FILE}"),
        }
    )


def _is_plain(uri: str) -> bool:
    """Return True if a URI names a file below its server, also where a client writes it to disk."""
    scheme, _, path = unquote(uri).partition("://")
    names = path.replace("\\", "/").split("/")
    return (
        scheme not in ("", "file", "ui")
        and printable(path) == path
        and not {"", ".", ".."} & {*names}
    )
