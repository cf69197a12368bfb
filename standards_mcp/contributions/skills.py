"""Skills: those of plugins are read at registration; the files of all are served as resources."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from standards_mcp._utils.text import readable
from standards_mcp.errors import PluginError
from standards_mcp.plugin import Resource, Skill

from .arguments import Arguments, UncheckedArguments
from .base import Contribution, naming_declaration
from .front_matter import read_front_matter
from .resources import Contents, RegisteredResource

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

EXTENSION: Final = "io.modelcontextprotocol/skills"
"""The name of the extension of the protocol, SEP-2640."""
SKILL_FILE: Final = "SKILL.md"
MAX_FILES: Final = 512
MAX_BYTES: Final = 16 << 20
"""The size of all files of a skill. Every client accepts a skill within these two limits."""
_NO_ARGUMENTS: Final = UncheckedArguments({"type": "object", "properties": {}})
# Not the types of this machine, so that every machine serves the same; they take 2 ms to make.
_types: Final = cache(mimetypes.MimeTypes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegisteredSkill(Contribution):
    """A skill; its URI is among its names, so that it has one owner, too.

    Attributes:
        entry: What clients get: its URI, its front matter, and the digests of its files.
        needs: See `Skill`.
        contents: The bytes of its files by their paths, if the host has them.
    """

    kind = "skill"
    entry: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    arguments: Arguments = _NO_ARGUMENTS

    @property
    def definition(self) -> dict[str, Any]:
        """The entry for clients."""
        return dict(self.entry)

    @property
    def folder(self) -> str:
        """The beginning of the URIs of its files."""
        return self.published.removesuffix(SKILL_FILE)

    async def read(self, file: Mapping[str, Any]) -> Contents:
        """Return the contents of a file in the entry."""
        uri = file["uri"]
        return file_contents(uri, self.contents[unquote(uri.removeprefix(self.folder))])


def read_skill(plugin: str, item: object) -> RegisteredSkill:
    """Read the files of the skill that a plugin declared, and return it.

    Raises:
        PluginError: It breaks a rule of the format, or clients would not accept it.
    """
    if not isinstance(item, Skill):
        kind = type(item).__name__
        raise PluginError(plugin, f"register_skills returned a {kind}; return Skill(source=...)")
    source = item.source() if callable(item.source) else item.source
    folder = "" if isinstance(source, str) else source.name
    with naming_declaration(plugin, f"skill {folder!r}" if folder else "a skill"):
        if isinstance(item.needs, str) or not all(isinstance(name, str) for name in item.needs):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("its needs must be a list of names of tools")
        contents = {SKILL_FILE: source.encode()} if isinstance(source, str) else _files_in(source)
        skill = skill_of(plugin, contents, item.needs)
        if folder not in ("", skill.declared):
            raise ValueError(f"its front matter has the name {skill.declared!r}; they must agree")
    return skill


def skill_of(plugin: str, contents: Mapping[str, bytes], needs: Iterable[str]) -> RegisteredSkill:
    """Return the skill with these files; ``SKILL.md`` is the first one.

    Raises:
        ValueError: There is no ``SKILL.md``, or its front matter breaks a rule.
    """
    if SKILL_FILE not in contents:
        raise ValueError(f"it has no file {SKILL_FILE}")
    fields = read_front_matter(contents[SKILL_FILE].decode())
    root = f"skill://{fields['name']}"
    files = [
        {
            "uri": f"{root}/{quote(path)}",
            "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
            "size": len(data),
        }
        for path, data in contents.items()
    ]
    return RegisteredSkill(
        plugin=plugin,
        declared=fields["name"],
        published=f"{root}/{SKILL_FILE}",
        title=None,
        description=readable(fields["description"]),
        entry={"uri": f"{root}/{SKILL_FILE}", "frontmatter": fields, "resources": files},
        needs=tuple(needs),
        contents=contents,
    )


def files_of(skills: Iterable[RegisteredSkill]) -> tuple[RegisteredResource, ...]:
    """Return the files of skills as resources; a file in nested skills is one of the inner."""
    in_order = tuple(skills)
    owners: dict[str, RegisteredSkill] = {}
    # The URIs of inner skills are longer; of equal ones, the first counts.
    for skill in sorted(in_order, key=lambda skill: len(skill.published), reverse=True):
        for file in skill.entry["resources"]:
            owners.setdefault(file["uri"], skill)
    return tuple(
        _file(skill, file)
        for skill in in_order
        for file in skill.entry["resources"]
        if owners[file["uri"]] is skill
    )


def _file(skill: RegisteredSkill, file: Mapping[str, Any]) -> RegisteredResource:
    uri, is_main = file["uri"], file["uri"] == skill.published
    name = skill.entry["frontmatter"]["name"] if is_main else uri.removeprefix("skill://")
    read = partial(skill.read, file)
    return RegisteredResource(
        plugin=skill.plugin,
        declared=uri,
        published=uri,
        title=None,
        description=skill.description if is_main else "",
        arguments=_NO_ARGUMENTS,
        resource=Resource(uri=uri, name=name, function=read, mime_type=_type_of(uri), fixed=True),
        template=None,
        timeout=skill.timeout,
        skill=skill.published,
        extra={"size": file["size"]},
    )


def _type_of(uri: str) -> str:
    is_markdown = uri.lower().endswith(".md")
    return "text/markdown" if is_markdown else _types().guess_type(uri)[0] or "text/plain"


def file_contents(uri: str, data: bytes) -> Contents:
    """Return the bytes of a file, as text if they are."""
    mime_type = _type_of(uri)
    try:
        return Contents(data.decode(), mime_type)
    except UnicodeDecodeError:
        is_text = mime_type.startswith("text/")
        return Contents(data, "application/octet-stream" if is_text else mime_type)


def _files_in(folder: Traversable) -> dict[str, bytes]:
    """Return the files of a folder by their paths, ``SKILL.md`` first.

    Hidden files and caches of Python are left out.

    Raises:
        ValueError: It has a symbolic link, an odd name, or more than clients must accept.
    """
    files: dict[str, bytes] = {}
    remaining, waiting = MAX_BYTES, [("", folder)]
    while waiting:
        path, entry = waiting.pop()
        is_link, is_folder = isinstance(entry, Path) and entry.is_symlink(), entry.is_dir()
        if is_link or not (is_folder or entry.is_file()):
            raise ValueError(f"{path or 'its source'} is a link, or neither a file nor a folder")
        if is_folder:
            for child in entry.iterdir():
                # A name in a zip file may lead anywhere; a backslash is a separator on Windows.
                if {"/", "\\"} & {*child.name}:
                    raise ValueError(f"{child.name!r} is not a name on every system")
                if child.name != "__pycache__" and not child.name.startswith("."):
                    waiting.append((f"{path}/{child.name}".lstrip("/"), child))
        else:
            with entry.open("rb") as file:
                files[path] = file.read(remaining + 1)
            remaining -= len(files[path])
        if remaining < 0 or len(files) > MAX_FILES:
            raise ValueError(f"it has more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB")
    return dict(sorted(files.items(), key=lambda item: (item[0] != SKILL_FILE, item[0])))
